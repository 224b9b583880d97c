"""Batches: requests that run together, in an order of their own, and outlive the request that brought them."""
