"""Random programs full of conditions that only a run decides, crossed with everything the ways may leave behind."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import HEADER, Writer

CONDITIONS_HEADER = (
    HEADER
    + """
class RefusedError(Exception):
    pass


class CountedError(Exception):
    def __init__(self, text):
        effect("counted", text)
        super().__init__(text, 1)


def sure(s, text):
    if "e" in text and "t" in text:
        raise RefusedError(f"sure: {text}")
    s += "sure"
    return text + "!"


@jit
def judged(s, text: str):
    s += text
    x = s.gen("v", max_tokens=3, temperature=1.0)
    if "e" in x:
        effect("judged", x)
        return "good"
    if "t" in x:
        s += "t"
        s.gen("w", max_tokens=2, temperature=1.0)
    return x


@jit
def kept(s, words: list[str]):
    found = []
    for word in words:
        s += word
        x = s.gen("k", max_tokens=2, temperature=1.0)
        if "e" in x:
            continue
        found = [*found[:1], x]
    return "-".join(found) if len(words) < 2 else s.get("k", "none")

"""
)


class ConditionWriter(Writer):
    """Draws statements whose conditions depend on generations. ``bound`` are names that are bound on every way."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw, states=True)
        self.budget = 22
        self.flags: list[str] = []
        self.maybe: list[str] = []  # texts that may be unbound
        self.depth = 0
        self.loops = 0
        self.functions = 0

    # Expressions

    def text(self, depth: int = 1) -> str:
        kind = self.draw(st.integers(0, 15 if depth > 0 else 7))
        if kind < 7 or (kind == 7 and not self.maybe):
            return self.pick(*self.texts, *self.texts[-2:], '"lit"')
        if kind == 7:
            return self.pick(*self.maybe)
        if kind == 8:
            return f"f'{{{self.text(0)}}}|{{{self.text(0)}!r}}'"
        if kind == 9:
            return f"({self.text(0)} + {self.text(0)})"
        if kind == 10:
            return f"({self.text(0)} if {self.condition(0)} else {self.text(0)})"
        if kind == 11:
            return f"({self.text(0)} {self.pick('or', 'and')} {self.text(0)})"
        if kind == 12:
            return f"s.get({self.pick(repr('g'), repr('h'))}, {self.text(0)})"
        if kind == 13:
            return f"{self.pick('lookup', 'plain')}({self.text(0)})"
        if kind == 14:
            return f"''.join({self.sequence(0)})"
        return f"{self.text(0)}.upper()"

    def sequence(self, depth: int = 1) -> str:
        if depth <= 0 or self.draw(st.booleans()):
            return self.pick(*self.lists, "['p', b]")
        return self.pick(f"[{self.text(0)}, {self.text(0)}]", f"[w + '!' for w in {self.sequence(0)}]")

    def condition(self, depth: int = 1) -> str:
        kind = self.draw(st.integers(0, 11))
        if kind < 4:
            return f"{self.pick(*'eta')!r} in {self.text(0)}"
        if kind == 4:
            return f"len({self.text(0)}) > {self.pick('2', '3', 'n')}"
        if kind == 5 and self.flags:
            return self.pick(*self.flags)
        if kind == 6:
            return f"{self.pick(repr('g'), repr('h'))} in {self.pick(*self.states)}"
        if kind == 7 and depth > 0:
            return f"{self.condition(0)} {self.pick('and', 'or')} {self.condition(0)}"
        if kind == 8:
            return f"not ({self.condition(0)})"
        if kind == 9:
            return self.pick("n > 0", "'x' in a", "len(words) > 1")
        if kind == 10:
            return self.text(0)
        return f"{self.text(0)} == {self.text(0)}"

    # Statements

    def statement(self) -> list[str]:
        kinds = ["if", "if", "if", "rebind", "rebind", "gen", "gen", "append", "list", "grow", "item", "alias_list"]
        kinds += ["flag", "effect", "tool", "fork", "copy", "alias", "judged", "inner", "round", "dict", "swap"]
        kinds += ["match", "convert", "walrus"]
        if self.depth:
            kinds += ["leave", "leave", "raise"]
        return getattr(self, f"_{self.pick(*kinds)}")()

    def arm(self, indent: int = 4) -> list[str]:
        saved = (list(self.texts), list(self.numbers), list(self.lists), list(self.states), list(self.flags))
        self.depth += 1
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            self.budget -= 1
            if self.budget < 0:
                break
            lines += self.statement()
        self.depth -= 1
        new = [name for name in self.texts if name not in saved[0]]
        self.texts, self.numbers, self.lists, self.states, self.flags = saved
        if new and not self.functions and self.one_in(6):
            self.maybe.append(new[0])
        return [" " * indent + line for line in (lines or ["pass"])]

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.arm()]
        if self.one_in(4):
            lines += [f"elif {self.condition()}:", *self.arm()]
        if self.draw(st.booleans()):
            lines += ["else:", *self.arm()]
        return lines

    def _rebind(self) -> list[str]:
        own = [name for name in self.texts if name not in ("a", "b")]
        if own and not self.functions and self.draw(st.booleans()):
            return [f"{self.pick(*own)} {self.pick('=', '+=')} {self.text()}"]
        return self._text()

    def _match(self) -> list[str]:
        name = self.fresh("m")
        lines = [f"match {self.text(0)}:", f"    case {self.pick(*map(repr, 'eta'))} | '':", *self.arm(8)]
        self.texts.append(name)
        lines += [f"    case {name} if {self.condition(0)}:", *self.arm(8)]
        return [f"{name} = 'none'", *lines, *([] if self.draw(st.booleans()) else ["    case _:", *self.arm(8)])]

    def _convert(self) -> list[str]:
        name, text = self.fresh("c"), self.fresh("t")
        kinds = self.pick("ValueError", "(TypeError, ValueError)", "Exception")
        lines = [
            f"{text} = s.gen(regex='[0-9e]', temperature=1.0)",
            "try:",
            f"    {name} = {self.pick('int', 'float')}({text})",
            *self._handler(kinds, name),
            f"{text} = f'{{{name}}}'",
        ]
        self.texts.append(text)
        return lines

    def _handler(self, kinds: str, name: str) -> list[str]:
        ends = self.draw(st.integers(0, 5))
        if ends == 0:
            return [f"except {kinds} as error:", *self.arm(), f"    raise RefusedError(f'{{error}}') {self._cause()}"]
        if ends == 1:
            return [f"except {kinds}:", *self.arm(), "    raise"]
        return [f"except {kinds}:", *self.arm(), f"    {name} = {self.pick('-1', 'n')}"]

    def _cause(self) -> str:
        return self.pick("", "from error", "from None")

    def _raise(self) -> list[str]:
        if self.one_in(4):
            name = self.fresh("t")
            self.texts.append(name)
            return [f"{name} = sure({self.pick(*self.states)}, {self.text(0)})"]
        kind = self.pick("ValueError", "KeyError", "RefusedError", "CountedError")
        cause = self.pick("", "", " from None", " from KeyError(n)")
        return [f"if {self.condition(0)}: raise {kind}({self.text(0)}){cause}"]

    def _walrus(self) -> list[str]:
        name, flag = self.fresh("t"), self.fresh("f")
        self.flags.append(flag)
        if self.functions or self.draw(st.booleans()):
            return [f"{flag} = {self.condition(0)} and bool({name} := {self.text(0)})"]
        own = [known for known in self.texts if known not in ("a", "b")] or [name]
        name = self.pick(*own)
        return [f"{name} = {self.text(0)}", f"{flag} = {self.condition(0)} or bool({name} := {self.text(0)})"]

    def _append(self) -> list[str]:
        return [f"{self.pick(*self.states)}.append({self.text()})"]  # in a function `+=` would bind a name of its own

    def _gen(self) -> list[str]:
        name = self.fresh("t")
        options = self.pick("max_tokens=4", "max_tokens=4, temperature=1.0", "max_tokens=2, temperature=1.0")
        line = f"{name} = {self.pick(*self.states)}.gen({self.pick(repr('g'), repr('h'), 'None')}, {options})"
        self.texts.append(name)
        return [line]

    def _flag(self) -> list[str]:
        value = self.pick("s.gen(dtype=bool, temperature=1.0)", self.condition())
        self.flags.append(self.fresh("f"))
        return [f"{self.flags[-1]} = {value}"]

    def _grow(self) -> list[str]:
        own = [name for name in self.lists if name != "words"]
        if not own:
            return self._list()
        name = self.pick(*own)
        return [f"{name}.{self.pick(f'append({self.text(0)})', 'reverse()', f'insert(0, {self.text(0)})')}"]

    def _item(self) -> list[str]:
        own = [name for name in self.lists if name != "words"]
        if not own:
            return self._list()
        name = self.pick(*own)
        return [f"if {name}: {name}[{self.pick('0', '-1')}] = {self.text(0)}"]

    def _alias_list(self) -> list[str]:
        own = [name for name in self.lists if name != "words"]
        if not own:
            return self._list()
        if self.draw(st.booleans()) and not self.functions:
            return [f"{self.pick(*own)} = {self.pick(*own)}"]
        name = self.fresh("l")
        line = f"{name} = {self.pick(*own)}"
        self.lists.append(name)
        return [line]

    def _dict(self) -> list[str]:
        name, result = self.fresh("d"), self.fresh("t")
        lines = [
            f"{name} = {{'k': {self.text(0)}, 'l': {self.pick(*self.lists)}}}",
            f"if {self.condition(0)}:",
            f"    {name}['k'] = {self.text(0)}",
            f"{result} = {name}['k']",
        ]
        self.texts.append(result)
        return lines

    def _swap(self) -> list[str]:
        x, y = self.pick(*self.texts), self.pick(*self.texts)
        one, other = self.fresh("t"), self.fresh("t")
        lines = [f"{one}, {other} = ({y}, {x}) if {self.condition(0)} else ({x}, {y})"]
        self.texts += [one, other]
        return lines

    def _effect(self) -> list[str]:
        return [f"effect({self.text(0)})"]

    def _tool(self) -> list[str]:
        name = self.fresh("t")
        line = f"{name} = {self.pick('lookup', 'str(size', 'plain')}({self.text(0)})"
        self.texts.append(name)
        return [line + ")" if "str(" in line else line]

    def _fork(self) -> list[str]:
        branches, branch, joined = self.fresh("b"), self.fresh("v"), self.fresh("t")
        lines = [
            f"{branches} = {self.pick(*self.states)}.fork(2)",
            f"{branches}[0] += {self.text(0)}",
            f"if {self.condition(0)}:",
            f"    {branches}[{self.pick('0', '1')}].gen('j', max_tokens=2, temperature=1.0)",
            f"for {branch} in {branches}:",
            f"    {branch}.gen('j', max_tokens=3, temperature=1.0)",
            f"{joined} = ' '.join({branches}['j'])",
        ]
        self.texts.append(joined)
        return lines

    def _judged(self) -> list[str]:
        name = self.fresh("t")
        call = self.pick(
            f"judged({self.text(0)})", f"judged.on_state({self.pick(*self.states)}, {self.text(0)})", "kept(words)"
        )
        self.texts.append(name)
        return [f"{name} = {call}"]

    def _inner(self) -> list[str]:
        if self.functions:
            return self._gen()
        name, result = self.fresh("f"), self.fresh("t")
        self.functions += 1
        saved = self.loops, self.depth
        self.loops, self.depth = 0, 1
        body = self.arm()
        self.loops, self.depth = saved
        self.functions -= 1
        lines = [f"def {name}(q):", *body, f"    return q + {self.text(0)}", f"{result} = {name}({self.text(0)})"]
        self.texts.append(result)
        return lines

    def _round(self) -> list[str]:
        name = self.fresh("w")
        items = self.pick("['u', 'v']", "words", *self.lists)
        self.texts.append(name)
        self.loops += 1
        body = self.arm()
        self.loops -= 1
        self.texts.remove(name)
        return [f"for {name} in list({items})[:3]:", *body]

    def _leave(self) -> list[str]:
        if self.loops and self.draw(st.booleans()):
            return [f"if {self.condition(0)}: continue"]
        value = self.pick(self.text(0), f"[{self.text(0)}, {self.pick(*self.lists)}]", "None")
        return [f"if {self.condition(0)}: return {self.text(0) if self.functions else value}"]

    def function(self, length: int) -> str:
        body = ["s += a", *self._gen()]
        for _ in range(length):
            self.budget -= 1
            body += self.statement()
        results = f"[{', '.join(self.texts)}], [{', '.join(self.lists)}], [{', '.join(self.flags)}]"
        lines = ["def program(s, a: str, b: str, n: int, words: list[str]):", *("    " + line for line in body)]
        return "\n".join([*lines, f"    return {results}"]) + "\n"


@st.composite
def conditional_programs(draw: Any) -> str:
    """Source of a function ``program(s, a, b, n, words)`` with conditions that its generations decide."""
    return ConditionWriter(draw).function(draw(st.integers(2, 8)))
