"""The baseline of ``lmc cost``: the expected figures of programs as they were, in a file that is committed.

It has no line of a source, no time of day and no path but those of programs, so that an edit elsewhere changes nothing
in it. Programs are keyed by name and model, calls by op. It stores the prices of its dollars.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmc.cost.prices import MONEY
from lmc.ir.errors import InputError
from lmc.report.cost.model import CostFigures, CostReport, Money, PriceUsed, ProgramCost

FORMAT = "lmc-cost-baseline"
SCHEMA_VERSION = 1
_MOST_CHARACTERS = 64 * 2**20
_REMEDY = "write it with lmc cost --update-baseline"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredFigures(_Stored):
    """Expected figures. ``usd`` null: a request has no price.

    There are no seconds: those of one machine are no measure for another.
    """

    calls: float = Field(ge=0, allow_inf_nan=False)
    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float = Field(ge=0, allow_inf_nan=False)
    cache_written: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    reasoning: float = Field(ge=0, allow_inf_nan=False)
    usd: Annotated[Money, Field(ge=0)] | None

    @classmethod
    def of(cls, found: CostFigures) -> StoredFigures:
        """Return the expected values of ranges."""
        return cls(
            calls=found.calls.expected,
            prompt=found.prompt.expected,
            cached=found.cached.expected,
            cache_written=found.cache_written.expected,
            output=found.output.expected,
            reasoning=found.reasoning.expected,
            usd=None if found.usd is None else found.usd.expected,
        )

    def without_machine(self, calls: Iterable[StoredFigures]) -> StoredFigures:
        """Return the total of ``calls`` on a local model: without the cache hits and the price of one machine."""
        return self.model_copy(update={"cached": sum(call.cached for call in calls), "usd": None})


class StoredProgram(_Stored):
    """A program for one model. ``rows`` is the digest of its rows, ``price`` null where the model has none."""

    rows: str
    is_whole: bool
    price: PriceUsed | None
    calls: Mapping[str, StoredFigures]
    total: StoredFigures

    @property
    def adds_up(self) -> bool:
        """False: the dollars of the calls have another sum than the total, so the file was not written as it is."""
        parts = [call.usd for call in self.calls.values()]
        if self.total.usd is None or None in parts:
            return self.total.usd is None
        total = Decimal(0)
        for part in parts:
            total = MONEY.add(total, part or Decimal(0))
        return total == self.total.usd


class CostBaseline(_Stored):
    """The programs of a baseline, by name and then by model."""

    format: Literal["lmc-cost-baseline"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    programs: Mapping[str, Mapping[str, StoredProgram]]

    def find(self, program: ProgramCost) -> StoredProgram | None:
        """Return a program for its model; None: it is new. Raises ``InputError`` if it has been for other rows."""
        found = self.programs.get(program.program, {}).get(program.model)
        if found is not None and found.rows != program.rows.digest:
            raise InputError(
                f"the baseline of {program.program} on {program.model} is for other rows: {found.rows[:12]}, not "
                f"{program.rows.digest[:12]}",
                remedy="give the rows of the baseline with --input; or write it again: lmc cost --update-baseline",
            )
        return found


def baseline_of(report: CostReport) -> CostBaseline:
    """Return the figures of a report as a baseline."""
    programs: dict[str, dict[str, StoredProgram]] = {}
    for each in report.programs:
        calls, total = {call.op: StoredFigures.of(call) for call in each.calls}, StoredFigures.of(each.total)
        programs.setdefault(each.program, {})[each.model] = StoredProgram(
            rows=each.rows.digest,
            is_whole=each.is_whole,
            price=each.price,
            calls=calls,
            total=total if each.local is None else total.without_machine(calls.values()),
        )
    return CostBaseline(programs=programs)


def baseline_text(baseline: CostBaseline) -> str:
    """Return a baseline as JSON: sorted, the same bytes for the same figures."""
    data: Any = baseline.model_dump(mode="json")
    return json.dumps(_whole(data), indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_baseline(text: str, name: str) -> CostBaseline:
    """Return the baseline in the text of the file ``name``. Raises ``InputError`` if it is none, or a newer one."""
    if len(text) > _MOST_CHARACTERS:
        raise InputError(f"{name} has more than {_MOST_CHARACTERS:,} characters", remedy=_REMEDY)
    try:
        data: Any = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}", remedy=_REMEDY) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{name} is no baseline of lmc cost", remedy=_REMEDY)
    version: Any = data.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        raise InputError(
            f"{name} has the schema_version {version}, and this lmc knows {SCHEMA_VERSION}",
            remedy="upgrade lmc, or write the file again with this one: lmc cost --update-baseline",
        )
    try:
        found = CostBaseline.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{name}: {'/'.join(map(str, first['loc']))}: {first['msg']}", remedy=_REMEDY) from error
    for program, models in found.programs.items():
        for model, stored in models.items():
            if not stored.adds_up:
                raise InputError(
                    f"{name}: the dollars of {program} on {model} are not the sum of its calls, as after a merge",
                    remedy=_REMEDY,
                )
    return found


def baseline_schema_text() -> str:
    """Return the JSON Schema of a baseline."""
    schema = CostBaseline.model_json_schema()
    schema["required"] = ["format", "schema_version", *schema["required"]]
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ``ValueError`` for a key that is there twice, as after a merge."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} is there twice")
        found[key] = value
    return found


def _whole(data: Any) -> Any:
    """Return data whose whole numbers have no point, as those of a report."""
    if isinstance(data, dict):
        return {key: _whole(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_whole(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
