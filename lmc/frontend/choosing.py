"""The op that a condition becomes, given what its two ways have left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.meeting import Meeting, Way
from lmc.frontend.pairing import Pairs
from lmc.frontend.unclear import Maybe
from lmc.ir.core import Op
from lmc.ir.errors import Location
from lmc.ir.region_ops import CondOp, YieldOp
from lmc.ir.types import BOOL

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder


def emit_condition(
    recorder: Recorder, meeting: Meeting, location: Location | None = None, *, statement: bool = False
) -> None:
    """Append the op, and note what follows from knowing which way was taken.

    ``location`` is where it began. A ``statement`` is an ``if``; others are parts of expressions, which it may hold.
    """
    blocks = [
        way.ended.region.block(None if way.values is None else _end(values))
        for way, values in zip(meeting.ways, meeting.yields, strict=True)
    ]
    flag = recorder.value_of(meeting.flag)
    name = CondOp.NAME if statement else f"{CondOp.NAME}.value"
    arms = {"then": blocks[0], "otherwise": blocks[1]}
    recorder.emit_region_op(CondOp, meeting.results, location=location, name=name, flag=flag, **arms)
    for result, *yielded in zip(meeting.results, *meeting.yields, strict=True):
        for truth, value in zip((True, False), yielded, strict=True):
            known = truth if value == flag else value
            if result.type == BOOL and type(known) is bool:
                recorder.regions.imply(flag, truth, result, known)
                recorder.regions.imply(result, not known, flag, not truth)


def either(recorder: Recorder, found: Maybe, default: Any, what: str) -> Any:
    """What may be there, else ``default``; ``Unclear`` where that is no one value."""
    ways: list[Way] = []
    for _ in range(2):
        recorder.regions.open()
        ways.append(Way((), recorder.regions.leave()))
    meeting = Pairs(recorder, found.present, (ways[0], ways[1]))
    value = meeting.value(found.value, default, what)
    emit_condition(recorder, meeting)
    return value


def _end(values: list[Any]) -> Op:
    make: type[Any] = YieldOp  # pyright does not see that its decorator makes it a dataclass
    end: Op = make(values=tuple(values))
    return end
