"""Schemas as documents: dialects, references, checked keywords, error positions."""
