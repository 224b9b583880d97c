"""All limits of a capture. Beyond one, the capture ends at that statement; it never fails."""

MAX_STEPS = 1_000_000
"""Statements and expressions that are interpreted."""
MAX_OPS = 500_000
MAX_DEPTH = 60
"""Regions in each other; the verifier's own limit is 64."""
MAX_CALLS = 40
"""Functions of the program's that call each other and are inlined."""
MAX_INLINED_STEPS = 1_000
MAX_INLINED_OPS = 200
"""Bound for a function that could be called in the run instead."""
MAX_UNKNOWN_RECURSION = 3
"""Turns of the recursion of such a function whose depth only a run knows."""
MAX_UNROLLED_FOR = 20_000
MAX_UNROLLED_WHILE = 24
MAX_ATTEMPTS = 40
"""Rounds until the fixed point of a loop."""
MAX_UNION = 16
MAX_APART = 5
"""Flags on which it depends which of several containers an object is: their number doubles with each."""
MAX_SELECTED = 4
"""Objects older than a loop that a name may move between from round to round."""
MAX_DOMAIN = 12
"""Texts that a value is known to be one of."""
MAX_GROWTHS = 3
"""The number of attempts of one loop in which a domain may grow."""
MAX_TEXT_PARTS = 64
"""Parts of a text that is put together later; a longer one becomes an op, so that chains of texts stay linear."""
MAX_RESTARTS = 12
"""Restarts of a capture because the program writes a place outside of it that it read before."""
MAX_COPIED = 200
"""Texts and numbers of a list or dict from outside the program that the graph holds a copy of."""
