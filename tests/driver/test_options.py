"""Every option is declared once; the signatures that offer it follow the declaration."""

from __future__ import annotations

import inspect
import typing

import pytest
import typer.main

import lmc
from lmc.cli.app import app
from lmc.driver.options import ENGINE_OPTIONS, OPTIONS, Options
from lmc.driver.targets.defaults import resolve_target
from lmc.ir.errors import InputError


def function(s: lmc.State) -> str:
    return s.gen("word")


def test_the_signatures_of_on_and_jit_offer_every_option_in_the_declared_order():
    on = inspect.signature(lmc.Program.on).parameters
    assert list(on) == ["self", *OPTIONS, "unknown"]
    jit = inspect.signature(typing.get_overloads(lmc.jit)[-1]).parameters
    assert list(jit) == list(OPTIONS)
    assert [jit[name].annotation for name in OPTIONS] == [on[name].annotation for name in OPTIONS]


def test_commands_show_the_help_of_an_option():
    commands = typing.cast("typing.Any", typer.main.get_command(app)).commands
    shown = {
        name: {each.name: each.help for each in commands[name].params if each.param_type_name == "option"}
        for name in commands
    }
    for name in (*ENGINE_OPTIONS[1:], "seed", "timeout", "order_sections"):
        assert shown["run"][name] == OPTIONS[name]["help"]
    assert shown["compile"]["level"] == OPTIONS["level"]["help"]
    assert shown["compile"]["profile"].startswith(OPTIONS["profile"]["help"])


def test_an_option_that_is_none_is_not_set():
    options = Options("toy", seed=3)
    assert options.updated("p", target=None, seed=None, timeout=None) == options
    assert options.updated("p", seed=0, level="O1") == Options("toy", level="O1")


@pytest.mark.parametrize(
    ("option", "value", "cause"),
    [
        ("target", 3, "target is 3"),
        ("dtype", "int8", "unknown dtype 'int8'"),
        ("deterministic", 1, "deterministic is 1"),
        ("kv_tokens", 0, "kv_tokens is 0"),
        *(("device", value, "unknown device") for value in ("gpu", "cuda:", "cuda:x", "CPU", "", "cuda:0\n", 0)),
        *(("prefill_tokens", value, f"prefill_tokens is {value!r}") for value in (0, -1, True, "8", 2.0)),
    ],
)
def test_an_engine_option_is_checked_when_the_target_is_resolved(option: str, value: object, cause: str):
    program = lmc.jit(target="builtin")(function).on(**{option: value})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=cause) as caught:
        resolve_target(program.options, environment={})
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seed", 1.5),
        ("seed", True),
        ("timeout", 0),
        ("timeout", "1"),
        ("order_sections", 1),
        ("priority", 1001),
        ("disabled_passes", "cse"),
    ],
)
def test_any_other_option_is_checked_at_the_line_that_sets_it(option: str, value: object):
    with pytest.raises(InputError, match=f"{option} is {value!r}") as caught:
        lmc.jit(function).on(**{option: value})  # pyright: ignore[reportArgumentType]
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
