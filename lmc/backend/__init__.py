"""Lowering: Module to Plan, and the order of a batch. Imports the leaves only (see README.md)."""
