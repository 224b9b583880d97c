"""Schemas of generations: classes, their JSON schemas, and the user's code in them."""
