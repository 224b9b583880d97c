"""Modules as ``.lmir`` text, both ways."""
