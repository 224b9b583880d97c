"""Saved plans and their arguments."""
