"""A compiled program as a graph, a picture and a tree."""
