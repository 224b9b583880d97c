"""Kernels of the torch engines: one file each, with a plain reference, fast versions and one dispatch."""
