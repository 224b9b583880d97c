"""A corpus of small programs. Each entry says how far it is captured: wholly (None), or up to a break about something."""

# ruff: noqa: F841, B006, B007, C401, C416, RET504, SIM102, SIM108, SIM118, PERF401, UP031, UP032, E711

import dataclasses
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pydantic

from lmc.frontend.function import JittedFunction as jit
from lmc.frontend.messages import assistant, gen, select, system, user
from lmc.frontend.tools import tool
from tests.frontend.harness import effect

TEMPLATE = "Q: %s\nA:"
CHOICES = ["yes", "no"]
SETTINGS = {"max_tokens": 6, "words": ["alpha", "beta"]}
NUMBERS = (1, 2, 3)


@dataclass
class Item:
    title: str
    count: int = 2


@dataclass(frozen=True)
class Config:
    length: int
    prefix: str


CONFIG = Config(5, "> ")


class Verdict(pydantic.BaseModel):
    score: int
    why: str


@tool(effect="reads")
def lookup(word: str) -> str:
    effect("lookup", word)
    return f"<{word}>"


@tool(effect="pure")
def length_of(word: str) -> int:
    return len(word)


@tool
def record(word: str) -> None:
    effect("record", word)


@tool(effect="reads")
def find(word: str) -> list[str]:
    return [word, word.upper()]


def shout(word: str) -> str:
    effect("shout", word)
    return word.upper()


def details(word):
    return {"word": word, "n": len(word), "parts": list(word[:2])}


@dataclass
class Case:
    program: jit
    args: Any = ()
    stops: str | None = None  # part of the break's cause


CASES: dict[str, Case] = {}


def case(
    *args: Any, stops: str | None = None, make: Callable[[], tuple[Any, ...]] | None = None
) -> Callable[[Any], jit]:
    def add(function: Any) -> jit:
        program = function if isinstance(function, jit) else jit(function)
        CASES[program.name] = Case(program, make or args, stops)
        return program

    return add


# Text


@case("the sea")
def straight_line(s, topic: str):
    s += system("You are brief.")
    s += user(f"Write about {topic}.")
    s += assistant(gen("text", max_tokens=8))
    return s["text"]


@case("x", 3, 2.5)
def fstrings(s, a: str, n: int, x: float):
    s += f"{a}|{a!r}|{a:>5}|{n}|{n:03d}|{x:.2f}|{x!s:>8}|{n + 1}|{a + 'b'}|{n!r:>{n}}|{{}}"
    return s.gen("g", max_tokens=4)


@case("abc", 4)
def percent_and_format(s, a: str, n: int):
    s += "%s and %d%%, %5s" % (a, n, a)
    s += " %s" % a
    s += " %(a)s" % {"a": a}
    s += " {} {0}".replace("{0}", "{}").format(a, n)
    s += " {x:>4} {0!r}".format(a, x=n)
    s += TEMPLATE % a
    s.gen("g", max_tokens=3)
    return a % () if False else s.text()


@case("  Some Text, with: parts  ")
def text_methods(s, a: str):
    b = a.strip().lower().replace(",", ";")
    s += b.title() + b.upper()[2:8] + b[-1] + b[::2]
    s += str(b.count("t")) + str(b.find("with")) + f"{b.startswith('some')}"
    s += "-".join(b.split()) + "|".join(sorted(b.split(":")))
    head, _, tail = b.partition(":")
    s += head + tail
    return [b.split(";")[0], len(b), b.isdigit()]


@case("one two")
def generated_text_methods(s, a: str):
    s += a
    first = s.gen("first", max_tokens=12)
    s += user_note(first) if False else first.strip().upper()
    words = first.split()
    s += f" {len(words)} {first[:3]} {first[-2:]!r} {'e' in first} {first == a}"
    return {"n": len(first), "has": "e" in first, "same": first == "x", "not": not first, "up": first.title()}


def user_note(x):
    return x


@case("a", "b")
def appending(s, a: str, b: str):
    s += "bare "
    s += a + " " + b
    s += gen("x", max_tokens=3) + " then " + gen("y", max_tokens=3)
    s += "start: " + select("z", ["p", "q"])
    return s["x"] + s["y"] + s["z"]


@case("a")
def roles(s, a: str):
    with s.system():
        s += "be good"
    with s.user():
        s += "say "
        s += a
    with s.assistant():
        s += "well, "
        s.gen("x", max_tokens=4)
    s += user("more")
    s.user("and " + a)
    s += assistant("ok " + gen("y", max_tokens=2) + "!")
    return s.text()


@case("a")
def implicit_turn(s, a: str):
    s += user(a)
    s += "Answer: "
    s.gen("x", max_tokens=4)
    s += ". And: "
    s.gen("x", max_tokens=4)
    return s["x"]


@case(["the", "cat", "sat"])
def joined_list(s, words: list[str]):
    s += " ".join(words)
    s += words[0] + words[-1]
    s.gen("g", max_tokens=4)
    return words[1]


@case("k", 7)
def numbers(s, a: str, n: int):
    s += f"{n * 2 + 1} {n / 2} {n // 2} {n % 3} {-n} {abs(-n)} {n**2} {round(n / 3, 2)} {a * 2} {min(n, 3)} {max(n, 3)}"
    s += str(int("12") + n) + str(float(n))
    return (n + 1, n > 3, n == 7, divmod(9, 4))


# Control flow on what is known


@case(["x", "y", "z"], 2)
def specialised_loop(s, items: list[str], n: int):
    for index, item in enumerate(items):
        if index >= n:
            break
        s += f"{index}:{item} "
        s.gen("g", max_tokens=2)
    else:
        s += "never"
    return s["g"]


@case("hello")
def specialised_if(s, a: str):
    if len(a) > 3 and a.startswith("h"):
        s += "long "
    elif a:
        s += "short "
    while len(a) < 3:
        a = a + "!"
    return s.gen("g", max_tokens=3) if a != "" else None


@case("hello", None, True)
def static_arguments(s, a: str, extra=None, flag: bool = False):
    s += a
    if extra is None and flag:
        s += " flagged"
    return s.gen("g", max_tokens=2)


@case({"q": "why?", "n": 2, "tags": ["a", "b"], "deep": {"x": "y"}}, [{"q": "1"}, {"q": "2"}], ("t", 1))
def nested_arguments(s, example: dict, shots: list, pair: tuple):
    for shot in shots:
        s += f"Q: {shot['q']}\n"
    s += example["q"] + example["deep"]["x"] + ",".join(example["tags"]) + str(example["n"])
    for key, value in example.items():
        s += f"{key} "
    text, number = pair
    s += f"{text}{number}"
    return s.gen("g", max_tokens=2)


@case(Item("Boat"), Verdict(score=3, why="so"))
def record_arguments(s, item: Item, verdict: Verdict):
    s += f"{item.title} {item.count} {verdict.why} {verdict.score}"
    if isinstance(item, Item) and item.count == 2:
        s += "!"
    return s.gen("g", max_tokens=2) + item.title


@case("x", "y", "w")
def star_arguments(s, first: str, *rest: str, **more: str):
    s += first + "".join(rest) + str(len(more))
    return s.gen("g", max_tokens=2)


@case("a", stops="which way the program goes")
def generated_condition(s, a: str):
    s += a
    effect("before")
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += " has e"
    else:
        s += " no e"
    effect("after", x)
    return s.gen("y", max_tokens=4)


@case("a", stops="which way the program goes")
def generated_while(s, a: str):
    s += a
    turns = 0
    while "z" not in s.gen("x", max_tokens=3, temperature=1.0) and turns < 4:
        turns += 1
        effect("turn", turns)
    return turns


@case("a", stops="its items are known only")
def iterate_any(s, a: str):
    s += a
    found = details(a)
    for key in found:
        s += key
    return s.gen("g", max_tokens=2)


@case("q 3")
def unpacking(s, a: str):
    (x, y), *rest = (a, "b"), "c", "d"
    first, *middle, last = [x, y, *rest]
    s += first + last + "".join(middle)
    [p, q] = a.split(" ")
    s += p + q
    for i, (j, k) in enumerate([("1", a), (a, "2")]):
        s += f"{i}{j}{k}"
    d = {"a": x, **{"b": y}}
    s += d["b"] + d.get("c", "none")
    return [z + "!" for z in (x, y)], {k: v for k, v in zip("ab", [x, y], strict=True)}


@case(stops=None)
def no_arguments(s):
    s += "tell"
    return s.gen(max_tokens=3) + s.gen(max_tokens=3)


# Branches


@case("essay", ["tone", "style", "logic"])
def forks(s, essay: str, dims: list[str]):
    s += user(f"Essay: {essay}")
    views = s.fork(len(dims))
    for view, dim in zip(views, dims, strict=True):
        view += user(f"Judge {dim}")
        view.gen("j", max_tokens=6, stop="\n")
    s += user("\n".join(view["j"] for view in views))
    s += " and ".join(views["j"])
    return s.select("verdict", ["good", "bad"]), views["j"], len(views)


@case("p")
def fork_prefix_is_kept(s, a: str):
    s += "prefix " + a
    one, two = s.fork(2)
    one += " one"
    two += " two"
    one.gen("x", max_tokens=3)
    two.gen("x", max_tokens=3)
    return one.text(), two.text(), s.text()


@case("p")
def aliased_branches(s, a: str):
    branches = s.fork(2)
    same = branches[0]
    branches[1] += "b"
    same += "a"
    branches[0] += a
    t = s
    t += "root"
    return [branch.text() for branch in branches], s.text(), same.gen("x", max_tokens=2)


@case("p")
def reassigned_in_forks(s, a: str):
    text = a
    for branch in s.fork(3):
        text = text + "!"
        branch += text
        text = branch.gen("g", max_tokens=3)
        branch += text
    s += text
    return text


@case("p")
def nested_forks(s, a: str):
    s += a
    texts = []
    for outer in s.fork(2):
        outer += "o"
        for inner in outer.fork(2):
            inner += "i"
            texts.append(inner.gen("g", max_tokens=2, temperature=1.0))
        outer.gen("h", max_tokens=2, temperature=1.0)
    again = s.fork(1)
    again[0].gen("g", max_tokens=2, temperature=1.0)
    return texts, again["g"]


@case("p")
def copies(s, a: str):
    s += a
    s.gen("x", max_tokens=2)
    other = s.copy()
    other += "other"
    other.gen("y", max_tokens=2)
    return "y" in s, "x" in other, other["x"] == s["x"], s.get("nothing", 5), other.get("y")


@case("p")
def early_return_in_one_fork(s, a: str):
    for index, branch in enumerate(s.fork(3)):
        branch += a
        if index == 1:
            return branch.gen("g", max_tokens=3)
    return None


@case("a")
def samples(s, a: str):
    s += a
    drawn = s.gen("many", n=3, max_tokens=3, temperature=1.0)
    s += drawn[0]
    s.gen("one", max_tokens=2)
    return drawn, len(drawn), " ".join(drawn)


@case("a")
def metas(s, a: str):
    s += a
    s.select("c", ["x", "y"], method="greedy_token")
    s.gen("g", max_tokens=2, logprobs=1)
    scores = s.meta("c")
    return scores["choices"], s.meta("g")["finish_reason"], f"{scores['choices'][0]}"


@case("a", ["l", "m"])
def selects(s, a: str, choices: list[str]):
    s += a
    one = s.select("one", choices)
    two = s.select("two", [a, "other"], "unconditional_likelihood_normalized")
    three = s.select("three", ("u", "v"), method="greedy_token")
    four = s.select("four", [c + "!" for c in CHOICES])
    return one, two, three, four


# Sub-programs


@jit
def greet(s, name: str, mark: str = "!"):
    s += f"Hello {name}{mark}"
    return s.gen("greeting", max_tokens=4, temperature=1.0)


@jit
def tail(s):
    s += " tail "
    s.gen("t", max_tokens=2)


@jit
def countdown(s, n: int):
    s += str(n)
    if n <= 0:
        return s.gen("g", max_tokens=2)
    return countdown(n - 1)


@jit
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


# Host calls


@case("w")
def tools(s, a: str):
    found = lookup(a)
    s += f"{found} {length_of(found)} {found.upper()}"
    record(found)
    x = s.gen("x", max_tokens=3)
    record(x)
    return [lookup(x), length_of(word=x) + 1]


@case("w")
def undeclared_functions(s, a: str):
    loud = shout(a)
    s += loud
    s += f"{loud:>4}"
    again = shout(s.gen("x", max_tokens=3))
    return loud, again.lower(), f"{again}"


@case("word")
def unknown_results(s, a: str):
    found = details(a)
    s += f"{found['word']} {found['n']} {found['parts'][0]}"
    s += found["word"]
    return found, found["n"], found.get("missing", "none")


@case("word")
def mutable_result_is_read_in_order(s, a: str):
    pile = make_pile()
    before = f"{pile}"
    push(a)
    return before, f"{pile}"


PILE: list[Any] = []


def make_pile():
    PILE.clear()
    return PILE


def push(x):
    PILE.append(x)
    effect("push", x)


@case("word", stops="which way the program goes")
def mutable_result_before_a_break(s, a: str):
    pile = make_pile()
    before = len(pile)
    push(a)
    s += f"{before}{len(pile)}"
    if s.gen("x", max_tokens=2) == "zz":
        return None
    push("later")
    return before, list(pile)


@case("w")
def library_calls(s, a: str):
    s += json.dumps({"a": a, "n": [1, 2]})
    s += re.sub(r"w+", "v", a)
    s += str(math.sqrt(4))
    return json.loads('{"x": [1]}')["x"][0], re.findall("w", a)


@case("w")
def makes_objects(s, a: str):
    s += a
    x = s.gen("x", max_tokens=2)
    return Item(x, 3), Verdict(score=1, why=x), Item(title=a).title


@case("w")
def prints(s, a: str):
    print(end="")
    effect("literal", [1, {"a": a}], (a, 2))
    return s.gen("g", max_tokens=2)


@case("w", stops="might change or keep")
def passes_its_list(s, a: str):
    xs = [a]
    effect(xs)
    xs.append("more")
    return s.gen("g", max_tokens=2), xs


# What lies outside


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


@case(make=reset, stops="binds 'COUNTER'")
def writes_global(s, a: str):
    global COUNTER
    s += a
    s.gen("x", max_tokens=2)
    COUNTER += 1
    return COUNTER


@case(make=reset, stops="changes a list that it did not make")
def appends_to_global(s, a: str):
    LOG.append(a)
    s += a
    return s.gen("x", max_tokens=2), list(LOG)


def bump():
    global COUNTER
    COUNTER += 1
    LOG.append("bump")


@case(make=reset, stops="may change data that the program has read")
def reads_after_write(s, a: str):
    before = COUNTER
    bump()
    return before, COUNTER


@case(make=reset, stops="may change data that the program has read")
def reads_before_write_and_break(s, a: str):
    before = len(LOG)
    bump()
    x = s.gen("x", max_tokens=2)
    if x == "nothing":
        return 0
    return before, len(LOG)


@case(make=lambda: (["a", "b"],), stops="did not make itself")
def changes_argument(s, words):
    words.append("c")
    s += " ".join(words)
    return s.gen("g", max_tokens=2)


@case("a")
def default_mutable(s, a: str, seen=[]):
    s += a + str(len(seen))
    return s.gen("g", max_tokens=2)


@case("a")
def shadowed_builtins(s, a: str):
    def len(x):
        return 3

    str = repr
    list = a.upper()
    s += f"{len(a)} {str(a)} {list}"
    return s.gen("g", max_tokens=2)


@case("a")
def nested_functions(s, a: str, n: int = 2):
    def ask(branch, word, *, times=n):
        nonlocal asked
        asked += 1
        branch += f"{word}{times}"
        return branch.gen("q", max_tokens=2)

    asked = 0
    twice = lambda word: ask(s, word) + ask(s, word)  # noqa: E731
    return twice(a), asked, [f(a) for f in (lambda x: x + "1", lambda x: x + "2")]


@case("a b c")
def containers(s, a: str):
    words = [a, "x"]
    words.append(a.upper())
    words.insert(0, "first")
    words += ["last"]
    words[1] = words[1] + "?"
    del words[2]
    table = {"k": a}
    table["j"] = s.gen("g", max_tokens=2)
    table.update(z=1)
    table.setdefault("new", a)
    s += " ".join(words) + "".join(str(v) for v in table.values())
    nested = [[w] * 2 for w in words if w]
    return words, table, nested, sorted(table), list(reversed(words)), words[1:3], ("x",) + (a,), "first" in words[:1]


@case("b", "a")
def over_symbolic_items(s, a: str, b: str):
    s += a
    g = s.gen("g", max_tokens=3)
    xs = [g, a, b]
    return sorted(xs), min(xs), max(a, b), any([x == "a" for x in xs]), list(map(str.upper, xs)), list(map(len, xs))


@case("a")
def walrus_and_chains(s, a: str, n: int = 3):
    if (m := n + 1) > 2 and 1 < n < m <= 10:
        s += f"{m}"
    words = [y for x in (a, "b") if (y := x + "!")]
    return words, a and n, (n or a), not n, a if n else None, [x for x in (n and [1, 2])]


@case("a")
def concrete_exceptions(s, a: str):
    try:
        {}["missing"]
    except KeyError as error:
        s += f"caught {error} "
    finally:
        s += "finally "
    try:
        int("x")
    except (ValueError, TypeError):
        s += "value "
    else:
        s += "never"
    s += a
    return s.gen("g", max_tokens=2)


@case("a", stops="may raise inside")
def try_around_conversion(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    try:
        n = int(x)
    except ValueError:
        n = -1
    finally:
        effect("finally")
    return n


@case("a", stops="may raise inside")
def bare_except(s, a: str):
    try:
        x = s.gen("x", max_tokens=3)
        y = int(x)
    except:  # noqa: E722
        y = None
    return y


@case("a", stops="may raise inside")
def swallowing_finally(s, a: str):
    try:
        return s.gen("x", max_tokens=3)
    finally:
        effect("finally ran")
        return "from finally"  # noqa: B012


@case("a", stops="this raises ZeroDivisionError")
def raises_itself(s, a: str):
    effect("before")
    s += a
    s.gen("x", max_tokens=2)
    return 1 / 0


@case("a", stops="this raises ValueError")
def raises_with_message(s, a: str):
    s.gen("x", max_tokens=2)
    raise ValueError(f"bad {a}")


@case("nonsense")
def raises_when_it_runs(s, a: str):
    s += a
    n = int(a)
    return n + 1


@case("a", stops="this raises AssertionError")
def asserts(s, a: str):
    assert a == "a"
    s.gen("x", max_tokens=2)
    assert len(a) > 3, "too short"


@case("a", 2)
def matches(s, a: str, n: int):
    match n:
        case 1:
            s += "one"
        case 2 | 3:
            s += "few"
        case _:
            s += "many"
    match [1, "x"]:
        case [1, other]:
            s += str(other)
    return s.gen("g", max_tokens=2)


@case("a", stops="`match` looks into")
def match_into_symbols(s, a: str):
    match [a, "x"]:
        case ["a", other]:
            s += str(other)
    return s.gen("g", max_tokens=2)


@case("a", stops="`match` looks at it")
def match_on_generated(s, a: str):
    match s.gen("x", max_tokens=2):
        case "yes":
            return 1
        case _:
            return 2


@case(make=lambda: ((c for c in "abc"),), stops="is used up")
def generator_argument(s, letters):
    for letter in letters:
        s += letter
    return s.gen("g", max_tokens=2)


@case("a", stops="runs its own code")
def with_user_manager(s, a: str):
    with Manager(a) as m:
        s += str(m)
    return s.gen("g", max_tokens=2)


class Manager:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        effect("enter")
        return self.name

    def __exit__(self, *_):
        effect("exit")


@case("a", stops="class inside")
def class_inside(s, a: str):
    class Local:
        pass

    s += a
    return s.gen("g", max_tokens=2)


@case("a", stops="looks at the running function")
def uses_locals(s, a: str):
    s += str(sorted(locals()))
    return s.gen("g", max_tokens=2)


@case("a", stops="takes a state")
def passes_state_on(s, a: str):
    helper(s, a)
    return s.gen("g", max_tokens=2)


def helper(s, a):
    s += a + " helped "
    s.gen("h", max_tokens=2)


@case("a", stops="calls the program greet()")
def helper_calls_program(s, a: str):
    s += outer_greet(a)
    return s.gen("g", max_tokens=2)


def outer_greet(a):
    return greet(a) + "!"


@case("a", stops="is known only when the program runs")
def set_of_generated(s, a: str):
    x = s.gen("x", max_tokens=2)
    return len({x, a})


@case("a")
def identity(s, a: str):
    x = s.gen("x", max_tokens=2)
    n = record(x)
    return x is None, x is not None, a is a, n is None, f"{n}"


@case("a", stops="stops at the first item that decides")
def any_over_generator(s, a: str):
    x = s.gen("x", max_tokens=2)
    return any(x == y for y in ("p", "q"))


@case("a")
def lookups(s, a: str):
    table = {"a": "found", "b": "other"}
    x = table[a]
    return x, a in table, a in ("a", "b"), a in {"a"}, ["zero", "one"][len(a)], "abc"[len(a) :]


@case("a")
def types_of_values(s, a: str, n: int = 1):
    x = s.gen("x", max_tokens=2)
    return (
        isinstance(x, str),
        isinstance(n, (int, float)),
        type(x) is str,
        callable(x),
        hasattr(x, "upper"),
        isinstance(x, int),
    )


@case("a")
def deletes_and_loops(s, a: str):
    out = []
    for i in range(5):
        if i == 1:
            continue
        for j in range(i):
            if j == 2:
                break
        else:
            out.append(f"{i}{a}")
            continue
        if i == 4:
            break
    x = a
    del x
    i = 10
    while True:
        i -= 1
        if i < 7:
            break
    return out, i


def plain_generator():
    yield 1


@case("a", stops="is a generator")
def is_generator(s, a: str):
    s += a
    yield 1


del CASES["is_generator"]


@case("a")
def named_with_slashes(s, a: str):
    s += a
    s.gen("a/b#1", max_tokens=2, temperature=1.0)
    s.gen("@x", max_tokens=2, temperature=1.0)
    s.gen("fork", max_tokens=2, temperature=1.0)
    f = s.fork(1)
    return f[0].gen("x", max_tokens=2, temperature=1.0), s["a/b#1"]


@case("a")
def many_concats(s, a: str):
    text = a
    for i in range(200):
        text = text + f" {i}"
    s += text
    total = ""
    for i in range(150):
        total += a
    return total, len(text)


@case("a", "b")
def bool_operators_on_symbols(s, a: str, b: str):
    x = a or b
    y = a and b
    s += x + y
    return (a == "a") and (b == "b"), not (a == b), a != b


@case("a")
def imports_inside(s, a: str):
    import json as j
    from math import floor

    s += j.dumps([a]) + str(floor(2.5))
    return s.gen("g", max_tokens=2)


@case("a")
def dataclass_field_read(s, a: str):
    names = [field.name for field in dataclasses.fields(Item)]
    s += a
    return s.gen("g", max_tokens=2)


CASES["dataclass_field_read"].stops = "its items are known only"
