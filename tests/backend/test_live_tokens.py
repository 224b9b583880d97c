"""The tokens that an instance uses of a pool, compared with the prefixes of its requests, counted one by one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.schedule.live_tokens import LiveTokensModel
from lmc.backend.schedule.request_model import Answer, Known, RequestModel, Unknown
from lmc.backend.schedule.schedule import Entry, Room, Schedule, schedule_batch
from lmc.backend.schedule.trace_requests import CHARACTERS
from lmc.cache.batch_order.live import LiveTokens
from lmc.cache.trace import TraceRequest
from tests.backend.programs import JUDGE, plan_of

VALUES = 3


@st.composite
def stages(draw: st.DrawFn) -> tuple[RequestModel, ...]:
    """Requests of an instance, each behind a few others. Texts are whole tokens, and begin differently."""
    found: list[RequestModel] = []
    for number in range(draw(st.integers(1, 6))):
        base = draw(st.none() | st.integers(0, number - 1)) if number else None
        piece: st.SearchStrategy[Any] = st.sampled_from(["a" * 4, "b" * 12]) | st.builds(
            Known, st.integers(0, VALUES - 1)
        )
        piece |= st.builds(Unknown, st.integers(1, 4))
        if number:
            piece |= st.builds(Answer, st.integers(0, number - 1))
        pieces = tuple(draw(st.lists(piece, min_size=base is None, max_size=3)))
        answered = base is not None and draw(st.booleans())
        after = {each.stage for each in pieces if isinstance(each, Answer)}
        after |= {base} if answered and base is not None else set()
        if base is not None:
            after |= {*found[base].after}
        found.append(RequestModel(str(number), base, answered, pieces, tuple(sorted(after)), draw(st.integers(1, 5))))
    return tuple(found)


@st.composite
def entries(draw: st.DrawFn) -> tuple[Entry, Entry]:
    """Two instances with values of whole tokens, of which the second one shares some: all of a value only if equal."""
    first = [draw(st.integers(1, 5)) for _ in range(VALUES)]
    second = [draw(st.integers(1, 5)) for _ in range(VALUES)]
    shared = [draw(st.integers(0, min(one, two - (one > two)))) for one, two in zip(first, second, strict=True)]
    own = tuple((CHARACTERS * length, 0) for length in first)
    return Entry(0, 0, own), Entry(
        1, 0, tuple((CHARACTERS * a, CHARACTERS * b) for a, b in zip(second, shared, strict=True))
    )


def prefixes(texts: Iterable[Sequence[int]]) -> set[tuple[int, ...]]:
    """All prefixes of some texts."""
    return {tuple(text[: end + 1]) for text in texts for end in range(len(text))}


def waves_of(requests: Sequence[TraceRequest]) -> dict[Any, int]:
    """The wave of each request."""
    waves: dict[Any, int] = {}
    for each in requests:
        waves[each.id] = max((waves[other] + 1 for other in each.after), default=0)
    return waves


def counted(made: Sequence[RequestModel], requests: Sequence[TraceRequest], known: set[tuple[int, ...]]) -> Any:
    """The prefixes that are not ``known``: the most in a wave, the mean over steps, and those of earlier waves."""
    waves = waves_of(requests)
    found: list[int] = []
    again, tokens, steps = 0, 0, 0
    for wave in range(max(waves.values()) + 1):
        running = [[*each.tokens, *each.generated] for each in requests if waves[each.id] == wave]
        before = [[*each.tokens, *each.generated] for each in requests if waves[each.id] < wave]
        later = [[*each.tokens] for each in requests if waves[each.id] > wave]
        held = prefixes(running) | (prefixes([*before, *running]) & prefixes(later))
        found.append(len(held - known))
        again += len((prefixes(running) & prefixes(before)) - known)
        answers = zip(made, requests, strict=True)
        longest = max(stage.answer for stage, each in answers if waves[each.id] == wave)
        tokens, steps = tokens + longest * found[-1], steps + longest
    return max(found), tokens // steps, again


@given(stages(), entries())
def test_live_tokens_are_the_prefixes_that_a_wave_holds(made: tuple[RequestModel, ...], both: tuple[Entry, Entry]):
    schedule = Schedule("p", both, made)
    requests = schedule.requests()
    first, second = ([each for each in requests if each.instance == number] for number in (0, 1))
    before = prefixes([*each.tokens, *each.generated] for each in first)
    assert schedule.live_tokens(LiveTokensModel(made, 1)) == [
        LiveTokens(counted(made, first, set())[0], *counted(made, first, set())),
        LiveTokens(counted(made, second, set())[0], *counted(made, second, before)),
    ]


@given(stages(), entries(), st.integers(1, 200))
def test_pages_cost_at_most_one_for_each_request(made: tuple[RequestModel, ...], both: tuple[Entry, Entry], page: int):
    schedule = Schedule("p", both, made)
    found = [schedule.live_tokens(LiveTokensModel(made, size)) for size in (1, page)]
    for fine, coarse in zip(*found, strict=True):
        assert fine.whole + page - 1 <= coarse.whole <= fine.whole + (page - 1) * len(made)
        assert fine.new + page - 1 <= coarse.new <= fine.new + (page - 1) * len(made)


TURNS = (
    RequestModel("0", None, False, (Known(0),), (), 1),
    RequestModel("1", 0, True, (Known(1),), (0,), 1),
    RequestModel("2", 1, True, (Known(2),), (1,), 1),
)


@pytest.mark.parametrize(
    ("turn", "answer", "pool", "waits"),
    [(400, 8, 4000, True), (40, 400, 1500, False), (400, 8, 10, True)],
)
def test_rows_wait_where_they_would_compute_much_twice(turn: int, answer: int, pool: int, waits: bool):
    """Long turns with short answers wait, short ones with long answers do not."""
    entry = [Entry(number, 0, ((CHARACTERS * turn, 0),) * 3) for number in range(12)]
    schedule = Schedule("chat", tuple(entry), tuple(replace(stage, output=answer) for stage in TURNS))
    assert (schedule.waiting(Room(pool), 16) is not None) == waits
    assert Schedule("chat", (), schedule.stages).waiting(Room(pool), 16) is None


def test_instances_that_have_no_texts_use_little():
    plan = plan_of(JUDGE)
    schedule = schedule_batch(plan, [{}, {"essay": "x" * 400}])
    least, other = schedule.live_tokens(LiveTokensModel(schedule.stages, 16))
    assert least.whole < other.whole - 90
