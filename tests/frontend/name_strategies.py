"""Random programs whose generations have names that are one of a few texts: out of lists, dicts, sets and loops."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import Drawing

NAMES_HEADER = """
from lmc.frontend.program.function import JittedFunction as jit


def fill(s, names):
    form = {}
    for name in names:
        form[name] = s.gen(name, max_tokens=1, temperature=1.0)
    return form


def wrong(form, letter):
    return [name for name, value in form.items() if letter in value]

"""


class NameWriter(Drawing):
    """Draws statements over texts (``t``), lists (``xs``), dicts (``d``) and sets (``seen``) of names."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.budget = draw(st.integers(4, 11))
        self.loops = 0
        self.texts, self.lists, self.dicts, self.sets = ["t"], ["xs"], ["d"], ["seen"]
        self.boxes: list[str] = []

    def text(self) -> str:
        """A text that is most likely one of a few."""
        t = self.pick(*self.texts)
        known = self.pick("'p'", "'q'", "'r'")
        options = (
            [t] * 4 + [known] * 3 + [f"({t} + 'n')[:2]", f"{t}.upper()", f"({t} if {self.condition()} else {known})"]
        )
        xs = self.pick(*self.lists)
        options += [
            f"({xs} or ['u'])[-1]",
            "s.select('k', ['p', 'v'])",
            *(["a"] if self.one_in(10) else []),
        ]
        return self.pick(*options)

    def condition(self) -> str:
        options = ["'e' in s.gen('g', max_tokens=2, temperature=1.0)", "s.gen(dtype=bool, temperature=1.0)"]
        t, d = self.pick(*self.texts), self.pick(*self.dicts)
        return self.pick(*options, *options, f"{t} == 'p'", f"{t} in {d}", f"len({d}) < 2", self.pick(*self.lists))

    def items(self) -> str:
        """An iterable of names."""
        xs, d, seen = self.pick(*self.lists), self.pick(*self.dicts), self.pick(*self.sets)
        options = [xs, xs, f"{xs}[:2]", f"list({d})", d, f"{d}.keys()", f"sorted({d})", f"sorted({seen})"]
        return self.pick(
            *options, f"{xs} + ['w']", f"[q for q in {self.pick(xs, d)} if {self.condition()}]", f"reversed({xs})"
        )

    def statement(self) -> list[str]:
        kinds = ["ask"] * 4 + ["change"] * 5 + ["bind"] * 4 + ["if"] * 3 + ["refine"] + ["box"] * 2
        if self.loops < 2:
            kinds += ["for"] * 4 + ["while"] * 3
        return getattr(self, f"_{self.pick(*kinds)}")()

    def arm(self) -> list[str]:
        saved = [list(names) for names in (self.texts, self.lists, self.dicts, self.sets, self.boxes)]
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            self.budget -= 1
            lines += self.statement() if self.budget >= 0 else self._ask()
        self.texts, self.lists, self.dicts, self.sets, self.boxes = saved
        return ["    " + line for line in lines]

    def _ask(self) -> list[str]:
        return [
            self.pick(f"s.gen({self.text()}, max_tokens=1, temperature=1.0)", f"s.append(s.get({self.text()}, '-'))")
        ]

    def _bind(self) -> list[str]:
        kind = self.pick("text", "text", "text", "list", "dict", "set", "alias")
        if kind == "text":
            new = self.pick(self.pick(*self.texts), self.fresh("t"))
            line = f"{new} = {self.text()}"
            self.texts += [new] if new not in self.texts else []
            return [line]
        xs, d = self.pick(*self.lists), self.pick(*self.dicts)
        if kind == "alias":
            self.dicts.append(self.fresh("d"))
            return [f"{self.dicts[-1]} = {d}"]
        if kind == "list":
            new = self.pick(xs, self.fresh("xs"))
            line = f"{new} = list({self.items()})"
            self.lists += [new] if new not in self.lists else []
            return [line]
        if kind == "set":
            line = f"{self.pick(*self.sets)} = set({self.items()})"
            return [line]
        new = self.pick(d, self.fresh("d"))
        made = self.pick(
            "{}", f"{{{self.text()}: 'e'}}", f"dict({d})", f"{{k: v for k, v in {d}.items() if {self.condition()}}}"
        )
        self.dicts += [new] if new not in self.dicts else []
        return [f"{new} = {made}"]

    def _change(self) -> list[str]:
        xs, d, seen = self.pick(*self.lists), self.pick(*self.dicts), self.pick(*self.sets)
        other = self.pick(*self.dicts)
        text = self.text()
        options = [f"{d}[{text}] = 'e'"] * 3 + [f"{d} |= {other}"] * 2
        options += [
            f"{d}.update({other})",
            f"{d}.update([({text}, 'x')])",
            f"{d}.setdefault({text}, 'x')",
            f"{d}.pop({text}, None)",
            f"if {d}: {d}.popitem()",
            f"{d}.clear()",
            f"{seen}.add({text})",
            f"{seen}.discard({text})",
            f"{seen}.update({self.items()})",
            f"{xs}.append({text})",
            f"{xs}[:0] = [{text}]",
            f"{xs} += {self.items()}",
            f"if {xs}: {xs}.pop()",
            f"if {xs}: {xs}[0] = {text}",
            f"{xs}.sort()",
        ]
        line = self.pick(*options)
        return [f"if len({xs}) < 4: {line}" if not line.startswith("if") else line]

    def _box(self) -> list[str]:
        """Containers that are reached through another one, by what only a run knows."""
        if not self.boxes or self.pick(True, False, False):
            self.boxes.append(self.fresh("box"))
            d, other = self.pick(*self.dicts), self.pick(*self.dicts)
            return [f"{self.boxes[-1]} = {self.pick(f'[{d}, {other}]', f'({d}, {other})')}"]
        box = self.pick(*self.boxes)
        number = "s.gen('n', dtype=int, max_tokens=1, temperature=1.0) % 2"
        return [self.pick(f"{box}[{number}][{self.text()}] = 'e'", f"{box}[{number}].clear()")]

    def _refine(self) -> list[str]:
        d, xs = self.pick(*self.dicts), self.pick(*self.lists)
        return self.pick([f"{d} |= fill(s, {xs}[:3])"], [f"{xs} = wrong({d}, 'e')"])

    def _if(self) -> list[str]:
        lines = [f"if {self.condition()}:", *self.arm()]
        return [*lines, "else:", *self.arm()] if self.pick(True, False) else lines

    def _for(self) -> list[str]:
        item, d = self.fresh("t"), self.pick(*self.dicts)
        head = self.pick(*[f"for {item} in list({self.items()})[:3]:"] * 3, f"for {item}, _ in {d}.items():")
        self.texts.append(item)
        self.loops += 1
        body = self.arm()
        self.loops -= 1
        self.texts.remove(item)
        return [head, *body]

    def _while(self) -> list[str]:
        counter, test = self.fresh("k"), self.condition()
        self.loops += 1
        body = self.arm()
        self.loops -= 1
        return [f"{counter} = 0", f"while {counter} < 3 and {test}:", f"    {counter} += 1", *body]

    def function(self) -> str:
        first = self.pick("'p'", "s.select(None, ['p', 'q'])")
        body = ["s += a", f"t = {first}", "xs = ['p', 'q']", "d = " + self.pick("{}", "{'p': 'e', 'q': 'x'}")]
        body += ["seen = " + self.pick("set()", "{'p'}")]
        while self.budget > 0:
            self.budget -= 1
            body += self.statement()
        shown = f"[{', '.join(self.texts)}], [{', '.join(self.lists)}], [{', '.join(self.dicts)}], sorted(seen)"
        lines = ["def program(s, a: str, b: str, n: int, words: list[str]):", *("    " + line for line in body)]
        return "\n".join([*lines, f"    return {shown}, s.text()[-9:]"]) + "\n"


@st.composite
def named_programs(draw: Any) -> str:
    """Source of a function ``program(s, a, b, n, words)`` that asks for names which are one of a few texts."""
    return NameWriter(draw).function()
