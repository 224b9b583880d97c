"""Random programs full of loops whose rounds only a run counts, crossed with what ``condition_strategies`` writes."""

from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.condition_strategies import CONDITIONS_HEADER, Conditions
from tests.frontend.strategies import GEN_NAMES, MOST_LOOPS, Names, Topic, Writer, programs_of

LOOPS_HEADER = (
    CONDITIONS_HEADER
    + """
@tool(effect="pure")
def parts(word: str) -> list[str]:
    return word.split("e")[:3]


@tool(effect="reads")
def letters(word: str) -> list[str]:
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


class Loops(Conditions):
    """Loops that generations end, and what their rounds change. No text grows for long."""

    SHOWN: ClassVar = {**Conditions.SHOWN, "counts": "{}", "records": "{}"}
    counts, records = Names(), Names()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.clear = not self.one_in(6)  # no name is read that may be unbound

    def statement(self) -> list[str]:
        if self.clear:
            self.writer.maybe.clear()
        return self.maker(*self.kinds())

    def kinds(self) -> list[str]:
        """The kinds of statements, as often as they are drawn."""
        kinds = [*["loop"] * 4, "if", "if", *["rebind"] * 3, "gen", "gen", "append", "exchange"]
        kinds += ["count", "count", "item", "grow", "list", "alias_list", "flag", "effect", "tool", "fork", "copy"]
        kinds += ["alias", "judged", "inner", "dict", "entry", "entry", "swap", "helper", "choice", "closure", "tuple"]
        return kinds + ["leave"] * 2 * bool(self.depth) + ["end"] * 3 * bool(self.loops)

    def text(self, depth: int = 1) -> str:
        text = super().text(depth)
        return self.pick(*self.texts[2:]) if text in ("a", "b") and not self.one_in(5) and self.texts[2:] else text

    def items(self) -> str:
        text = self.text(0)
        return self.pick(
            f"{text}[:3]",
            f"({text})[:9]",
            f"({text}).split('e')[:9]",
            f"{text}.split()[:3]",
            f"list({text})[:4]",
            f"parts({text})",
            f"letters({text})",
            "words",
            "['u', 'v']",
            f"list({self.pick(*self.lists, 'words')})[:3]",
        )

    def short(self, text: str) -> str:
        return f"({text})[:9]"

    def prelude(self) -> list[str]:
        return [*self._gen(), *self._gen()]

    def ending(self) -> list[str]:
        return Topic.ending(self)

    def _loop(self) -> list[str]:
        return self._rebind() if self.loops >= MOST_LOOPS else self.maker("for", "while")

    # Changes made by rounds

    def _exchange(self) -> list[str]:
        own = self.own("texts")
        if len(own) < 2:
            return self._gen()
        x, y = self.pick(*own), self.pick(*own)
        return [f"{x}, {y} = {y}, {x}"]

    def _count(self) -> list[str]:
        own = self.own("counts")
        if not own or (not self.loops and self.one_in(2)):
            return self.bind("counts", "c", self.pick("0", "1", "n", f"len({self.text(0)})"))
        name = self.pick(*own)
        return [f"{name} = {name} {self.pick('+ 1', '- 1', '+ len(' + self.text(0) + ')', '+ 0.5')}"]

    def _dict(self) -> list[str]:
        if self.depth:
            return super()._dict()
        return self.bind("records", "d", f"{{'k': {self.text(0)}, 'n': 0, 'l': [{self.text(0)}, 'z']}}")

    def _entry(self) -> list[str]:
        if not self.records:
            return self._dict()
        name = self.pick(*self.records)
        return [
            self.pick(
                f"{name}['k'] = ({self.text(0)})[:9]",
                f"{name}['n'] += 1",
                f"{name}['l'][0] = ({name}['k'] + {name}['l'][1])[:9]",
                f"{name}['l'][1] = ({self.text(0)})[:5]",
                f"{name}['l'].reverse()",
            )
        ]

    def _helper(self) -> list[str]:
        text, state, letter = self.text(0), self.pick(*self.states), repr(self.pick(*"eto"))
        call = self.pick(
            f"searched({text}, {letter})", f"searched.on_state({state}, {text}, 'e')", f"tried({state}, {letter})"
        )
        return self.bind("texts", "t", call)

    def _choice(self) -> list[str]:
        return self.bind("texts", "t", f"{self.pick(*self.states)}.select({self.pick(*GEN_NAMES)}, ['yes', 'to', 'a'])")

    def _closure(self) -> list[str]:
        name = self.fresh("f")
        line = f"{name} = lambda q, e={self.text(0)}: q + e + {self.text(0)}"
        return [line, *self.bind("texts", "t", f"{name}({self.text(0)})[:9]")]

    def _tuple(self) -> list[str]:
        name, result = self.fresh("p"), self.fresh("t")
        lines = [f"{name} = ({self.text(0)}, {self.text(0)})", f"{result}, _ = {name}"]
        self.texts.append(result)
        return lines


def looping_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` with loops that its generations end."""
    return programs_of(Loops, budget=(26, 26), length=(2, 8))
