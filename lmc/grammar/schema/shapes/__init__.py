"""Constraints of several schemas on one value, merged into shapes."""
