"""What a capture knows: abstract values, the cells that hold them, and where two states meet."""
