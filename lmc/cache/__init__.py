"""Prefix cache accounting: page pool and radix tree. Pages are integers; nothing here knows tensors or models."""

from lmc.cache.node import PrefixMatch, RadixNode
from lmc.cache.pool import InvariantError, PagePool, Pages, PoolExhaustedError
from lmc.cache.radix import RadixCache

__all__ = ["InvariantError", "PagePool", "Pages", "PoolExhaustedError", "PrefixMatch", "RadixCache", "RadixNode"]
