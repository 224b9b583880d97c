"""Python constructs and containers."""

# Programs as users write them.
# ruff: noqa: C416, C419, RUF005, SIM107
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportMatchNotExhaustive=false, reportOptionalIterable=false

from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect


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


@case("a")
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


@case("a")
def bare_except(s, a: str):
    try:
        x = s.gen("x", max_tokens=3)
        y = int(x)
    except:  # noqa: E722
        y = None
    return y


@case("a")
def swallowing_finally(s, a: str):
    try:
        return s.gen("x", max_tokens=3)
    finally:
        effect("finally ran")
        return "from finally"  # noqa: B012


@case("a")
def raises_itself(s, a: str):
    effect("before")
    s += a
    s.gen("x", max_tokens=2)
    return 1 / 0


@case("a")
def raises_with_message(s, a: str):
    s.gen("x", max_tokens=2)
    raise ValueError(f"bad {a}")


@case("nonsense")
def raises_when_it_runs(s, a: str):
    s += a
    n = int(a)
    return n + 1


@case("a")
def asserts(s, a: str):
    assert a == "a"
    s.gen("x", max_tokens=2)
    assert len(a) > 3, "too short"


@case("a", stops="`**` gives the argument 'word', which is given already")
def an_argument_given_twice(s, a: str):
    more = {"word": s.gen("x", max_tokens=2)}
    try:
        return dict(word=a, **more)
    except TypeError:
        return "twice"


@case("a", stops="`**` takes a dict whose keys are not all texts")
def an_argument_without_a_name(s, a: str):
    x = s.gen("x", max_tokens=2)
    try:
        return dict(**{1: x})
    except TypeError as error:
        return str(error)
