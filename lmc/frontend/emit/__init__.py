"""The graph that a capture builds: blocks, operands, ids, symbols and budgets."""
