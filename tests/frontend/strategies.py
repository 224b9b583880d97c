"""Random programs as source text, written to a file so that they have lines, and loaded."""

import itertools
import re
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from hypothesis import strategies as st

_NUMBER = itertools.count()
MOST_ITEMS = 9  # of a list that a generated program changes

HEADER = """
from dataclasses import dataclass
from lmc.frontend.program.function import JittedFunction as jit
from lmc.frontend.language.messages import assistant, gen, select, system, user
from lmc.frontend.tools.tools import tool
from pydantic import BaseModel, Field, field_validator
from tests.frontend.harness import effect
from typing import Literal

WORDS = ["one", "two"]
PAIR = ("p", 2)


@tool(effect="reads", retries=1)
def lookup(word: str) -> str:
    effect("lookup", word)
    return "<" + word + ">"


@tool(effect="pure", timeout=60)
def size(word: str) -> int:
    return len(word)


def plain(word):
    effect("plain", word)
    return word[::-1]


class Known:
    def tag(self):
        return type(self).__qualname__


class Small(BaseModel):
    k: int = Field(ge=0, le=9)
    w: Literal["x", "y z"] = "x"


class Checked(Small):
    @field_validator("k")
    @classmethod
    def check(cls, value):
        effect("check", value)
        if value == 7:
            raise ValueError("seven")
        return value + 1


@jit
def sub(s, text: str, times: int = 1):
    s += "sub " + text
    for _ in range(times):
        s.gen("inner", max_tokens=2, temperature=1.0)
    return s["inner"] if times else text


@jit
def more(s):
    s += " more "
    return s.gen("m", max_tokens=2)

"""


def many(text: str) -> list[str]:
    """Pieces of source text that two spaces or a line end separate."""
    return [part for part in re.split(r"\s{2,}|\n", text.strip()) if part]


@lru_cache
def _compiled(source: str, folder: Path) -> CodeType:
    """``source`` in a file of its own, compiled."""
    path = folder / f"generated_{next(_NUMBER)}.py"
    path.write_text(source, encoding="utf-8")
    return compile(source, str(path), "exec", dont_inherit=True)


def load(source: str, folder: Path, header: str = "") -> ModuleType:
    """The module that ``header`` and ``source`` are, each from its own file as cells of a notebook are.

    The file of a header is written, compiled and indexed once for all programs.
    """
    code = _compiled(source, folder)
    module = ModuleType(Path(code.co_filename).stem)
    module.__file__ = code.co_filename
    if header:
        exec(_compiled(header, folder), vars(module))
    exec(code, vars(module))
    return module


@lru_cache
def below(number: int) -> st.SearchStrategy[int]:
    """Numbers from 0, one strategy for each end: to make a strategy takes longer than to draw from it."""
    return st.integers(0, number - 1)


class Drawing:
    """Draws choices, and counts the names that it makes."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.count = 0

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return options[self.draw(below(len(options)))]

    def one_in(self, number: int) -> bool:
        """True once in so many draws."""
        return self.draw(below(number)) == 0

    def fresh(self, prefix: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{prefix}{self.count}"


class Writer(Drawing):
    """Draws statements and expressions over the names that are bound so far."""

    def __init__(self, draw: Any, *, states: bool) -> None:
        super().__init__(draw)
        self.states = ["s"] if states else []
        self.texts = ["a", "b"]
        self.numbers = ["n"]
        self.lists = ["words"]
        self.conditions: list[str] = []
        self.budget = 14
        self.classes = draw(st.integers(0, 5)) == 5

    # Expressions

    def text(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(*self.texts, '"lit"', '"x y"', "PAIR[0]")
        inner = lambda: self.text(depth - 1)  # noqa: E731
        kind = self.draw(below(20))
        if kind < 3:
            return self.text(0)
        if kind == 3:
            return f"({inner()} + {inner()})"
        if kind == 4:
            number = self.number(0)  # names and literals only: before 3.12 an f-string can't hold its own quotes
            return f"f'{{{self.text(0)}}}|{{{number}}}|{{{number}:03d}}|{{{self.text(0)}!r:>8}}'"
        if kind == 5:
            return f"{inner()}.{self.pick('upper()', 'strip()', 'title()', 'replace(chr(101), chr(69))', 'lower()')}"
        if kind == 6:
            return f"{inner()}[{self.pick('1:', ':3', '::2', '::-1', '-2:', f':{self.number(0)}')}]"
        if kind == 7:
            return f"'%s-%s' % ({inner()}, {self.number(depth - 1)})"
        if kind == 8:
            return f"'{{}} {{0}}'.replace('{{0}}', '{{}}').format({inner()}, {self.number(depth - 1)})"
        if kind == 9:
            return f"{self.pick(*['-', ''])!r}.join({self.sequence(depth - 1)})"
        if kind == 10:
            return f"str({self.number(depth - 1)})"
        if kind == 11:
            return f"({inner()} if {self.condition(depth - 1)} else {inner()})"
        if kind == 12:
            return f"({inner()} {self.pick('or', 'and')} {inner()})"
        if kind == 13:
            return f"{self.pick('lookup', 'plain')}({inner()})"
        if kind == 14:
            return f"''.join(w + '.' for w in {self.sequence(depth - 1)})"
        if kind == 15:
            return f"{{'k': {inner()}, 'j': {inner()}}}[{self.pick(repr('k'), repr('j'))}]"
        if kind == 16:
            return f"{self.pick('max', 'min')}({inner()}, {inner()})"
        if kind == 17:
            return f"(lambda q: q + {inner()})({inner()})"
        if kind == 18:
            return f"str({self.condition(depth - 1)})"
        return f"{inner()}.partition(' ')[0]"

    def number(self, depth: int = 2) -> str:
        if depth <= 0:
            return self.pick(*self.numbers, "2", "0", "PAIR[1]")
        inner = lambda: self.number(depth - 1)  # noqa: E731
        kind = self.draw(below(10))
        if kind < 3:
            return self.number(0)
        if kind == 3:
            return f"({inner()} {self.pick('+', '-', '*')} {inner()})"
        if kind == 4:
            return f"len({self.text(depth - 1)})"
        if kind == 5:
            return f"len({self.sequence(depth - 1)})"
        if kind == 6:
            return f"size({self.text(depth - 1)})"
        if kind == 7:
            return f"({inner()} // {self.pick('2', '3', inner())})"
        if kind == 8:
            return f"sum(len(w) for w in {self.sequence(depth - 1)})"
        return f"{self.text(depth - 1)}.count('e')"

    def sequence(self, depth: int = 1) -> str:
        if depth <= 0:
            return self.pick(*self.lists, "WORDS", "[a, b]")
        kind = self.draw(below(8))
        if kind < 2:
            return self.sequence(0)
        if kind == 2:
            return f"[{self.text(depth - 1)}, {self.text(depth - 1)}]"
        if kind == 3:
            return f"[w + '!' for w in {self.sequence(depth - 1)} if {self.pick('w', 'True', repr('e') + ' not in a')}]"
        if kind == 4:
            return f"sorted({self.sequence(depth - 1)})"
        if kind == 5:
            return f"list(map(str.upper, {self.sequence(depth - 1)}))"
        if kind == 6:
            return f"({self.sequence(depth - 1)} + {self.sequence(depth - 1)})"
        return f"list(reversed({self.sequence(depth - 1)}))"

    def condition(self, depth: int = 1) -> str:
        kind = self.draw(below(9))
        if kind == 0:
            return self.pick("True", "False", "n", "a", "words", "not b")
        if kind == 1:
            return f"{self.text(max(depth - 1, 0))} {self.pick('==', '!=', '<', 'in', 'not in')} {self.text(0)}"
        if kind == 2:
            return f"{self.number(0)} {self.pick('<', '>=', '==')} {self.number(0)}"
        if kind == 3:
            return f"0 <= {self.number(0)} < {self.pick('3', '100')}"
        if kind == 4:
            return f"{self.text(0)} in {self.sequence(0)}"
        if kind == 5:
            return f"not ({self.number(0)} > 1)"
        if kind == 6:
            return f"({self.number(0)} > 0 {self.pick('and', 'or')} {self.text(0)} == 'lit')"
        if kind == 7:
            return f"{self.text(0)}.startswith('x')"
        return f"isinstance({self.text(0)}, str)"

    # Statements

    def block(self, indent: int, length: int) -> list[str]:
        """Statements; names bound in them are not used outside, so that every name is bound where it is read."""
        saved = (list(self.texts), list(self.numbers), list(self.lists), list(self.states))
        lines: list[str] = []
        for _ in range(length):
            self.budget -= 1
            if self.budget < 0:
                break
            lines += self.statement()
        self.texts, self.numbers, self.lists, self.states = saved
        return [" " * indent + line for line in (lines or ["pass"])]

    def statement(self) -> list[str]:
        kinds = [
            "text",
            "number",
            "list",
            "if",
            "for",
            "while",
            "try",
            "mutate",
            "effect",
            "unpack",
            "nested",
            "augment",
        ]
        if self.classes:
            kinds += ["class"] * 3
        if self.states:
            kinds += [
                "append",
                "append",
                "gen",
                "gen",
                "gen",
                "typed",
                "typed",
                "select",
                "fork",
                "role",
                "sub",
                "sample",
                "copy",
                "alias",
            ]
        return getattr(self, f"_{self.pick(*kinds)}")()

    def _text(self) -> list[str]:
        value = self.text()
        self.texts.append(self.fresh("t"))
        return [f"{self.texts[-1]} = {value}"]

    def _number(self) -> list[str]:
        value = self.number()
        self.numbers.append(self.fresh("n"))
        return [f"{self.numbers[-1]} = {value}"]

    def _list(self) -> list[str]:
        value = self.sequence()
        self.lists.append(self.fresh("l"))
        return [f"{self.lists[-1]} = list({value})"]

    def _augment(self) -> list[str]:
        name = self.pick(*self.texts)
        return [f"{name} += {self.text(1)}"] if self.draw(st.booleans()) else [f"{self.pick(*self.numbers)} += 1"]

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.block(4, 2)]
        if self.draw(st.booleans()):
            lines += ["else:", *self.block(4, 2)]
        return lines

    def _for(self) -> list[str]:
        name = self.fresh("w")
        items = self.sequence()
        self.texts.append(name)
        body = self.block(4, 2)
        self.texts.pop()
        control = self.pick([], [f"    if {name} == 'x y': break"], [f"    if {name}: continue"])
        return [f"for {name} in {items}:", *body, *control, *self.pick([], ["else:", "    effect('else')"])]

    def _while(self) -> list[str]:
        name = self.fresh("i")
        return [
            f"{name} = 0",
            f"while {name} < {self.pick('2', '3', 'len(words)')}:",
            f"    {name} += 1",
            *self.block(4, 2),
        ]

    def _try(self) -> list[str]:
        risky = self.pick("int(a)", "WORDS[5]", f"int({self.text(0)})", "{'x': 1}[b]", "1 // (n - n)", "'ok'")
        lines = ["try:", f"    r = {risky}", "    effect('no error', r)"]
        if self.draw(st.booleans()):
            lines += ["except (ValueError, KeyError) as error:", "    effect(type(error).__name__)"]
        else:
            lines += ["except Exception:", *self.block(4, 1)]
        return lines + self.pick([], ["finally:", "    effect('finally')"], ["else:", "    effect('else')"])

    def _mutate(self) -> list[str]:
        own = [name for name in self.lists if name != "words"]
        if not own:
            return self._list()
        name = self.pick(*own)
        action = self.pick(
            f"append({self.text(1)})", "reverse()", f"insert(0, {self.text(0)})", "extend(WORDS)", "pop()"
        )
        # A list that grows while a loop goes through it must stop growing.
        return [f"if 0 < len({name}) < {MOST_ITEMS}: {name}.{action}"]

    def _effect(self) -> list[str]:
        return [f"effect({self.text(1)}, {self.number(1)})"]

    def _unpack(self) -> list[str]:
        x, y = self.fresh("t"), self.fresh("t")
        line = f"{x}, (*_, {y}) = {self.text(1)}, ({self.text(1)}, {self.text(1)})"
        self.texts += [x, y]
        return [line]

    def _class(self) -> list[str]:
        """A class of the program's own, at which a capture ends."""
        name, made, result = self.fresh("K"), self.fresh("k"), self.fresh("t")
        lines = [
            *["@dataclass"] * self.draw(st.booleans()),
            f"class {name}(Known):",
            f"    mark: str = {self.text(0)}",
            *self.pick([], ["    def tag(self):", f"        return super().tag() + {self.text(0)}"]),
            f"{made} = {name}()",
            f"{result} = {made}.tag() + {made}.mark + {name}.__qualname__ + str({name}.__annotations__)",
        ]
        self.texts.append(result)
        return lines

    def _nested(self) -> list[str]:
        name = self.fresh("f")
        result = self.fresh("t")
        lines = [f"def {name}(q, k={self.number(0)}):", *self.block(4, 1), f"    return q + str(k) + {self.text(1)}"]
        lines.append(f"{result} = {name}({self.text(1)})")
        self.texts.append(result)
        return lines

    # Statements about states

    def _append(self) -> list[str]:
        return [f"{self.pick(*self.states)} += {self.text()}"]

    def _gen(self) -> list[str]:
        name = self.fresh("t")
        options = self.pick(
            "max_tokens=3", "max_tokens=6, stop=' '", "max_tokens=4, temperature=1.0", "max_tokens=2, seed=7"
        )
        variable = self.pick("'g'", "'h'", "None")
        line = f"{name} = {self.pick(*self.states)}.gen({variable}, {options})"
        self.texts.append(name)
        return [line]

    def _typed(self) -> list[str]:
        value, state = self.fresh("v"), self.pick(*self.states)
        kind = self.draw(below(5))
        if kind == 0:
            grammar = 'grammar=\'start: "a" start | "b"\''
            options = self.pick("regex='[a-c]{1,2}'", "choices=['x', 'y z', '12']", grammar)
            self.texts.append(value)
            return [f"{value} = {state}.gen('g', max_tokens=300, {options})"]
        if kind == 1:
            self.numbers.append(value)
            return [f"{value} = {state}.gen(dtype=bool, temperature=1.0)"]
        if kind == 2:
            digit = "{'type': 'integer', 'minimum': 0, 'maximum': 9}"
            schema = f"{{'type': 'object', 'properties': {{'k': {digit}}}, 'required': ['k']}}"
            lines = [f"{value} = {state}.gen('o', schema={schema})", f"{value}n = {value}['k']"]
            self.numbers.append(f"{value}n")
            return lines
        schema = self.pick("Small", "Small", "Checked")
        count = self.pick("", "", ", n=2")
        lines = [f"{value} = {state}.gen('o', schema={schema}{count}, max_tokens=300)"]
        lines += [f"{value} = {value}[1]"] if count else []
        lines += [f"{value}n = {value}.k", f"{value}t = {value}.w"]
        self.numbers.append(f"{value}n")
        self.texts.append(f"{value}t")
        return [*lines, *self.pick([], [f"effect(f'{{{value}}}')"], [f"{state} += f'{{{value}}}'"])]

    def _select(self) -> list[str]:
        name = self.fresh("t")
        choices = self.pick("['yes', 'no']", f"[{self.text(1)} + '1', 'other']", "['p', a + 'q']")
        method = self.pick("", ", method='greedy_token'", ", 'unconditional_likelihood_normalized'")
        line = f"{name} = {self.pick(*self.states)}.select('c', {choices}{method})"
        self.texts.append(name)
        return [line]

    def _fork(self) -> list[str]:
        branches, branch = self.fresh("b"), self.fresh("v")
        lines = [
            f"{branches} = {self.pick(*self.states)}.fork({self.pick('2', '1', '0', 'len(words) + 1', 'len(words)')})"
        ]
        self.states.append(branch)
        lines += [
            f"for {branch} in {branches}:",
            f"    {branch} += {self.text(1)}",
            f"    {branch}.gen('j', max_tokens=3)",
        ]
        lines += self.block(4, 2)
        self.states.pop()
        joined = self.fresh("t")
        self.texts.append(joined)
        return [*lines, f"{joined} = ' '.join({branches}['j'])"]

    def _role(self) -> list[str]:
        state = self.pick(*self.states)
        if self.draw(st.booleans()):
            return [f"with {state}.{self.pick('user', 'assistant')}():", *self.block(4, 2)]
        return [f"{state} += {self.pick('user', 'system', 'assistant')}({self.text(1)})"]

    def _sub(self) -> list[str]:
        name = self.fresh("t")
        call = self.pick(
            f"sub({self.text(1)})", f"sub({self.text(0)}, times=2)", f"more.on_state({self.pick(*self.states)})"
        )
        self.texts.append(name)
        return [f"{name} = {call}"]

    def _sample(self) -> list[str]:
        name = self.fresh("l")
        self.lists.append(name)
        return [f"{name} = {self.pick(*self.states)}.gen('many', n=2, max_tokens=2, temperature=0.8)"]

    def _copy(self) -> list[str]:
        name = self.fresh("v")
        line = f"{name} = {self.pick(*self.states)}.copy()"
        self.states.append(name)
        return [line]

    def _alias(self) -> list[str]:
        name = self.fresh("v")
        line = f"{name} = {self.pick(*self.states)}"
        self.states.append(name)
        return [line]

    def function(self, length: int) -> str:
        body = []
        for _ in range(length):
            self.budget -= 1
            body += self.statement()
        results = f"[{', '.join(self.texts)}], [{', '.join(self.numbers)}], [{', '.join(self.lists)}]"
        first = "s" if self.states else "_s"
        lines = [f"def program({first}, a: str, b: str, n: int, words: list[str]):", *("    " + line for line in body)]
        return "\n".join([*lines, f"    return {results}"]) + "\n"


@st.composite
def programs(draw: Any, *, states: bool = True) -> str:
    """Source of a function ``program(s, a, b, n, words)``; without ``states`` it touches its first parameter never."""
    length = draw(st.integers(2, 8))
    return Writer(draw, states=states).function(length)


def arguments() -> st.SearchStrategy[tuple[str, str, int, list[str]]]:
    """Arguments of such a program."""
    text = st.sampled_from(["", "x", "12", "hello there", "x y", "é{}%"])
    return st.tuples(text, text, st.integers(-1, 3), st.lists(st.sampled_from(["w", "x y", ""]), max_size=3))


def with_own_list(source: str) -> str:
    """``source`` with a copy of its argument ``words`` in its result: an argument itself can't be a part of that."""
    head, _, last = source.rstrip().rpartition("\n")
    last = re.sub(r"\bwords\b", "list(words)", last)
    return f"{head}\n{last}\n"
