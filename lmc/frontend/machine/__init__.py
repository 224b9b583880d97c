"""The machine of a capture: graph, exits, limits, and the state of an interpretation that all rules work on."""
