"""Endpoints for those who run the server."""
