"""Random programs whose generations have names that are one of a few texts: out of lists, dicts, sets and loops."""

from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.strategies import Names, Topic, programs_of

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


class NamesOfGenerations(Topic):
    """Generations whose names are one of a few texts (``keys``), and lists, dicts and sets of those."""

    SHOWN: ClassVar = {**Topic.SHOWN, "keys": "{}", "dicts": "{}", "sets": "sorted({})"}
    keys, dicts, sets, tables = Names(), Names(), Names(), Names()

    def prelude(self) -> list[str]:
        return [
            *self.bind("keys", "t", self.pick("'p'", "s.select(None, ['p', 'q'])")),
            *self.bind("lists", "xs", "['p', 'q']"),
            *self.bind("dicts", "d", self.pick("{}", "{'p': 'e', 'q': 'x'}")),
            *self.bind("sets", "seen", self.pick("set()", "{'p'}")),
        ]

    def text(self) -> str:
        """A text that is most likely one of a few."""
        t = self.pick(*self.keys)
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
        t, d = self.pick(*self.keys), self.pick(*self.dicts)
        return self.pick(*options, *options, f"{t} == 'p'", f"{t} in {d}", f"len({d}) < 2", self.pick(*self.lists))

    def items(self) -> str:
        """An iterable of names."""
        xs, d, seen = self.pick(*self.lists), self.pick(*self.dicts), self.pick(*self.sets)
        options = [xs, xs, f"{xs}[:2]", f"list({d})", d, f"{d}.keys()", f"sorted({d})", f"sorted({seen})"]
        return self.pick(
            *options, f"{xs} + ['w']", f"[q for q in {self.pick(xs, d)} if {self.condition()}]", f"reversed({xs})"
        )

    def statement(self) -> list[str]:
        kinds = [*["ask"] * 4, *["change"] * 5, *["bind"] * 4, *["if"] * 3, "refine", "box", "box"]
        return self.maker(*kinds, *[*["for"] * 4, *["while"] * 3] * (self.loops < 2))

    def idle(self) -> list[str]:
        return self._ask()

    def _ask(self) -> list[str]:
        return [
            self.pick(f"s.gen({self.text()}, max_tokens=1, temperature=1.0)", f"s.append(s.get({self.text()}, '-'))")
        ]

    def _bind(self) -> list[str]:
        kind = self.pick("keys", "keys", "keys", "lists", "dicts", "sets", "alias")
        d = self.pick(*self.dicts)
        if kind == "alias":
            return self.bind("dicts", "d", d)
        copied = f"{{k: v for k, v in {d}.items() if {self.condition()}}}"
        made = {
            "keys": self.text(),
            "lists": f"list({self.items()})",
            "sets": f"set({self.items()})",
            "dicts": self.pick("{}", f"{{{self.text()}: 'e'}}", f"dict({d})", copied),
        }[kind]
        own = self.own(kind)
        return [f"{self.pick(*own)} = {made}"] if own and self.one_in(2) else self.bind(kind, kind[0], made)

    def _change(self) -> list[str]:
        xs, d, seen = self.pick(*self.lists), self.pick(*self.dicts), self.pick(*self.sets)
        other = self.pick(*self.dicts)
        text = self.text()
        options = [f"{d}[{text}] = 'e'"] * 3 + [f"{d} |= {other}"] * 2 * (d in self.own("dicts"))
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
            *[f"{xs} += {self.items()}"] * (xs in self.own("lists")),
            f"if {xs}: {xs}.pop()",
            f"if {xs}: {xs}[0] = {text}",
            f"{xs}.sort()",
        ]
        line = self.pick(*options)
        return [f"if len({xs}) < 4: {line}" if not line.startswith("if") else line]

    def _box(self) -> list[str]:
        """Containers that are reached through another one, by what only a run knows."""
        if not self.tables or self.pick(True, False, False):
            d, other = self.pick(*self.dicts), self.pick(*self.dicts)
            return self.bind("tables", "box", self.pick(f"[{d}, {other}]", f"({d}, {other})"))
        box = self.pick(*self.tables)
        number = "s.gen('n', dtype=int, max_tokens=1, temperature=1.0) % 2"
        return [self.pick(f"{box}[{number}][{self.text()}] = 'e'", f"{box}[{number}].clear()")]

    def _refine(self) -> list[str]:
        d, xs = self.pick(*self.dicts), self.pick(*self.lists)
        return self.pick(
            [f"{d}.update(fill(s, {xs}[:3]))"],
            [f"{d} |= fill(s, {xs}[:3])"] if d in self.own("dicts") else self._ask(),
            [f"{xs} = wrong({d}, 'e')"] if xs in self.own("lists") else self._ask(),
        )

    def _for(self) -> list[str]:
        item = self.fresh("t")
        items = f"for {item} in list({self.items()})[:3]:"
        head = self.pick(items, items, items, f"for {item}, _ in {self.pick(*self.dicts)}.items():")
        return [head, *self.arm(loop=True, keys=item)]


def named_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` that asks for names which are one of a few texts."""
    return programs_of(NamesOfGenerations, budget=(4, 11))
