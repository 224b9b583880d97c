"""A program compiled for a target, and its summary in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lmc.backend.plan import Plan
from lmc.driver.notebook import compiled_html
from lmc.frontend.breaks import Break
from lmc.frontend.program.variants import Captured
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.analysis.dependences import called_hosts
from lmc.ir.cached import cached_property
from lmc.ir.core import Op, walk
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, TryOp
from lmc.ir.engine.target import Target
from lmc.ir.module import Module
from lmc.ir.profile import Profile
from lmc.ir.semantics.constraint_runtime import Compile, Constraints, constraints_of
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.wording import with_count
from lmc.passes.base import PassContext, Remark
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.prepared import PreparedPlan, prepare

if TYPE_CHECKING:
    from lmc.report.model import CompiledView

_CONTROL_FLOW: dict[str, type[Op]] = {
    "condition": CondOp,
    "loop": LoopOp,
    "map": MapOp,
    "race": RaceOp,
    "protected region": TryOp,
}


@dataclass(frozen=True)
class Compiled:
    """A program compiled for a target.

    ``module`` is the optimized IR, ``plan`` its lowered form, ``remarks`` those of the passes, ``breaks`` the graph
    breaks (the rest of the program runs eagerly), ``hosts`` the user's functions by symbol. ``captured`` is the input
    of the passes; ``cache`` holds its constraints for ``tokenizer``. ``changing`` are the names of the passes that
    changed the module.
    """

    module: Module
    plan: Plan = field(repr=False)
    remarks: tuple[Remark, ...]
    breaks: tuple[Break, ...]
    hosts: Mapping[str, Callable[..., Any]] = field(repr=False)
    target: Target
    options: PipelineOptions
    captured: Captured = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    cache: ConstraintCache = field(repr=False)
    changing: frozenset[str] = field(repr=False)

    @property
    def level(self) -> str:
        """The optimization level."""
        return self.options.level

    @cached_property
    def prepared(self) -> PreparedPlan:
        """The plan as the executor takes it."""
        return prepare(self.plan)

    @property
    def pass_context(self) -> PassContext:
        """A new context for its passes."""
        return pass_context(self.target, self.tokenizer, self.cache, self.options.profile)

    @property
    def view(self) -> CompiledView:
        """The optimized module as data for ``lmc.report``."""
        from lmc.driver.compile.view_data import final_view  # lmc.report loads when something is shown

        return final_view(self.module, self.plan, self.pass_context, target=self.target.spec, level=self.level)

    def _repr_html_(self) -> str:
        return compiled_html(summary_text(self), self.breaks, self.remarks, str(self.module), self.view)

    def constraints(self, compile: Compile | None) -> Constraints:
        """Return the constraints of a run."""
        return constraints_of(self.module, compile, self.captured.readers)


def pass_context(target: Target, tokenizer: Tokenizer, cache: ConstraintCache, profile: Profile | None) -> PassContext:
    """Return the context of passes for ``target``: they estimate tokens where those of the model are not known.

    Outputs are greedy if they are so on the fallbacks as well.
    """
    greedy = all(each.capabilities.greedy for each in target.chain)
    capabilities = replace(target.capabilities, greedy=greedy)
    counted = tokenizer if capabilities.contexts == "tokens" else None
    width = None if target.remote is None else target.remote.concurrency
    return PassContext(counted, cache, profile, capabilities, width)


def summary(compiled: Compiled) -> dict[str, Any]:
    """The compilation in numbers, its remarks and its breaks, as JSON data."""
    before = list(walk([compiled.captured.module.main.body]))
    after = list(walk([compiled.module.main.body]))
    prefixes = Counter(op.scope for op in after if isinstance(op, PrefillOp))
    regions = Counter(type(op) for op in after)
    applied = [remark for remark in compiled.remarks if remark.kind == "applied"]
    called = called_hosts(compiled.module.main.body)
    return {
        "program": compiled.module.name,
        "target": compiled.target.spec,
        "level": compiled.level,
        "parameters": {value.name: str(value.type) for value in compiled.module.main.parameters},
        "ops": {"captured": len(before), "optimized": len(after)},
        "model_calls": sum(op.billable for op in after if not op.regions),
        "waves": compiled.plan.wave_count,
        "control_flow": {name: regions[kind] for name, kind in _CONTROL_FLOW.items()},
        "prefixes": {"batch": prefixes["batch"], "instance": prefixes["instance"]},
        "saved": {
            "tokens": sum(remark.saved_tokens for remark in applied),
            "calls": sum(remark.saved_calls for remark in applied),
            "steps": sum(remark.saved_steps for remark in applied),
        },
        "host_functions": {host.name: host.effect.value for host in compiled.module.hosts if host.name in called},
        "remarks": [_remark(remark) for remark in compiled.remarks],
        "breaks": [
            {"location": _text(entry.location), "cause": entry.cause, "remedy": entry.remedy}
            for entry in compiled.breaks
        ],
    }


def summary_text(compiled: Compiled) -> str:
    """``summary`` for people, without remarks and breaks themselves."""
    found = summary(compiled)
    saved = ", ".join(f"{count} {unit}" for unit, count in found["saved"].items() if count)
    lines = [
        (
            "program",
            f"{found['program']}({', '.join(f'{name}: {kind}' for name, kind in found['parameters'].items())})",
        ),
        ("target", f"{found['target']}, -{found['level']}"),
        ("ops", f"{found['ops']['captured']} captured, {found['ops']['optimized']} after the passes"),
        ("model calls", f"{found['model_calls']} in {with_count(found['waves'], 'wave')}"),
        *_control_flow(found["control_flow"]),
        ("prefixes", f"{found['prefixes']['batch']} of the batch, {found['prefixes']['instance']} of an instance"),
        ("saved", saved or "nothing"),
    ]
    if found["host_functions"]:
        lines.append(
            ("calls back", ", ".join(f"{name} ({effect})" for name, effect in found["host_functions"].items()))
        )
    lines.append(("captured", _captured(compiled)))
    return "".join(f"{name + ':':<13}{text}\n" for name, text in lines)


def _control_flow(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the line about control flow, if there is any."""
    said = [with_count(count, name) for name, count in counts.items() if count]
    return [("regions", f"{', '.join(said)}; their calls are counted once above")] if said else []


def _captured(compiled: Compiled) -> str:
    if not compiled.breaks:
        return "to the end"
    first = compiled.breaks[0]
    return f"up to {_text(first.location) or 'a break'}, the rest runs as plain Python ({first.cause}); see --breaks"


def _remark(remark: Remark) -> dict[str, Any]:
    return {
        "pass": remark.pass_name,
        "kind": remark.kind,
        "location": _text(remark.location),
        "message": remark.message,
        "saved": {"tokens": remark.saved_tokens, "calls": remark.saved_calls, "steps": remark.saved_steps},
    }


def _text(location: object) -> str | None:
    return None if location is None else str(location)
