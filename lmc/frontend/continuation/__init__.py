"""Breaks that resume from live state: records, objects, and the rest of a function."""
