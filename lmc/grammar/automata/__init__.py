"""Regular expressions and automata over bytes."""
