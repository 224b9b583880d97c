"""The programs with loops that only a run ends: each is run on inputs that together run every line of it."""

from tests.frontend.corpus.conditions.cases import Condition, registering

LOOPS: dict[str, Condition] = {}
looped = registering(LOOPS)
"""Put a function into the corpus, as ``condition`` does."""
