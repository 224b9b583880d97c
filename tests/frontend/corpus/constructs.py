"""Python constructs and containers."""

# Programs as users write them.
# ruff: noqa: C416, C419, RUF005, SIM107
# pyright: reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportMatchNotExhaustive=false, reportOptionalIterable=false

from lmc.frontend.program.function import JittedFunction
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


@case("a")
def dicts_of_iterators(s, a: str):
    def pairs():
        yield a, s.gen("x", max_tokens=2)
        yield "b", a

    words = s.gen("words", max_tokens=6).split()
    return (
        dict((key, s.gen("y", max_tokens=2)) for key in "ab"),  # noqa: C402
        dict(pairs(), c=1),
        dict(map(lambda key: (key, a), "cd")),  # noqa: C417
        dict((word, len(word)) for word in words),  # noqa: C402
        dict(zip("ab", iter([1, 2]))),  # noqa: B905
    )


@case("a", stops="takes an object of the program's own")
def a_list_of_the_run_takes_a_generator(s, a: str):
    groups = [[a]]
    if "e" in s.gen("x", max_tokens=3):
        groups.append([])
    groups[-1].extend(word + "!" for word in (a, "b"))
    groups.extend([word] for word in "cd")
    return groups


@case("a")
def causes_of_exceptions(s, a: str):
    found = []
    try:
        raise LookupError("l") from KeyError
    except LookupError as error:
        found.append(repr(error.__cause__))
    try:
        try:
            raise ValueError(a) from s.gen("x", max_tokens=2)
        except TypeError as error:
            found.append(str(error))
    except ValueError:
        found.append("wrong")
    try:
        raise KeyError(a) from None
    except KeyError as error:
        found.append(error.__cause__)
    return found


@case("a", stops="exception")
def a_cause_for_an_exception_that_a_name_holds(s, a: str):
    error = ValueError(a)
    s.gen("x", max_tokens=2)
    try:
        raise error from KeyError("k")
    except ValueError as caught:
        return repr(error.__cause__), caught is error


@JittedFunction
def more_on(s, word):
    s += word
    return s.gen("more", max_tokens=2)


@case("a")
def goes_on_with_a_state_that_may_be_none(s, a: str):
    other = s.copy() if "e" in s.gen("x", max_tokens=3) else None
    if other is not None:
        return more_on.on_state(other, a)
    return "none"


@case("a")
def targets_of_a_comprehension_that_are_items(s, a: str):
    rounds = []
    buffer = [a]
    for word in (a, "b"):
        buffer = [word]
        rounds.append(s.gen("x", max_tokens=2))
    return [buffer[0] for buffer[0] in rounds], buffer


@case("a")
def the_most_of_nothing(s, a: str):
    s.gen("x", max_tokens=2)
    try:
        return max(key=len)
    except TypeError as error:
        return str(error)


class LoudError(Exception):
    def __init__(self, text: str) -> None:
        effect("made", text)
        super().__init__(text)


@case("a")
def the_cause_of_an_error_of_the_run(s, a: str):
    x = s.gen("x", max_tokens=2)
    try:
        try:
            int(x)
        except ValueError as error:
            raise LoudError(x) from error
    except LoudError as error:
        return type(error.__cause__).__name__, str(error)
    return "a number", x
