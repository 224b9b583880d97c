"""The standard library as a table: what a program calls of it, and what each function does with its arguments."""

from __future__ import annotations

import html
import json
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import host_call
from lmc.frontend.heap.values import Abstract
from lmc.frontend.python.operators import run_now
from lmc.ir.core import Effect
from lmc.ir.types import ANY

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine

_PURE = frozenset(
    id(function)
    for function in (
        json.dumps,
        json.loads,
        *(getattr(re, name) for name in ("sub", "subn", "findall", "search", "match", "fullmatch", "split", "escape")),
        *(getattr(textwrap, name) for name in ("dedent", "indent", "fill", "wrap", "shorten")),
        html.escape,
        html.unescape,
        *(function for function in vars(math).values() if callable(function)),
    )
)
HANDLERS: Mapping[Any, Callable[..., Abstract]] = {}


def is_pure(function: Any) -> bool:
    """Whether it only computes."""
    return id(function) in _PURE


def call_pure(machine: Machine, function: Any, args: Sequence[Abstract], kwargs: Mapping[str, Abstract]) -> Abstract:
    """Call a function that only computes: now where its arguments are known, else in the run."""
    plain = [machine.plain(value) for value in (*args, *kwargs.values())]
    if all(each is not None for each in plain):
        values = [each[0] for each in plain if each is not None]
        named = dict(zip(kwargs, values[len(args) :], strict=True))
        return run_now(machine, function, values[: len(args)], getattr(function, "__name__", ""), **named)
    return host_call(machine, function, args, kwargs, effect=Effect.PURE, result_type=ANY)
