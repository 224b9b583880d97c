"""The figures of the format: ops as nodes, stages, costs, prompts and measured runs."""
