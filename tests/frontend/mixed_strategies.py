"""Random programs of several topics at once: what one of them binds, another one reads, changes and loops over."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.condition_strategies import Conditions
from tests.frontend.container_strategies import CONTAINERS_HEADER, Containers
from tests.frontend.handle_strategies import HANDLES_HEADER, Handles
from tests.frontend.library_strategies import LIBRARY_HEADER, Library
from tests.frontend.loop_strategies import LOOPS_HEADER, Loops
from tests.frontend.name_strategies import NAMES_HEADER, NamesOfGenerations
from tests.frontend.object_strategies import OBJECTS_HEADER, Objects
from tests.frontend.strategies import Plain, programs_of
from tests.frontend.turn_strategies import TURNS_HEADER, Turns

MIXED_HEADER = "".join(
    (
        HANDLES_HEADER,
        TURNS_HEADER.removeprefix(LOOPS_HEADER),
        CONTAINERS_HEADER,
        OBJECTS_HEADER,
        LIBRARY_HEADER,
        NAMES_HEADER,
    )
)
TOPICS = Plain, Conditions, Loops, Containers, Handles, Objects, Library, NamesOfGenerations, Turns


@st.composite
def mixed_programs(draw: Any) -> str:
    """Source of a function ``program(s, a, b, n, words)`` out of two topics or more."""
    topics = draw(st.lists(st.sampled_from(TOPICS), min_size=2, max_size=len(TOPICS), unique=True))
    return draw(programs_of(*topics, budget=(8, 24), length=(4, 12)))
