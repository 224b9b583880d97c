"""The pass ``apply-profile``."""
