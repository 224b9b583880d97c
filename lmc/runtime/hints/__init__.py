"""Hints that the executor gives an engine: known prefixes, lookahead, retention, pinned prefixes."""
