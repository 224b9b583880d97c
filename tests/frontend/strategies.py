"""Random programs as source text, written to a file so that they have lines, and loaded."""

import itertools
import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar

from hypothesis import strategies as st

_NUMBER = itertools.count()
MOST_ITEMS = 9  # of a list that a generated program changes
MOST_LOOPS = 3  # in each other
GEN_NAMES = "'g'", "'h'", "None"

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
    """Writes one program out of topics. It owns what they share: the names in scope, the budget, where it stands."""

    def __init__(self, draw: Any, topics: "tuple[type[Topic], ...]", budget: int) -> None:
        super().__init__(draw)
        self.names: dict[str, list[str]] = defaultdict(list, texts=["a", "b"], numbers=["n"], states=["s"])
        self.maybe: list[str] = []  # texts that may be unbound
        self.bare = {"a", "b", "n", "s", "words"}  # names that are of the function around, or of its caller
        self.budget = budget
        self.depth = self.loops = self.functions = 0
        self.mixed = len(topics) > 1
        self.topics = [topic(self) for topic in topics]

    def statement(self) -> list[str]:
        """A statement of one of the topics, as lines."""
        self.budget -= 1
        return self.pick(*self.topics).statement()

    def arm(self, most: int, indent: int, loop: bool, function: bool, bound: dict[str, str]) -> list[str]:
        """Statements below a head. Names that are bound in them, and ``bound`` by kind, are known there alone."""
        kept = {kind: list(names) for kind, names in self.names.items()}
        place = self.loops, self.functions, self.bare
        if function:
            self.loops, self.functions = 0, self.functions + 1
            self.bare = self.bare.union(*self.names.values())
        self.loops += loop
        self.depth += 1
        for kind, name in bound.items():
            self.names[kind].append(name)
        lines: list[str] = []
        for _ in range(self.draw(below(most)) + 1):
            if self.budget > 0:
                lines += self.statement()
        lines = lines or self.pick(*self.topics).idle()
        self.depth -= 1
        self.loops, self.functions, self.bare = place
        new = [name for name in self.names["texts"] if name not in kept["texts"] and name.isidentifier()]
        self.names.clear()
        self.names.update(kept)
        if new and not self.functions and self.one_in(6):
            self.maybe.append(new[0])
        return [" " * indent + line for line in lines]

    def function(self, length: int) -> str:
        """The program: the beginnings of its topics, so many statements at most, and all that it knows at its end."""
        lines = self.pick(*self.topics).beginning()
        for topic in self.topics:
            lines += topic.prelude()
        for _ in range(length):
            if self.budget > 0:
                lines += self.statement()
        shown: dict[str, str] = {}
        for topic in self.topics:
            shown.update(topic.SHOWN)
        parts = [f"[{', '.join(form.format(name) for name in self.names[kind])}]" for kind, form in shown.items()]
        parts += dict.fromkeys(part for topic in self.topics for part in topic.ending())
        lines.append(f"return {', '.join(parts)}")
        return "\n    ".join(["def program(s, a: str, b: str, n: int, words: list[str]):", *lines]) + "\n"


class Names:
    """The names of one kind that are in scope, as an attribute of a topic."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, topic: "Topic", owner: type) -> list[str]:
        return topic.names[self.name]


class Topic(Drawing):
    """Kinds of statements and expressions about one thing, over the names in scope, and control flow around them.

    The statements in an arm are of any topic of the program.
    """

    SHOWN: ClassVar = {"texts": "{}", "numbers": "{}", "lists": "{}", "flags": "{}"}
    texts, numbers, lists, flags, states = Names(), Names(), Names(), Names(), Names()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer.draw)
        self.writer = writer
        self.names = writer.names

    @property
    def loops(self) -> int:
        """The loops around, in the same function."""
        return self.writer.loops

    @property
    def depth(self) -> int:
        """The statements around."""
        return self.writer.depth

    @property
    def functions(self) -> int:
        """The inner functions around."""
        return self.writer.functions

    def fresh(self, prefix: str) -> str:
        return self.writer.fresh(prefix)

    def own(self, kind: str) -> list[str]:
        """Names of that kind that a statement here may bind anew."""
        known = (name for name in self.names[kind] if name[0].islower() and "(" not in name)
        return [name for name in known if name not in self.writer.bare]

    def bind(self, kind: str, prefix: str, value: str) -> list[str]:
        """A new name of that kind."""
        name = self.fresh(prefix)
        self.names[kind].append(name)
        return [f"{name} = {value}"]

    def maker(self, *kinds: str) -> list[str]:
        """A statement of one of these kinds."""
        return getattr(self, f"_{self.pick(*kinds)}")()

    def arm(
        self, most: int = 3, *, indent: int = 4, loop: bool = False, function: bool = False, **bound: str
    ) -> list[str]:
        """Statements of any topic below a head; ``bound`` are names that it binds, by kind."""
        return self.writer.arm(most, indent, loop, function, bound)

    # Parts that a topic overrides

    def beginning(self) -> list[str]:
        """The first lines of a program."""
        return ["s += a"]

    def prelude(self) -> list[str]:
        """Statements before those that are drawn."""
        return []

    def ending(self) -> list[str]:
        """Return further expressions for the result of a program, behind its names."""
        return ["s.text()[-9:]"]

    def idle(self) -> list[str]:
        """The statement of an arm for which no budget is left."""
        return ["pass"]

    def statement(self) -> list[str]:
        raise NotImplementedError

    def text(self) -> str:
        raise NotImplementedError

    def condition(self) -> str:
        """A condition, which most likely only a run decides."""
        return self.asked()

    def asked(self) -> str:
        """A condition that a generation decides."""
        return self.pick(
            's.select("more", ["yes", "no"]) == "yes"',
            '"e" in s.gen("g", max_tokens=2, temperature=1.0)',
            "s.gen(dtype=bool, temperature=1.0)",
            'len(s.gen("h", max_tokens=2, temperature=1.0)) > 3',
        )

    def items(self) -> str:
        """An iterable of texts."""
        raise NotImplementedError

    def errors(self) -> str:
        """Exceptions that a ``try`` catches."""
        return self.pick(
            "ValueError", "(KeyError, IndexError)", "(TypeError, ValueError)", "AttributeError", "Exception"
        )

    # Control flow

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.arm()]
        if self.one_in(5):
            lines += [f"elif {self.condition()}:", *self.arm()]
        return [*lines, "else:", *self.arm()] if self.one_in(2) else lines

    def _for(self) -> list[str]:
        if self.loops >= MOST_LOOPS:
            return self.idle()
        own = self.own("texts")
        old = bool(own) and self.one_in(5)
        name, items = self.pick(*own) if old else self.fresh("w"), self.items()
        head = self.pick(*[f"for {name} in {items}:"] * 3, f"for {self.fresh('i')}, {name} in enumerate({items}):")
        return [head, *self.arm(loop=True, texts=name), *self.otherwise()]

    def _while(self) -> list[str]:
        if self.loops >= MOST_LOOPS:
            return self.idle()
        counter, test = self.fresh("k"), self.condition()
        most = f"{counter} < {self.pick('2', '3', 'len(words)', 'n')} and {counter} < 4"
        head = self.pick(
            f"{most} and ({test})", f"{most} and not ({test})", f"({test} or {self.condition()}) and {most}", "True"
        )
        lines = [f"{counter} = 0", f"while {head}:", f"    {counter} += 1"]
        if head == "True":
            lines += [f"    if {counter} > 3: break", *self.pick([], [f"    if {test}: break"])]
        return [*lines, *self.arm(loop=True), *self.otherwise()]

    def otherwise(self) -> list[str]:
        """Draw the ``else`` of a loop, or nothing."""
        return ["else:", *self.arm(1)] if self.one_in(5) else []

    def _end(self) -> list[str]:
        """The end of a round or loop."""
        end = self.pick("continue", "break")
        if self.one_in(4):
            return [f"if {self.condition()}:", *self.arm(), f"    {end}"]
        return [f"if {self.condition()}: {end}"]

    def _leave(self) -> list[str]:
        """The end of the program, or of a function of its own."""
        text = self.text()
        values = [] if self.functions else [f"[{text}, {self.pick(*self.lists, 'None')}]", f"({text}, n)", "None"]
        return [f"if {self.condition()}: return {self.pick(text, *values)}"]

    def _try(self) -> list[str]:
        return self.tried(self.arm())

    def tried(self, body: list[str]) -> list[str]:
        """``body``, whose exceptions are caught, as a text that tells the kind of one."""
        name = self.fresh("t")
        caught = self.pick(f"{name} = str(e)[:9]", f"{name} = type(e).__name__")
        lines = [f"{name} = 'fine'", "try:", *body, f"except {self.errors()} as e:", f"    {caught}"]
        if self.one_in(4):
            lines += [f"    raise RuntimeError({name}){self.pick('', ' from e')}"]
        elif self.one_in(2):
            lines += self.arm(2)
        lines += ["else:", *self.arm(1)] if self.one_in(3) else []
        lines += ["finally:", "    effect('finally')"] if self.one_in(3) else []
        self.texts.append(name)
        return lines

    def _inner(self) -> list[str]:
        """A function of the program's own, and calls of it."""
        if self.functions > 1:
            return self.statement()
        name, text, given = self.fresh("f"), self.fresh("q"), self.text()
        default = self.pick("", f"k{text}=''", f"k{text}={given}")
        head = f"def {name}({', '.join(filter(None, (text, default)))}):"
        body = self.arm(function=True, texts=text)
        lines = [head, *body, f"    return {self.pick(text, f'({text} + {self.text()})[:9]')}"]
        call = self.pick(f"{name}({self.text()})", f"{name}(a)", f"''.join(map({name}, {self.items()}))[:9]")
        return [*lines, *self.bind("texts", "t", call)]


@st.composite
def programs_of(draw: Any, *topics: type[Topic], budget: tuple[int, int], length: tuple[int, int] = (99, 99)) -> str:
    """Source of a function ``program(s, a, b, n, words)`` out of these topics."""
    return Writer(draw, topics, draw(st.integers(*budget))).function(draw(st.integers(*length)))


class Plain(Topic):
    """Texts, numbers, lists and all that a state does, with conditions and loops that a run rarely decides."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.classes = self.one_in(6)

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
            return self.pick(*self.lists, "words", "WORDS", "[a, b]")
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

    def statement(self) -> list[str]:
        kinds = [
            "text",
            "number",
            "list",
            "if",
            "for",
            "while",
            "risk",
            "mutate",
            "effect",
            "unpack",
            "inner",
            "augment",
        ]
        kinds += [*["append", "typed"] * 2, *["gen"] * 3, "select", "fork", "role", "sub", "sample", "copy", "alias"]
        if self.loops:
            kinds += ["end"]
        return self.maker(*kinds, *["class"] * 3 * self.classes)

    def prelude(self) -> list[str]:
        return self._append() if self.writer.mixed else []

    def beginning(self) -> list[str]:
        return []

    def ending(self) -> list[str]:
        return []

    def items(self) -> str:
        return self.sequence()

    def _text(self) -> list[str]:
        return self.bind("texts", "t", self.text())

    def _number(self) -> list[str]:
        return self.bind("numbers", "n", self.number())

    def _list(self) -> list[str]:
        return self.bind("lists", "l", f"list({self.sequence()})")

    def _augment(self) -> list[str]:
        kind = self.pick("texts", "numbers")
        own = self.own(kind) if self.functions else [name for name in self.names[kind] if name.isidentifier()]
        if not own:
            return self._text()
        name = self.pick(*own)
        if kind == "numbers":
            return [f"{name} += 1"]
        return [f"{name} = ({name} + {self.text(1)})[:99]" if self.loops else f"{name} += {self.text(1)}"]

    def _risk(self) -> list[str]:
        risky = self.pick("int(a)", "WORDS[5]", f"int({self.text(0)})", "{'x': 1}[b]", "1 // (n - n)", "'ok'")
        return self.tried([f"    r = {risky}", "    effect('no error', r)", *(self.arm(1) if self.one_in(2) else [])])

    def _mutate(self) -> list[str]:
        if not self.lists:
            return self._list()
        name = self.pick(*self.lists)
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
        self.texts.extend((x, y))
        return [line]

    def _class(self) -> list[str]:
        """A class of the program's own, at which a capture ends."""
        name, made = self.fresh("K"), self.fresh("k")
        return [
            *["@dataclass"] * self.pick(0, 1),
            f"class {name}(Known):",
            f"    mark: str = {self.text(0)}",
            *self.pick([], ["    def tag(self):", f"        return super().tag() + {self.text(0)}"]),
            f"{made} = {name}()",
            *self.bind("texts", "t", f"{made}.tag() + {made}.mark + {name}.__qualname__ + str({name}.__annotations__)"),
        ]

    # Statements about states

    def write(self, state: str, text: str) -> str:
        """In a function ``+=`` would bind a name of its own."""
        return f"{state}.append({text})" if self.functions else f"{state} += {text}"

    def _append(self) -> list[str]:
        return [self.write(self.pick(*self.states), self.text())]

    def _gen(self) -> list[str]:
        options = self.pick(
            "max_tokens=3", "max_tokens=6, stop=' '", "max_tokens=4, temperature=1.0", "max_tokens=2, seed=7"
        )
        return self.bind("texts", "t", f"{self.pick(*self.states)}.gen({self.pick(*GEN_NAMES)}, {options})")

    def _typed(self) -> list[str]:
        state, kind = self.pick(*self.states), self.draw(below(5))
        if kind == 0:
            grammar = 'grammar=\'start: "a" start | "b"\''
            options = self.pick("regex='[a-c]{1,2}'", "choices=['x', 'y z', '12']", grammar)
            return self.bind("texts", "v", f"{state}.gen('g', max_tokens=300, {options})")
        if kind == 1:
            return self.bind("numbers", "v", f"{state}.gen(dtype=bool, temperature=1.0)")
        value = self.fresh("v")
        if kind == 2:
            digit = "{'type': 'integer', 'minimum': 0, 'maximum': 9}"
            schema = f"{{'type': 'object', 'properties': {{'k': {digit}}}, 'required': ['k']}}"
            return [f"{value} = {state}.gen('o', schema={schema})", *self.bind("numbers", "v", f"{value}['k']")]
        schema = self.pick("Small", "Small", "Checked")
        count = self.pick("", "", ", n=2")
        lines = [f"{value} = {state}.gen('o', schema={schema}{count}, max_tokens=300)"]
        lines += [f"{value} = {value}[1]"] if count else []
        lines += [*self.bind("numbers", "v", f"{value}.k"), *self.bind("texts", "v", f"{value}.w")]
        shown = f"f'{{{value}}}'"
        return [*lines, *self.pick([], [f"effect({shown})"], [self.write(state, shown)])]

    def _select(self) -> list[str]:
        choices = self.pick("['yes', 'no']", f"[{self.text(1)} + '1', 'other']", "['p', a + 'q']")
        method = self.pick("", ", method='greedy_token'", ", 'unconditional_likelihood_normalized'")
        return self.bind("texts", "t", f"{self.pick(*self.states)}.select('c', {choices}{method})")

    def _fork(self) -> list[str]:
        branches, branch = self.fresh("b"), self.fresh("v")
        count = self.pick("2", "1", "0", "len(words) + 1", "len(words)")
        return [
            f"{branches} = {self.pick(*self.states)}.fork({count})",
            f"for {branch} in {branches}:",
            f"    {branch} += {self.text(1)}",
            f"    {branch}.gen('j', max_tokens=3)",
            *self.arm(2, loop=True, states=branch),
            *self.bind("texts", "t", f"' '.join({branches}['j'])"),
        ]

    def _role(self) -> list[str]:
        state = self.pick(*self.states)
        if self.one_in(2):
            return [f"with {state}.{self.pick('user', 'assistant')}():", *self.arm(2)]
        return [self.write(state, f"{self.pick('user', 'system', 'assistant')}({self.text(1)})")]

    def _sub(self) -> list[str]:
        state = self.pick(*self.states)
        call = self.pick(f"sub({self.text(1)})", f"sub({self.text(0)}, times=2)", f"more.on_state({state})")
        return self.bind("texts", "t", call)

    def _sample(self) -> list[str]:
        return self.bind("lists", "l", f"{self.pick(*self.states)}.gen('many', n=2, max_tokens=2, temperature=0.8)")

    def _copy(self) -> list[str]:
        return self.bind("states", "v", f"{self.pick(*self.states)}.copy()")

    def _alias(self) -> list[str]:
        return self.bind("states", "v", self.pick(*self.states))


def programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)``."""
    return programs_of(Plain, budget=(14, 14), length=(2, 8))


def arguments() -> st.SearchStrategy[tuple[str, str, int, list[str]]]:
    """Arguments of such a program."""
    text = st.sampled_from(["", "x", "12", "hello there", "x y", "é{}%"])
    return st.tuples(text, text, st.integers(-1, 3), st.lists(st.sampled_from(["w", "x y", ""]), max_size=3))


def with_own_list(source: str) -> str:
    """``source`` with a copy of its argument ``words`` in its result: an argument itself can't be a part of that."""
    head, _, last = source.rstrip().rpartition("\n")
    last = re.sub(r"\bwords\b", "list(words)", last)
    return f"{head}\n{last}\n"
