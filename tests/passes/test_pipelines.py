from __future__ import annotations

import dataclasses
import importlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from lmc import passes
from lmc.ir.core import Block
from lmc.ir.errors import InputError
from lmc.passes import PASSES, FunctionPass, Pass, PassContext, parse_pipeline, pipeline, pipelines
from lmc.passes.hoist_prefixes import HoistPrefixes
from lmc.passes.pipelines import PIPELINES, describe_passes, option_text
from lmc.passes.plan_fork_join import PlanForkJoin


@dataclass(frozen=True)
class Configurable(FunctionPass):
    """A pass that does nothing, with an option of each type."""

    NAME = "configurable"

    count: int = 1
    share: float = 0.5
    loud: bool = False
    style: str = "plain"
    limit: int | None = None

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return block


@pytest.fixture
def configurable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PASSES, "configurable", Configurable)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_pipeline_has_no_pass(text: str):
    assert parse_pipeline(text.strip()) == ()


def test_passes_come_in_order_with_their_options():
    passes = parse_pipeline(" cse , hoist-prefixes{minimum_tokens=4},cse,plan-fork-join{}")
    assert [each.NAME for each in passes] == ["cse", "hoist-prefixes", "cse", "plan-fork-join"]
    assert passes[1] == HoistPrefixes(minimum_tokens=4)
    assert passes[3] == PlanForkJoin()


@pytest.mark.usefixtures("configurable")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("count=3", {"count": 3}),
        ("share=2, loud=true", {"share": 2.0, "loud": True}),
        ("style=fancy limit=none", {"style": "fancy", "limit": None}),
        ("limit=7,loud=false", {"limit": 7}),
    ],
)
def test_options_have_the_types_of_their_fields(options: str, expected: dict[str, object]):
    (made,) = parse_pipeline(f"configurable{{{options}}}")
    assert made == dataclasses.replace(Configurable(), **expected)


def test_an_option_may_be_written_with_dashes():
    assert parse_pipeline("hoist-prefixes{minimum-tokens=2}") == (HoistPrefixes(minimum_tokens=2),)


@pytest.mark.usefixtures("configurable")
@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("cse,hoist-prefxes", "unknown pass 'hoist-prefxes'", "did you mean hoist-prefixes"),
        ("zzz", "unknown pass 'zzz'", "use one of apply-profile, canonicalize, compile-constraints, cse"),
        ("cse,", "not a pipeline from '' on", "write pass names with commas"),
        (",cse", "not a pipeline from ',cse' on", "write pass names"),
        ("cse{", "not a pipeline from 'cse{' on", "write pass names"),
        ("cse}", "not a pipeline from 'cse}' on", "write pass names"),
        ("cse dce", "not a pipeline from 'cse dce' on", "write pass names"),
        ("hoist-prefixes{minimum=3}", "pass hoist-prefixes has no option 'minimum'", "did you mean minimum_tokens"),
        ("cse{a=1}", "pass cse has no option 'a'", "it has none"),
        ("plan-fork-join{width}", "option 'width' of pass plan-fork-join has no value", "write width=VALUE"),
        ("plan-fork-join{width=1,width=2}", "option 'width' of pass plan-fork-join is given twice", "give it once"),
        ("plan-fork-join{width=x}", "option 'width' of pass plan-fork-join can't be 'x'", "give int or none"),
        ("configurable{loud=yes}", "option 'loud' of pass configurable can't be 'yes'", "give bool"),
        ("configurable{share=x}", "option 'share' of pass configurable can't be 'x'", "give float"),
        ("plan-fork-join{width=0}", "width is 0", "at least one request"),
        ("hoist-prefixes{minimum_tokens=0}", "minimum_tokens is 0", "at least one token"),
    ],
)
def test_what_is_no_pipeline_is_told(text: str, cause: str, remedy: str):
    with pytest.raises(InputError) as caught:
        parse_pipeline(text)
    assert caught.value.cause == cause
    assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_levels_are_pipelines(level: str):
    assert pipeline(level).passes == parse_pipeline(pipelines.PIPELINES[level])


def test_an_unknown_level_is_told():
    with pytest.raises(InputError, match="unknown optimization level 'O3'") as caught:
        pipeline("O3")
    assert caught.value.remedy == "use one of O0, O1, O2"


def test_every_pass_is_described_by_its_docstring():
    described = {entry.name: entry for entry in describe_passes()}
    assert list(described) == list(PASSES)
    assert described["dce"].summary == "Drop ops with unused results."
    assert described["hoist-prefixes"].options == ("minimum_tokens=8",)
    assert described["plan-fork-join"].options == ("width=none",)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_says_what_it_does_when_it_is_sound_and_shows_ir(name: str):
    kind = PASSES[name]
    documentation = kind.__doc__ or ""
    assert documentation.partition("\n")[0].endswith(".")
    assert "sound" in documentation.lower() or name == "dce"
    assert "Before::" in documentation
    assert "After::" in documentation
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.default is not dataclasses.MISSING for field in dataclasses.fields(kind))


PACKAGE = Path(passes.__file__).parent


def test_every_pass_of_the_package_is_registered():
    """Nothing is listed by hand that could be forgotten without a test failing."""
    for path in PACKAGE.glob("*.py"):
        importlib.import_module(f"lmc.passes.{path.stem}")
    subclasses = {*Pass.__subclasses__(), *FunctionPass.__subclasses__()} - {FunctionPass}
    kinds = {kind for kind in subclasses if kind.__module__.startswith("lmc.passes.")}
    assert set(PASSES.values()) == kinds
    assert {name: kind.NAME for name, kind in PASSES.items()} == {name: name for name in PASSES}


def test_levels_name_passes_and_each_level_does_what_the_one_below_does():
    found = {level: [each.NAME for each in pipeline(level).passes] for level in PIPELINES}
    assert found["O0"] == []
    assert found["O2"][0] == "apply-profile"  # which does nothing where no profile is given
    assert found["O2"][1 : len(found["O1"]) + 1] == found["O1"]
    assert set(found["O2"]) <= set(PASSES)


def test_disabled_passes_are_left_out_wherever_they_stand():
    whole = [each.NAME for each in pipeline("O2").passes]
    left = [each.NAME for each in pipeline("O2", disabled=("dce", "cse")).passes]
    assert left == [name for name in whole if name not in ("dce", "cse")]


@pytest.mark.parametrize(
    ("level", "name", "remedy"), [("O1", "hoist-prefixes", "use one of dce"), ("O2", "ces", "cse")]
)
def test_a_pass_that_the_level_has_not_cannot_be_disabled(level: str, name: str, remedy: str):
    with pytest.raises(InputError, match=f"the pipeline of -{level} has no pass '{name}' to disable") as caught:
        pipeline(level, disabled=(name,))
    assert remedy in (caught.value.remedy or "")


def test_the_readme_names_every_file_and_every_pass():
    readme = (PACKAGE / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## How to add")[0]
    files = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    assert files == set(re.findall(r"`([\w/]+\.py)`", table))


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_tests_of_its_own(name: str):
    tests = Path(__file__).parents[1]
    assert (tests / "passes" / f"test_{PASSES[name].__module__.rpartition('.')[2]}.py").is_file()
    assert list((tests / "filecheck" / name).glob("*.lmir"))


@pytest.mark.parametrize(("value", "text"), [(None, "none"), (True, "true"), (8, "8"), ("a", "a")])
def test_options_print_as_a_pipeline_writes_them(value: object, text: str):
    assert option_text(value) == text
