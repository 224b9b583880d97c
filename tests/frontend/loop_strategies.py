"""Random programs full of loops whose rounds only a run counts, crossed with what ``condition_strategies`` writes."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.condition_strategies import CONDITIONS_HEADER, ConditionWriter

MOST_LOOPS = 3  # in each other

LOOPS_HEADER = (
    CONDITIONS_HEADER
    + """
@tool(effect="pure")
def parts(word: str) -> list[str]:
    return word.split("e")[:3]


@tool(effect="reads")
def seen(word: str) -> list[str]:
    effect("lookup", word)
    return [word[:1], word[1:2]]


@jit
def searched(s, text: str, letter: str):
    s += text
    for found in text.split()[:3]:
        x = s.gen("k", max_tokens=2, temperature=1.0)
        if letter in x:
            effect("found", x)
            return x
        s += found
    return "none"


def tried(s, letter):
    k = 0
    while k < 3:
        k += 1
        x = s.gen("g", max_tokens=2, temperature=1.0)
        if letter in x:
            return x
        if not x:
            break
    else:
        s.append("!")
    return letter

"""
)


class LoopWriter(ConditionWriter):
    """Draws statements and loops. Each loop ends after a few rounds at most, and no text grows for long."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.budget = 26
        self.counters: list[str] = []
        self.dicts: list[str] = []
        self.clear = draw(st.integers(0, 5)) > 0  # no name is read that may be unbound

    def statement(self) -> list[str]:
        if self.clear:
            self.maybe.clear()
        kinds = [
            "loop",
            "loop",
            "loop",
            "loop",
            "if",
            "if",
            "rebind",
            "rebind",
            "rebind",
            "gen",
            "gen",
            "append",
            "exchange",
        ]
        kinds += ["count", "count", "item", "grow", "list", "alias_list", "flag", "effect", "tool", "fork", "copy"]
        kinds += ["alias", "judged", "inner", "dict", "entry", "entry", "swap", "helper", "choice", "closure", "tuple"]
        if self.depth:
            kinds += ["leave", "leave"]
        if self.loops:
            kinds += ["end", "end", "end"]
        return getattr(self, f"_{self.pick(*kinds)}")()

    def text(self, depth: int = 1) -> str:
        given, self.texts = self.texts, self.texts[2:] if self.draw(st.integers(0, 4)) else self.texts
        found = super().text(depth)
        self.texts = given
        return found

    # Loops

    def _loop(self) -> list[str]:
        if self.loops >= MOST_LOOPS:
            return self._rebind()
        return self._round() if self.draw(st.booleans()) else self._while()

    def _items(self) -> str:
        text = self.text(0)
        return self.pick(
            f"{text}[:3]",
            f"({text})",
            f"({text}).split('e')",
            f"{text}.split()[:3]",
            f"list({text})[:4]",
            f"parts({text})",
            f"seen({text})",
            "words",
            "['u', 'v']",
            f"list({self.pick(*self.lists)})[:3]",
        )

    def _round(self) -> list[str]:
        known = [name for name in self.texts if name not in ("a", "b")]
        old = bool(known) and not self.functions and self.one_in(3)
        name = self.pick(*known) if old else self.fresh("w")
        items = self._items()
        around = list(self.texts)
        self.texts.append(name)
        body = self._rounds()
        self.texts = around
        if not old and not self.functions and self.one_in(6):
            self.maybe.append(name)
        return [f"for {name} in {items}:", *body, *self._otherwise()]

    def _while(self) -> list[str]:
        counter = self.fresh("k")
        most = self.pick("2", "3", "len(words)", "n")
        form = self.draw(st.integers(0, 3))
        test = f"{counter} < {most} and {counter} < 4"
        lines = [f"{counter} = 0"]
        ahead = [f"    {counter} += 1"]
        if form == 0:
            lines.append(f"while {test} and ({self.condition()}):")
        elif form == 1:
            lines.append(f"while ({self.condition(0)} or {self.condition(0)}) and {test}:")
        elif form == 2:
            lines.append("while True:")
            ahead.append(f"    if {counter} > 3: break")
            if self.draw(st.booleans()):
                ahead.append(f"    if {self.condition(0)}: break")
        else:
            lines.append(f"while {test} and not ({self.condition(0)}):")
        return [*lines, *ahead, *self._rounds(), *self._otherwise()]

    def _rounds(self) -> list[str]:
        self.loops += 1
        body = self.arm()
        self.loops -= 1
        return body

    def _otherwise(self) -> list[str]:
        return ["else:", *self.arm()] if self.one_in(4) else []

    def arm(self, indent: int = 4) -> list[str]:
        counters, dicts = list(self.counters), list(self.dicts)
        lines = super().arm(indent)
        self.counters, self.dicts = counters, dicts
        return lines

    def _end(self) -> list[str]:
        end = self.pick("continue", "break")
        if self.one_in(3):
            return [f"if {self.condition(0)}:", *self.arm(), f"    {end}"]
        return [f"if {self.condition(0)}: {end}"]

    def _leave(self) -> list[str]:
        value = self.pick(self.text(0), f"[{self.text(0)}, {self.pick(*self.lists)}]", "None")
        return [f"if {self.condition(0)}: return {self.text(0) if self.functions else value}"]

    def _inner(self) -> list[str]:
        saved, self.counters = self.counters, []
        lines = super()._inner()
        self.counters = saved
        return _short(lines)

    def _text(self) -> list[str]:
        return _short(super()._text())

    # What rounds change

    def _rebind(self) -> list[str]:
        own = [name for name in self.texts if name not in ("a", "b")]
        if own and not self.functions:
            name = self.pick(*own)
            return [f"{name} = ({self.pick(name + ' + ', '')}{self.text()})[:9]"]
        return self._text()

    def _exchange(self) -> list[str]:
        own = [name for name in self.texts if name not in ("a", "b")]
        if len(own) < 2 or self.functions:
            return self._gen()
        x, y = self.pick(*own), self.pick(*own)
        return [f"{x}, {y} = {y}, {x}"]

    def _count(self) -> list[str]:
        if self.functions:
            return self._effect()
        if not self.counters or (not self.loops and self.draw(st.booleans())):
            self.counters.append(self.fresh("c"))
            return [f"{self.counters[-1]} = {self.pick('0', '1', 'n', 'len(' + self.text(0) + ')')}"]
        name = self.pick(*self.counters)
        return [f"{name} = {name} {self.pick('+ 1', '- 1', '+ len(' + self.text(0) + ')', '+ 0.5')}"]

    def _dict(self) -> list[str]:
        if self.depth:
            return super()._dict()
        self.dicts.append(self.fresh("d"))
        return [f"{self.dicts[-1]} = {{'k': {self.text(0)}, 'n': 0, 'l': [{self.text(0)}, 'z']}}"]

    def _entry(self) -> list[str]:
        if not self.dicts:
            return self._dict()
        name = self.pick(*self.dicts)
        return [
            self.pick(
                f"{name}['k'] = ({self.text(0)})[:9]",
                f"{name}['n'] += 1",
                f"{name}['l'][0] = ({name}['k'] + {name}['l'][1])[:9]",
                f"{name}['l'][1] = ({self.text(0)})[:5]",
                f"{name}['l'].reverse()",
            )
        ]

    def _grow(self) -> list[str]:
        own = [name for name in self.lists if name != "words"]
        if not own or (self.loops and self.draw(st.booleans())):
            return self._item()
        name = self.pick(*own)
        return [f"{name}.{self.pick(f'append(({self.text(0)})[:9])', 'reverse()', f'insert(0, {self.text(0)}[:9])')}"]

    def _helper(self) -> list[str]:
        name = self.fresh("t")
        call = self.pick(
            f"searched({self.text(0)}, {self.pick(*'eto')!r})",
            f"searched.on_state({self.pick(*self.states)}, {self.text(0)}, 'e')",
            f"tried({self.pick(*self.states)}, {self.pick(*'eto')!r})",
        )
        self.texts.append(name)
        return [f"{name} = {call}"]

    def _choice(self) -> list[str]:
        name = self.fresh("t")
        line = f"{name} = {self.pick(*self.states)}.select({self.pick(repr('u'), repr('g'))}, ['yes', 'to', 'a'])"
        self.texts.append(name)
        return [line]

    def _closure(self) -> list[str]:
        name, result = self.fresh("f"), self.fresh("t")
        lines = [
            f"{name} = lambda q, e={self.text(0)}: q + e + {self.text(0)}",
            f"{result} = {name}({self.text(0)})[:9]",
        ]
        self.texts.append(result)
        return lines

    def _tuple(self) -> list[str]:
        name, result = self.fresh("p"), self.fresh("t")
        lines = [f"{name} = ({self.text(0)}, {self.text(0)})", f"{result}, _ = {name}"]
        self.texts.append(result)
        return lines

    def function(self, length: int) -> str:
        body = ["s += a", *self._gen(), *self._gen()]
        for _ in range(length):
            self.budget -= 1
            body += self.statement()
        parts = (self.texts, self.lists, self.flags, self.counters, self.dicts)
        results = ", ".join(f"[{', '.join(names)}]" for names in parts)
        lines = ["def program(s, a: str, b: str, n: int, words: list[str]):", *("    " + line for line in body)]
        return "\n".join([*lines, f"    return {results}, s.text()[-9:]"]) + "\n"


def _short(lines: list[str]) -> list[str]:
    """``lines``, whose last binds a text, of which only the beginning is kept: rounds can't make it grow and grow."""
    name, text = lines[-1].split(" = ", 1)
    return [*lines[:-1], f"{name} = ({text})[:9]"]


@st.composite
def looping_programs(draw: Any) -> str:
    """Source of a function ``program(s, a, b, n, words)`` with loops that its generations end."""
    return LoopWriter(draw).function(draw(st.integers(2, 8)))
