"""Targets and the engines that serve them."""
