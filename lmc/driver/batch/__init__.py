"""Rows of files as batches: reading, windows, records of runs."""
