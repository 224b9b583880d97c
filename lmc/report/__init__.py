"""Compiled programs as data, graphs and text."""
