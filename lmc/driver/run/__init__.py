"""Runs of a program: one call, a batch, a stream."""
