from __future__ import annotations

import dataclasses

import pytest

from lmc.passes import PASSES
from lmc.passes.registry import describe_passes, option_text


def test_every_pass_is_described_by_its_docstring():
    described = {entry.name: entry for entry in describe_passes()}
    assert list(described) == list(PASSES)
    assert described["dce"].summary == "Drop ops whose results nobody reads."
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


@pytest.mark.parametrize(("value", "text"), [(None, "none"), (True, "true"), (8, "8"), ("a", "a")])
def test_options_print_as_a_pipeline_writes_them(value: object, text: str):
    assert option_text(value) == text
