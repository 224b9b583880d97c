"""The tables of another language than lmc's own, which a program brings with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.heap.values import Abstract
from lmc.frontend.language.misuse import Handle

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Rule = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Language:
    """The rules of a language, each a function of the machine and what it is about.

    ``handle`` and ``branches`` are the classes in plain Python. ``methods`` and ``attributes`` are those of a handle,
    ``branch_methods`` those of its branches; ``appended`` is what appending does by class, ``functions`` make what is
    appended. ``set_item`` is ``s[key] = value``, ``add_to_branches`` is ``branches += content``. ``called`` gives the
    program that a call means, and its keyword arguments; ``result`` is what a call gives, from the handle and what the
    function returned. ``sampling`` is the language's own.
    """

    handle: type[Handle]
    branches: type[Handle]
    methods: Mapping[str, Rule]
    attributes: Mapping[str, Rule]
    branch_methods: Mapping[str, Rule]
    appended: Mapping[type, Rule]
    functions: Mapping[Any, Rule]
    set_item: Rule
    add_to_branches: Rule
    called: Callable[[Machine, Any, Mapping[str, Abstract]], tuple[Any, Mapping[str, Abstract]]]
    result: Callable[[Machine, Abstract, Abstract], Abstract]
    sampling: Any = None
