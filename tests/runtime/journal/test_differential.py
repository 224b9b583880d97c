"""Random programs: a run that is cut anywhere and resumed gives what an undisturbed run gives, and repeats nothing."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import lmc
from lmc.backend.lower import lower
from lmc.ir.core import walk
from lmc.ir.dialects.region_ops import RaceOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import JournalError
from lmc.ir.semantics.interpreter import Outcome
from lmc.runtime.executor import Executor, Instance, Resources
from lmc.runtime.journal.calls import JournaledCalls
from lmc.runtime.journal.engine import JournaledEngine, ReplayedEngine
from lmc.runtime.journal.file import BEGUN
from lmc.runtime.journal.journal import Resumption, RunJournal
from tests.flow_strategies import flow_programs
from tests.program_strategies import Program, programs
from tests.runtime.journal.journals import CountingEngine, begun, ended_calls, entries, resumed
from tests.runtime.region_texts import TOY

End = tuple[Any, ...]
ROW = 2
EFFECTS = {"look": "reads", "tell": "writes", "shout": "pure", "refuse": "reads"}


class Tools:
    """The functions of a program as declared tools, and how often each was called."""

    def __init__(self, program: Program) -> None:
        self.calls: Counter[str] = Counter()
        self.hosts = {name: self._tool(name, function) for name, function in program.hosts.items()}

    def _tool(self, name: str, function: Callable[..., Any]) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return function(*args, **kwargs)

        called.__name__ = name
        return lmc.tool(effect=EFFECTS[name])(called)


def run(program: Program, engine: Engine, tools: Tools, journal: RunJournal | None, costs: dict[str, Any]) -> End:
    """Return the end of a run, its outcome or its error. Puts the usage of its ops into ``costs``."""

    async def main() -> Outcome:
        used = engine if journal is None else JournaledEngine(engine, journal)
        resources = Resources(used, journal=None if journal is None else JournaledCalls(journal))
        executor = Executor(used, lower(program.module, TOY), tools.hosts, constraints=program.constraints)
        found: list[Any] = []
        instance = [Instance(ROW, program.inputs)]
        try:
            await executor.run_batch(
                instance, [0], lambda _, finished: found.append(finished), run_seed=5, resources=resources
            )
        finally:
            resources.close()
        if found[0].error is not None:
            raise found[0].error
        return found[0].outcome

    try:
        outcome = asyncio.run(main())
    except JournalError:
        raise
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])
    costs.update({op_id: cost.usage for op_id, cost in outcome.profile.ops.items() if cost.usage.calls})
    return repr((outcome.value, outcome.variables)), outcome.text, outcome.live


@given(programs() | flow_programs(), st.integers(0, 1 << 16), st.integers(0, 9))
def test_a_run_that_is_cut_and_resumed_is_an_undisturbed_run(program: Program, cut: int, seed: int):
    plain, usage, costs = Tools(program), dict[str, Any](), dict[str, Any]()
    expected = run(program, CountingEngine(), plain, None, usage)
    ops = [*walk([program.module.main.body])]
    has_race, has_regions = (any(isinstance(op, kind) for op in ops) for kind in (RaceOp, RegionOp))

    def check(engine: Engine, tools: Tools, journal: RunJournal) -> None:
        """Costs are equal, but for answers that nothing needs: whether they are there at the end is chance."""
        costs.clear()
        assert run(program, engine, tools, journal, costs) == expected
        assert has_regions or all(costs[op_id] == usage[op_id] for op_id in costs.keys() & usage.keys())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.lmcj")
        whole, tools = begun(path), Tools(program)
        check(CountingEngine(seed=seed), tools, whole)
        steps = (1 << 30) - whole.commits
        whole.close()
        assert tools.calls["tell"] == plain.calls["tell"]
        path.unlink(missing_ok=True)

        first, sent = Tools(program), CountingEngine(seed=seed)
        broken = begun(path, commits=cut % (steps + 1) + 1)
        with suppress(JournalError):
            check(sent, first, broken)
        with suppress(JournalError):
            broken.close()
        ended = [entry for entry in entries(path) if entry[-1] != BEGUN]
        done = {(row, op, number) for kind, row, op, number, _ in ended if kind != "call"}
        told = ended_calls(path).count("tell")

        again, second = CountingEngine(seed=seed + 1), Tools(program)
        with resumed(path, Resumption(retry_writes={"tell"})) as journal:
            check(again, second, journal)
            journal.finish()
        assert not done & set(again.sent)
        if not has_race:
            assert second.calls["tell"] + told == plain.calls["tell"]
        third = Tools(program)
        with RunJournal.replay(str(path)) as replay:
            check(ReplayedEngine(again.tokenizer, replay, Target("toy")), third, replay)
        assert not third.calls
