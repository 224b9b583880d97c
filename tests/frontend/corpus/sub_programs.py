"""Programs that call programs."""

# Programs as users write them.
# ruff: noqa: PLW2901

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.cases import CASES, Case, case


@JittedFunction
def greet(s, name: str, mark: str = "!"):
    s += f"Hello {name}{mark}"
    return s.gen("greeting", max_tokens=4, temperature=1.0)


@JittedFunction
def tail(s):
    s += " tail "
    s.gen("t", max_tokens=2)


@JittedFunction
def countdown(s, n: int):
    s += str(n)
    if n <= 0:
        return s.gen("g", max_tokens=2)
    return countdown(n - 1)


@JittedFunction
def endless(s, n: int):
    return endless(n + 1)


@case("Ann")
def sub_programs(s, name: str):
    first = greet(name)
    second = greet(name, mark="?")
    s += first + second
    tail.on_state(s)
    s += "x"
    tail.on_state(s)
    return s.gen("end", max_tokens=2), s["t"]


CASES["countdown"] = Case(countdown, (3,))


@case("x")
def sub_program_on_branches(s, a: str):
    branches = s.fork(2)
    for branch in branches:
        branch += a
        tail.on_state(branch)
    return branches["t"]
