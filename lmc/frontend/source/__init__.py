"""The source of the functions that a capture interprets."""
