from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from lmc import passes
from lmc.passes import PASSES, FunctionPass, Pass, pipeline
from lmc.passes.pipelines import PIPELINES
from lmc.passes.registry import describe_passes, option_text


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
