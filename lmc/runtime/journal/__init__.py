"""Journals of runs: requests and calls of tools with their results, on disk before anything uses them."""
