"""Semantics of ops: the reference interpreter and the functions that it shares with the executor."""
