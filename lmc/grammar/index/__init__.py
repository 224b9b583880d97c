"""Automata over the tokens of a vocabulary: tables of states and masks."""
