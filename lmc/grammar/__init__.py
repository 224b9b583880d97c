"""Constraints on what a generation may say, compiled to automata over tokens. See README.md."""
