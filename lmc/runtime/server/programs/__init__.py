"""Compiled programs: rows of arguments in, result rows out."""
