"""Traces for tests of the simulator, and a little model of what it should find."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from lmc.cache.simulation.recording import Timeline
from lmc.cache.simulation.simulator import Simulation
from lmc.cache.trace import TraceRequest, read_trace

Prefix = tuple[int, ...]


def trace_of(*rows: Mapping[str, object]) -> list[TraceRequest]:
    return read_trace((None, {"id": number, "output": 0, **row}) for number, row in enumerate(rows))


@st.composite
def traces(draw: st.DrawFn, *, arrivals: bool = True) -> list[TraceRequest]:
    """Up to ten requests; some go on from what another one answered, some wait for others all the same."""
    rows: list[dict[str, object]] = []
    for number in range(draw(st.integers(1, 10))):
        after = draw(st.lists(st.integers(0, number - 1), max_size=2)) if number else []
        tokens = draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
        if after and draw(st.booleans()):
            before = rows[after[0]]["tokens"]
            assert isinstance(before, list)
            tokens = before[:12] + tokens
        row: dict[str, object] = {"tokens": tokens, "output": draw(st.integers(0, 8)), "after": after}
        if arrivals:
            row["arrival"] = draw(st.sampled_from([0, 0, 0.05, 1]))
        rows.append(row)
    return trace_of(*rows)


def run(simulation: Simulation) -> None:
    """To the end, with a check at every step."""
    for _ in range(10_000):
        if not simulation.step():
            return
        simulation.check_invariants()
    raise AssertionError("the requests do not end")


def one_at_a_time(requests: list[TraceRequest], pool: int) -> tuple[int, Counter[Prefix]]:
    """Hits and evicted tokens of requests that run alone, as they come, with least recently used tokens evicted.

    A token is the last one of a prefix.

    The cache is no tree here: it is a set of prefixes, each with the time it was used last.
    """
    used: dict[Prefix, int] = {}
    hits = 0
    evicted: Counter[Prefix] = Counter()
    queue = deque(each for each in requests if not each.after)
    done: set[str | int] = set()
    for now in range(len(requests)):
        request = queue.popleft()
        whole = [*request.tokens.tolist(), *request.generated.tolist()][: request.cached_length]
        prefixes = [tuple(whole[: end + 1]) for end in range(len(whole))]
        asked = prefixes[: request.tokens.size]
        found = [prefix for prefix in asked if prefix in used]
        hits += min(len(found), len(asked) - 1)
        used.update(dict.fromkeys(found, now))
        # What it generates may be cached already, but it gets pages of its own for that until it has computed it.
        while len(used) + len(whole) - len(found) > pool:
            victim = _victim(used, keep=set(found))
            del used[victim]
            evicted[victim] += 1
        used.update(dict.fromkeys(prefixes, now))
        done.add(request.id)
        queue.extend(each for each in requests if request.id in each.after and done.issuperset(each.after))
    return hits, evicted


def evicted_of(timeline: Timeline) -> Counter[Prefix]:
    """The tokens that a simulation evicted, each as the last one of a prefix."""
    found: Counter[Prefix] = Counter()
    for each in timeline.evicted:
        found.update((*each.prefix[: end + 1].tolist(),) for end in range(each.kept, each.prefix.size))
    return found


def _victim(used: dict[Prefix, int], keep: set[Prefix]) -> Prefix:
    inner = {prefix[:-1] for prefix in used}
    leaves = [prefix for prefix in used if prefix not in inner and prefix not in keep]
    return min(leaves, key=lambda prefix: used[prefix])


def at_most(requests: Iterable[TraceRequest]) -> int:
    """Hits with a pool without end, in whatever order: each token but the first of its kind to be asked for."""
    asked: list[Prefix] = []
    made: set[Prefix] = set()
    for request in requests:
        tokens = [*request.tokens.tolist(), *request.generated.tolist()]
        length = request.tokens.size
        asked += [tuple(tokens[:end]) for end in range(1, length)]
        made |= {tuple(tokens[:end]) for end in range(length, len(tokens) + 1)}
    return len(asked) - len(set(asked) - made)
