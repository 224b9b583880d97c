"""Random programs whose functions change their arguments behind their backs: by a global, a method, a closure."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import HEADER, Drawing, below

ARGUMENTS_HEADER = (
    HEADER
    + """
import dataclasses


@dataclasses.dataclass
class Box:
    items: list
    size: int = 0


class Crate(BaseModel):
    items: list[str] = []
    size: int = 0


class Holder:
    def __init__(self):
        self.given = {}

    def put(self, name, q):
        change(self.given, name, q)


HELD = Holder()
LATER = []


def change(given, name, q):
    found = given.get(name)
    if type(found) is list:
        found.append(q) if len(found) < 4 else found.clear()
    elif type(found) is dict:
        found[q] = q
    elif type(found) is set:
        found.add(q)
    elif found is not None:
        found.size += 1
        found.items.append(q)


def put(name, q):
    change(HELD.given, name, q)


@tool
def put_by_tool(name: str, q: str) -> str:
    HELD.put(name, q)
    return q


def closing():
    def put_closed(name, q):
        change(HELD.given, name, q)

    return put_closed


put_by_closure = closing()


@tool(effect="reads")
def harmless(q: str) -> str:
    return q + "."


def apart(q):
    LATER.append(q)

"""
)
NAMES = ("words", "mixed", "table", "pool", "box", "crate", "nested", "preset")


class ArgumentWriter(Drawing):
    """Draws calls that change arguments, and reads of them."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)

    def read(self) -> str:
        return self.pick(
            "len(words)",
            "' '.join(words)",
            "words[-1]",
            "'q' in words",
            "[w for w in words]",
            "sorted(words)",
            "len(mixed)",
            "str(mixed)",
            "list(table)",
            "table.get('q')",
            "table['k']",
            "len(table)",
            "sorted(pool)",
            "'q' in pool",
            "box.size",
            "list(box.items)",
            "crate.size",
            "len(crate.items)",
            "nested[0][0]",
            "len(nested[0])",
            "nested[1]['k']",
            "list(preset)",
        )

    def change(self) -> str:
        name = repr(self.pick(*NAMES))
        value = self.pick("'q'", "text")
        return self.pick(
            f"put({name}, {value})",
            f"put_by_tool({name}, {value})",
            f"put_by_closure({name}, {value})",
            f"HELD.put({name}, {value})",
        )

    def statement(self) -> list[str]:
        kind = self.draw(below(10))
        if kind < 3:
            return [f"seen.append({self.read()})"]
        if kind < 5:
            return [self.change()]
        if kind == 5:
            return [f"text = s.gen('g', max_tokens=2) + {self.pick('harmless(text)', 'repr(apart(text))', 'text[:2]')}"]
        if kind == 6:
            items = self.pick("words", "mixed", "table", "sorted(pool)", "box.items", "nested[0]")
            return [
                f"for item in {items}:",
                "    seen.append(str(item))",
                f"    {self.change()}",
                "    if len(seen) > 9: break",
            ]
        if kind == 7:
            return ["if s.select('c', ['a', 'b']) == 'a':", f"    {self.change()}", f"seen.append({self.read()})"]
        if kind == 8:
            return [f"s += str({self.read()})"]
        return ["while len(seen) < 6:", f"    seen.append({self.read()})", f"    {self.change()}"]


@st.composite
def argument_programs(draw: Any) -> str:
    """Source of a ``program(s, text, words, mixed, table, pool, box, crate, nested, preset)``."""
    writer = ArgumentWriter(draw)
    body = [line for _ in range(draw(st.integers(2, 7))) for line in writer.statement()]
    names = ", ".join(NAMES[:-1])
    lines = [
        f"def program(s, text: str, {names}, preset=HELD.given.setdefault('preset', ['p'])):",
        "    seen = []",
        "    s += text",
    ]
    return "\n".join([*lines, *("    " + line for line in body), "    return seen, text"]) + "\n"


def given_arguments(module: Any, shared: frozenset[str], alias: bool) -> tuple[Any, ...]:
    """Arguments of such a program, of which those in ``shared`` can be changed by its functions.

    With ``alias`` several of them hold the same list.
    """
    words = ["w", "x y"]
    given = {
        "words": words,
        "mixed": ["m", 1],
        "table": {"k": "v"},
        "pool": {"a"},
        "box": module.Box(words if alias else ["b"]),
        "crate": module.Crate(items=["c"]),
        "nested": [words if alias else ["n"], {"k": "v"}],
    }
    preset = module.program.signature.parameters["preset"].default
    preset[:] = ["p"]
    module.LATER.clear()
    module.HELD.given.clear()
    module.HELD.given.update({name: value for name, value in {**given, "preset": preset}.items() if name in shared})
    return ("hi", *given.values())
