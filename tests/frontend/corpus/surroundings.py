"""Globals, closures, and arguments that are changed."""

# Programs as users write them.
# ruff: noqa: B006, PLW0603
# pyright: reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false, reportConstantRedefinition=false

from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Config

TEMPLATE = "Q: %s\nA:"
CHOICES = ["yes", "no"]
SETTINGS = {"max_tokens": 6, "words": ["alpha", "beta"]}
NUMBERS = (1, 2, 3)
CONFIG = Config(5, "> ")


@case("w")
def reads_globals(s, a: str):
    s += TEMPLATE + CONFIG.prefix + a
    s += " ".join(SETTINGS["words"])
    for number in NUMBERS:
        s += str(number)
    s.gen("g", max_tokens=SETTINGS["max_tokens"])
    s.gen("h", max_tokens=CONFIG.length)
    return s.select("c", CHOICES)


def make_closure():
    prefix = "closure "
    limits = [2]

    def with_closure(s, a: str):
        s += prefix + a
        return s.gen("g", max_tokens=limits[0])

    return with_closure


case("w")(make_closure())


COUNTER = 0
LOG: list[str] = []


def reset() -> tuple[str]:
    global COUNTER
    COUNTER = 0
    LOG.clear()
    return ("w",)


@case(make=reset)
def writes_global(s, a: str):
    global COUNTER
    s += a
    s.gen("x", max_tokens=2)
    COUNTER += 1
    return COUNTER


@case(make=reset)
def appends_to_global(s, a: str):
    LOG.append(a)
    s += a
    return s.gen("x", max_tokens=2), list(LOG)


def bump():
    global COUNTER
    COUNTER += 1
    LOG.append("bump")


@case(make=reset)
def reads_after_write(s, a: str):
    before = COUNTER
    bump()
    return before, COUNTER


@case(make=reset)
def reads_before_write_and_break(s, a: str):
    before = len(LOG)
    bump()
    x = s.gen("x", max_tokens=2)
    if x == "nothing":
        return 0
    return before, len(LOG)


@case(make=reset)
def looks_up_prompts_after_a_write(s, a: str):
    bump()
    s += SETTINGS["words"][1] + a
    kind = s.gen("kind", max_tokens=2)
    if kind in SETTINGS or "words" in SETTINGS:
        s += f"{len(SETTINGS)} of {SETTINGS.get('rest', 'none')}"
    for key, value in SETTINGS.items():
        s += f"{key}: {value}"
    bump()
    return s.gen("x", max_tokens=2), LOG[-2:], LOG.count("bump")


@case(make=reset)
def takes_limits_before_a_write_and_prompts_behind(s, a: str):
    s += a
    x = s.gen("x", max_tokens=SETTINGS["max_tokens"])
    bump()
    return x, SETTINGS["words"]


@case(make=lambda: (["a", "b"],), stops="the program changes a list or dict that it was given, which its caller")
def changes_argument(s, words):
    words.append("c")
    s += " ".join(words)
    return s.gen("g", max_tokens=2)


@case("a")
def default_mutable(s, a: str, seen=[]):
    s += a + str(len(seen))
    return s.gen("g", max_tokens=2)
