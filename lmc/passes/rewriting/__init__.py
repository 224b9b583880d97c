"""New ops and trimmed ops, shared by passes."""
