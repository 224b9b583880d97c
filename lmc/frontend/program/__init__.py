"""A program as an object: its function, arguments, guards, variants, and eager runs."""
