"""The builtins of ``py.call`` and ``py.local``: pure functions on values, and their types."""
