"""The parts of a token index that are too slow in Python, in C. Everything here has a form in numpy beside it."""
