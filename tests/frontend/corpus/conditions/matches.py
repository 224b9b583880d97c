"""`match` on what a run decides."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

import enum

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


class Kind(enum.Enum):
    SHORT = "short"
    LONG = "long"


class Words:
    E = "e"
    T = "t"


@condition()
def matches_generated_text(s, a: str):
    s += a
    x = s.gen("x", regex="[a-e]")
    match x:
        case "a":
            s += "first"
            y = 1
        case "b" | "c":
            y = s.gen("y", max_tokens=2)
        case "d":
            return "left", x
        case _:
            y = None
    return y, s.gen("z", max_tokens=2)


@condition()
def matches_with_guards_and_names(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    match x:
        case y if "e" in y:
            effect("e", y)
            found = y
        case "12" | "" as z:
            found = z
        case w if "t" in w and len(w) > 2:
            found = w + "!"
        case other:
            found = other.upper()
    s += found
    return found, s.gen("z", max_tokens=2)


@condition()
def matches_a_name_and_then_its_guard(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9]")
    y = "none"
    match x:
        case "1" | "2" | "3" as y if s.gen("g", regex="[ab]") == "a":
            s += "guarded"
        case "1" | "2":
            s += "unguarded"
        case _:
            s += "other"
    return y, s.gen("z", max_tokens=2)


@condition(never=('s += "minus"', 's += "true"'))
def matches_numbers_and_constants(s, a: str):
    s += a
    n = s.gen("n", dtype=int, max_tokens=40)
    found = None
    if n % 3 == 1:
        found = n
    match found:
        case None:
            s += "none"
        case 1 | 4 | 7:
            s += "few"
        case -1:
            s += "minus"
        case True:
            s += "true"
        case _:
            s += "many"
    return s.gen("z", max_tokens=2)


@condition(never=("case _:", 'word = "never"'))
def matches_dotted_names(s, a: str):
    s += a
    x = s.gen("x", regex="[eot]")
    match x:
        case Words.E:
            s += "is e"
        case Words.T:
            s += "is t"
    kind = Kind.LONG if x == "o" else Kind.SHORT
    match kind:
        case Kind.SHORT:
            word = "short"
        case Kind.LONG:
            word = "long"
        case _:
            word = "never"
    return x, word, s.gen("z", max_tokens=2)


@condition()
def matches_without_a_case_for_it(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "before"
    match x[:1]:
        case "e":
            y = "e"
        case "t":
            y = "t"
    s += y
    return y


@condition()
def matches_in_matches(s, a: str):
    s += a
    x = s.gen("x", regex="[ab][abc]")
    match x[0]:
        case "a":
            match x[1]:
                case "a":
                    s += "twice a"
                case "b":
                    s += "a and b"
        case "b":
            match x:
                case "ba":
                    return "ba"
                case y:
                    s += y
    return s.gen("z", max_tokens=2)


@condition()
def matches_in_loops(s, a: str):
    s += a
    kept = 0
    for word in ["one", "two", "three"]:
        match s.gen("x", regex="[yn?]"):
            case "y":
                kept += 1
            case "n":
                continue
        s += word
    return kept, s.gen("z", max_tokens=2)


@condition()
def matches_sequences_of_generated_text(s, a: str):
    s += a
    x = s.gen("x", regex="[ab]")
    match (x, len(a)):
        case ("a", 1):
            s += "both"
        case ("a", _):
            s += "one"
        case _:
            s += "none"
    return s.gen("z", max_tokens=2)


@condition()
def the_subject_is_bound_anew_in_a_case(s, a: str):
    s += a
    x = s.gen("x", regex="[ab]")
    match x:
        case "a":
            x = "b"
            s += "was a"
        case "b":
            x = "a"
            s += "was b"
    match x:
        case "a":
            s += " is a"
        case _:
            s += " is b"
    return x, s.text()
