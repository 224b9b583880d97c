"""What goes one way or another when the program runs: methods of records, generations in `try`, `and`, `or`."""

# Programs as users write them.
# ruff: noqa: F841
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import pydantic

from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect


@dataclass
class Titled:
    name: str
    n: int = 2

    def title(self):
        effect("title")
        return self.name.upper()

    @property
    def loud(self):
        effect("loud")
        return self.name + "!"

    def bump(self):
        self.n += 1
        return self.n


class TitledModel(pydantic.BaseModel):
    name: str
    n: int = 2

    def title(self):
        effect("title")
        return self.name.upper()


@case(make=lambda: (Titled("bob"),))
def methods_of_records(s, it):
    s += f"{it.name} "
    x = s.gen("x", max_tokens=4)
    s += it.title()
    s += it.title()
    return s.gen("y", max_tokens=4), it.n


@case(make=lambda: (Titled("bob"),), stops="the program sets 'n' of a Titled that it was given, which its caller s")
def properties_of_records(s, it):
    s += f"{it.name} "
    effect("a")
    s += it.loud
    return it.bump(), it.bump(), it.n


@case("abc")
def generation_in_try(s, a):
    effect("start")
    s += a
    try:
        x = s.gen("x", max_tokens=4)
        effect("in try", x)
        y = int(x)
    except ValueError:
        effect("handler")
        y = s.gen("y", max_tokens=4)
    finally:
        effect("final")
    s += "end"
    return x, y, s.gen("z", max_tokens=3)


@case("abc")
def generation_before_try(s, a):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        effect("in")
        return int(x)
    except ValueError as e:
        effect("h", str(e))
        s += "bad"
        return s.gen("y", max_tokens=4)


@case("a", "b")
def and_or_ternary_of_generations(s, a, b):
    effect("l")
    s += a
    x = s.gen("x", max_tokens=4)
    y = x and b
    z = x or b
    w = "yes" if "e" in x else "no"
    effect(y)
    s += f"{y} {z} {w}"
    v = s.gen("v", max_tokens=3) if x else "none"
    t = (a and b) or "c"
    return y, z, w, v, t, not x, x and s.gen("u", max_tokens=2)
