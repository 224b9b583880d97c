"""Analyses of blocks: what an op waits for, and graphs of dependences."""
