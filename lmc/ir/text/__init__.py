"""The parser of ``.lmir`` text."""
