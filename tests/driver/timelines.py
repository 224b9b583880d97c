"""Runs that are recorded, and what holds for every timeline."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lmc.driver.batch.timeline import TimelineFile, timeline_header
from lmc.driver.options import Options
from lmc.driver.run.result import Result
from lmc.driver.runner import Runner
from lmc.ir.usage import Usage
from lmc.report import timeline
from lmc.report.timeline import MeasuredRequest, read_timeline


def recorded(
    program: Any, rows: Sequence[dict[str, Any]], path: Path, options: Options | None = None
) -> tuple[dict[int, Result], timeline.RunTimeline]:
    """Run rows; return their results and their timeline, which is checked."""
    runner = Runner(program, options or Options("toy"))
    with TimelineFile(str(path), timeline_header(runner.program, [], runner.target(), None)) as recording:
        found = dict(runner.run_rows([[(number, ((), row)) for number, row in enumerate(rows)]], None, recording))
    assert recording.note is None
    return found, read(path)


def read(path: Path, *, complete: bool = True) -> timeline.RunTimeline:
    """Read a timeline of a run that is over, and check it."""
    with path.open("rb") as lines:
        found = read_timeline(lines, path.name)
    assert found.is_complete == complete
    check(found)
    return found


def check(found: timeline.RunTimeline) -> None:
    """Check that the times of each event follow each other, and that events on a lane do not overlap."""
    for request in found.requests:
        marks = [request.ready, request.submitted, request.admitted, request.first, request.ended]
        times = [mark for mark in marks if mark is not None]
        assert times == sorted(times)
        assert (request.plan is None) == (request.at is None) == (request.wave is None)
    spans = [(1, each.lane, each.submitted, each.ended) for each in found.requests]
    spans += [(2, each.lane, each.started, each.ended) for each in found.tools]
    spans += [(3, 1, each.started, each.ended) for each in found.steps]
    spans.sort()
    for (process, lane, _, end), (next_process, next_lane, start, _) in pairwise(spans):
        assert (process, lane) != (next_process, next_lane) or end <= start


def usage_of(requests: Sequence[MeasuredRequest]) -> dict[str, Usage]:
    """The tokens of requests by their ids, without prefills."""
    found: dict[str, Usage] = {}
    for each in requests:
        if each.kind != "prefill":
            one = Usage(each.prompt or 0, each.cached or 0, each.generated, int(each.prompt is not None))
            found[each.op] = found.get(each.op, Usage()) + one
    return found
