from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.engine.toy import ToyEngine
from lmc.runtime.hints.pinned_prefixes import HeldPrefixes, PinBudget
from lmc.runtime.prepared import prepare
from tests.backend.programs import plan_of

NESTED = """
module @f {
  func @f(%x: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 [%x] : !ctx
    %2 = lm.prefill %1 : !ctx
    %3 = lm.prefill %2 : !ctx
    %4, %a = lm.gen %3 {id = "f/a"} : !ctx, !text
    %5 = lm.prefill %4 : !ctx
    lm.return %5 ()
  }
}
"""


def held() -> tuple[ToyEngine, HeldPrefixes, PinBudget]:
    engine = ToyEngine()
    budget = PinBudget(100)
    return engine, HeldPrefixes(prepare(plan_of(NESTED)).main, engine, budget), budget


def hold(engine: ToyEngine, prefixes: HeldPrefixes, instruction: int, length: int) -> None:
    prefixes.hold(instruction, engine.prefill(tuple(range(length))).future.result())
    prefixes.finished(instruction)


def test_prefixes_are_let_go_from_the_end_of_the_chain():
    engine, prefixes, budget = held()
    hold(engine, prefixes, 2, 10)
    hold(engine, prefixes, 3, 20)
    assert (len(engine.pinned), budget.held) == (2, 30)
    prefixes.finished(4)
    assert len(engine.pinned) == 2  # the last prefill still builds on them
    hold(engine, prefixes, 5, 30)
    assert (engine.pinned, budget.held) == ((), 0)


def test_all_are_let_go_at_the_end():
    engine, prefixes, budget = held()
    hold(engine, prefixes, 2, 10)
    prefixes.release()
    prefixes.release()
    assert (engine.pinned, budget.held) == ((), 0)


def test_budget_is_half_of_the_pool():
    engine = ToyEngine()
    assert PinBudget.of(engine).allows(10**9)
    engine._info = EngineInfo("toy", 100, 50)
    budget = PinBudget.of(engine)
    assert budget.allows(25)
    budget.take(20)
    assert not budget.allows(6)
    budget.give_back(1)
    assert budget.allows(6)
