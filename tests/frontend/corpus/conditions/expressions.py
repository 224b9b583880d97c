"""Conditional expressions, `and` and `or`, comparisons in a chain."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import length_of
from tests.frontend.harness import effect


@condition()
def a_conditional_expression(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "yes" if "e" in x else "no"
    z = s.gen("z", max_tokens=2) if "t" in x else x
    w = 1 if "o" in x else 2 if "a" in x else None
    s += y + z
    return y, z, w, s.gen("w", max_tokens=2)


@condition()
def and_and_or_of_conditions(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    both = "e" in x and "t" in x
    either = "e" in x or "t" in x or len(a) > 20
    mixed = len(x) > 3 and x
    other = x or "empty"
    if "e" in x and ("t" in x or "o" in x):
        s += "e and one of them"
    if not ("e" in x or len(a) < 2):
        s += "neither"
    return both, either, mixed, other, s.gen("y", max_tokens=2)


@condition()
def generations_in_and_and_or(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "e" in x and s.gen("y", max_tokens=2)
    z = "t" in x or s.gen("y", max_tokens=3, temperature=1.0)
    w = "e" in x and "t" in x and effect("both")
    return y, z, w, s.gen("y", max_tokens=3, temperature=1.0)


@condition()
def chained_comparisons(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    between = 3 < len(x) <= 5
    if "b" < x < "t":
        s += "between"
    return between, 1 < len(x) < 100 > len(a), s.gen("y", max_tokens=2)


@condition()
def conditional_expressions_in_other_expressions(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    words = [w + ("!" if w in x else "?") for w in ["e", "t"]]
    s += f"{'e' if 'e' in x else 'none'} {(x or 'x')[:2]}"
    f = lambda t: t if "e" in x else t.upper()  # noqa: E731
    total = sum(1 if w in x else 0 for w in ["e", "t", "o"])
    d = {"k": x if "t" in x else None}
    return words, f("a"), total, d, length_of("long" if "e" in x else "s")


@condition()
def conditional_expressions_of_lists(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    xs = ["e", x] if "e" in x else [x, "none"]
    for item in ["one", "two"] if "t" in x else ["three", "four"]:
        s += item
    xs.append("end")
    return xs


@condition()
def a_walrus_in_a_conditional_expression(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    z = (y := x.upper()) if "e" in x else (y := "none")
    return y, z


@condition()
def a_walrus_in_a_condition(s, a: str):
    s += a
    if "e" in (x := s.gen("x", max_tokens=4)):
        s += x
    elif (n := len(x)) > 2:
        s += str(n)
        x = "replaced"
    return x, s.gen("y", max_tokens=2)


@condition()
def not_of_what_is_merged(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    flag = False
    if "e" in x:
        flag = "t" not in x
    if flag:
        s += "flag"
    if not flag:
        s += "no flag"
    return flag, not flag, s.gen("y", max_tokens=2)
