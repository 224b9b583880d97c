"""Values as operands of ops, exceptions, and objects of the run."""
