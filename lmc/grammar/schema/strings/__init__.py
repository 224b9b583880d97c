"""Strings of a schema: lengths, patterns, formats, embedded JSON."""
