"""The handle ``s`` in a capture: what it appends, generates and chooses, its branches, and programs that it calls."""
