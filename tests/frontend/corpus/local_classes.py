"""Classes that a program defines: they end the capture, and the rest runs as plain Python."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.frontend.corpus.cases import case

STOPS = "`ClassDef` can't be captured yet"


@case("ab", stops=STOPS)
def a_local_dataclass(s, a: str):
    s.gen("before", max_tokens=2)

    @dataclass
    class Tree:
        value: str
        kids: list["Tree"] = field(default_factory=list)

    def grow(depth):
        return Tree(s.gen("v", max_tokens=1), [grow(depth - 1)] if depth else [])

    tree = grow(1)
    return repr(tree), tree.kids[0].value


@case("ab", stops=STOPS)
def a_local_class_that_calls_super(s, a: str):
    class Base:
        def __init__(self, text):
            self.text = text

        def shown(self):
            return self.text + s.gen("x", max_tokens=2)

    class Loud(Base):
        mark: str = "!"

        def __init__(self, text):
            super().__init__(text.upper())

        def shown(self):
            return super().shown() + self.mark + type(self).__qualname__

    return Loud(a).shown()


@case("ab", stops=STOPS)
def a_local_named_tuple(s, a: str):
    class Row(NamedTuple):
        text: str
        number: int = 2

    def made(text):
        return Row(text)

    try:
        made()  # pyright: ignore[reportCallIssue]
    except TypeError as error:
        s += str(error)
    return made(s.gen("x", max_tokens=2)), Row._fields, made.__qualname__
