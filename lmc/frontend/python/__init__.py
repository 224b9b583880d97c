"""What Python's own operators, functions and methods do with abstract values."""
