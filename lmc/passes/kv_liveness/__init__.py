"""The pass ``kv-liveness``, and hints in other passes."""
