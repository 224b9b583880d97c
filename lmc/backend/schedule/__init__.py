"""The order in which the instances of a batch run."""
