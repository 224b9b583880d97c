"""Traces of requests through the real cache and scheduler, without a model."""
