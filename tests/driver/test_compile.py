import gc

import pytest

from lmc.driver.compile.compile import Variants, collection_paused, compile_program
from lmc.driver.targets.registry import load_tokenizer
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError, LoweringError
from lmc.passes.pipelines import PipelineOptions
from tests.driver import programs

TOY = Target("toy")
TOKENIZER = load_tokenizer(TOY)


def find(variants: Variants, function: JittedFunction, *args: object, target: Target = TOY, level: str = "O2"):
    return variants.find(function, bind(function, args, {}), target, PipelineOptions(level), TOKENIZER)


@JittedFunction
def bounded(s, topic: str, limit: int):
    s += topic
    return s.gen("answer", max_tokens=limit)


def limited(variants: Variants, limit: int):
    """The form of a program whose longest output is an argument, which has to be known."""
    return find(variants, bounded, "a", limit)[0]


def test_compiled_holds_every_stage():
    compiled = compile_program(programs.judge, None, TOY, PipelineOptions("O2"), TOKENIZER)
    assert compiled.module.name == compiled.plan.name == "judge"
    assert compiled.breaks == ()
    assert compiled.remarks
    assert (compiled.target, compiled.level) == (TOY, "O2")
    assert any(isinstance(op, PrefillOp) for op in compiled.module.main.body.ops)
    assert not any(isinstance(op, PrefillOp) for op in compiled.captured.module.main.body.ops)
    assert compiled.prepared is compiled.prepared
    assert compiled.prepared.plan is compiled.plan


def test_level_0_runs_no_pass():
    compiled = compile_program(programs.judge, None, TOY, PipelineOptions("O0"), TOKENIZER)
    assert compiled.module is compiled.captured.module
    assert compiled.remarks == ()


def test_host_functions_are_those_of_the_program():
    compiled = compile_program(programs.breaks, None, TOY, PipelineOptions("O2"), TOKENIZER)
    assert compiled.hosts["note"]("abc") == "noted 3"
    assert programs.SIDE_EFFECTS == ["abc"]
    [found] = compiled.breaks
    assert found.location is not None
    assert found.location.file == programs.__file__


def test_an_unknown_level_is_refused():
    with pytest.raises(InputError, match="unknown optimization level 'O9'") as caught:
        compile_program(programs.judge, None, TOY, PipelineOptions("O9"), TOKENIZER)
    assert caught.value.remedy


def test_constraints_are_compiled_and_those_that_no_target_enforces_refused():
    compiled = compile_program(programs.constrained, None, TOY, PipelineOptions("O2"), TOKENIZER)
    assert [entry.digest is not None for entry in compiled.module.constraints] == [True]
    with pytest.raises(LoweringError, match="has a constraint") as caught:
        compile_program(
            programs.constrained,
            None,
            Target("remote", capabilities=Capabilities(structured="none")),
            PipelineOptions("O2"),
            TOKENIZER,
        )
    assert caught.value.location is not None
    assert caught.value.location.file == programs.__file__


def test_a_variant_is_found_again_while_its_guards_hold():
    variants = Variants()
    two, inputs = find(variants, programs.turns, ["a", "b"])
    again, other = find(variants, programs.turns, ["c", "d", "e"])
    assert again is two
    assert inputs != other
    forms = Variants()
    short, long = (limited(forms, limit) for limit in (1, 2))
    assert short is not long
    assert limited(forms, 1) is short


def test_one_capture_serves_every_target_and_level():
    variants = Variants()
    optimized, _ = find(variants, programs.judge, "x")
    plain, _ = find(variants, programs.judge, "y", level="O0")
    elsewhere, _ = find(variants, programs.judge, "y", target=Target("builtin"))
    assert len({id(optimized), id(plain), id(elsewhere)}) == 3
    assert optimized.captured is plain.captured is elsewhere.captured


def test_the_oldest_variant_goes_first():
    variants = Variants(limit=2)
    one, two = (limited(variants, limit) for limit in (1, 2))
    assert limited(variants, 1) is one
    limited(variants, 3)
    assert limited(variants, 1) is one
    assert limited(variants, 2) is not two


def test_garbage_collection_rests_and_comes_back():
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collection_paused():
        print(1 / 0)
    assert gc.isenabled()
    gc.disable()
    try:
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
