"""Programs as nobody should write them: aliasing, laziness, early exits, changed defaults, exceptions that cross."""

# Programs as users write them.
# ruff: noqa: B006, B007, B018, C420, N818, PLW0603, PLW2901
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalMemberAccess=false, reportUnboundVariable=false, reportUnusedExpression=false

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect

COUNT = [0]
G = {"n": 1}
NAME = "glob"


def fresh():
    COUNT[0] = 0
    G["n"] = 1
    return ("a",)


@case("abc")
def aliased_forks(s, a):
    s += a
    b = s.fork(3)
    c = b[0]
    c += " first"
    alias = [b[1], b[1]]
    for x in alias:
        x += "!"
    b[2].gen("q", max_tokens=3)
    d = c.copy()
    d += " deep"
    d.gen("q", max_tokens=3)
    c.gen("q", max_tokens=3)
    alias[0].gen("q", max_tokens=3)
    return [x["q"] for x in b], d["q"], d.text(), b[1] is alias[0], [x.text() for x in b]


@case(make=lambda: (["a", "b", "c"],))
def lists_changed_while_gone_over(s, items):
    out = list(items)
    seen = []
    for x in out:
        seen.append(x)
        if len(out) < 6:
            out.append(x + "+")
        if x == "b":
            out.remove("c")
    for i, x in enumerate(out):
        if i == 1:
            out.pop()
    d = {x: 1 for x in out}
    try:
        for k in d:
            d[k + "z"] = 2
    except RuntimeError as e:
        seen.append(str(e))
    s += ",".join(seen)
    return seen, out, s.gen("x", max_tokens=3)


@case(make=lambda: ("a", ["q"]), stops="the program changes a list or dict that it was given, which its caller")
def changed_default(s, a, acc=[]):
    acc.append(a)
    s += f"{len(acc)} {acc}"
    return s.gen("x", max_tokens=3), list(acc)


@case("a")
def changed_default_inside(s, a):
    def add(x, acc=[]):
        acc.append(x)
        return acc

    add(a)
    add("q")
    g = s.gen("g", max_tokens=2)
    add(g)
    return add("z")


def maker(k):
    @JittedFunction
    def inner(s, x):
        s += f"{k}:{x}"
        return s.gen("i", max_tokens=3)

    return inner


I1, I2 = maker("one"), maker("two")


@case("a")
def programs_from_closures(s, a):
    x = I1(a)
    y = I2(x)
    fs = [I1, I2]
    z = [f(y) for f in fs]
    s += "base"
    w = I1.on_state(s, "w")
    return x, y, z, w, s.text()


@case(make=lambda: (["a", "b", "", "dd"],), stops="from an iterator over items that only a run counts")
def lazy_generator(s, items):
    g = (effect("item", i) or f"{i}{x}" for i, x in enumerate(items) if x)
    first = next(g)
    s += first
    n = s.gen("n", max_tokens=2)
    rest = list(g)
    t = sum(len(x) for x in items)
    m = max((x for x in items), key=lambda x: len(x), default="")
    return first, rest, n, t, m, any(x == "b" for x in items), next(g, "done")


@case("a", "b", "c")
def nasty_star_arguments(s, *args, sep="-", **kw):
    a, *b = args
    s += sep.join([*b, a])

    def f(*x, **y):
        return x, y

    s += str(f(*args, **kw))
    return f(*args, **{**kw, "sep": sep}), s.gen("x", max_tokens=2)


@case("abc")
def walrus_everywhere(s, a):
    if (n := len(a)) > 1 and (t := a.upper()):
        s += f"{n}{t}"
    out = [(y := x, y * 2) for x in a]
    while (g := s.gen(max_tokens=2)) and n > 0:
        n -= 1
        effect(g)
    return out, y, n, g


@case("b", "zz")
def chained_comparisons(s, a, b):
    s += a
    x = s.gen("x", max_tokens=3)
    r = "a" < x < "z"
    r2 = (effect("l") or a) < (effect("m") or x) <= (effect("r") or b) != "q"
    r3 = a in b in [b, x]
    return r, r2, r3, a <= b == b


@case("ab", 7, 2.5)
def format_specs(s, a, n, f):
    s += f"{a:>10}|{a!r:<12}|{n:05d}|{f:.2f}|{n:{n}d}|{a:*^{n}}|{n=}|{a=!s}|{f:e}|{{}}"
    x = s.gen("x", max_tokens=3)
    s += f"{x:>8}|{x!r}|{x:{'<'}{n}}|{x!a:^10}|{len(x):03}|{x.upper():.2}"
    try:
        y = f"{a:d}"
    except ValueError as e:
        y = str(e)
    return y, s.text()


@case("ab")
def format_spec_that_raises(s, a):
    s += a
    x = s.gen("x", max_tokens=2)
    effect("before")
    return f"{x:d}"


@case("abc")
def matches_texts(s, a):
    s += a
    x = s.gen("x", max_tokens=2)
    match a:
        case "abc" | "def":
            r = 1
        case str():
            r = 2
        case _:
            r = 3
    match x:
        case "":
            q = 0
        case y if "e" in y:
            q = y
        case _:
            q = "other"
    match [x, a]:
        case [p, "abc"]:
            z = p
        case [p, *rest]:
            z = rest
    return r, q, z


@case("abc")
def matches_sequences(s, a):
    match a:
        case "abc" | "def":
            r = 1
        case "":
            r = 2
        case other:
            r = other + "!"
    s += str(r)
    match (a, len(a)):
        case ("abc", 3 as k):
            r = k
        case _:
            pass
    return r, s.gen("x", max_tokens=2)


@case("abc")
def deletes_the_state(s, a):
    s += a
    t = s
    del s
    t.gen("x", max_tokens=2)
    try:
        s
    except NameError as e:
        effect(str(e))
    b = t.fork(2)
    del t
    b[1].gen("y", max_tokens=2)
    return b[1]["y"], b[0].text()


@case("abc")
def state_in_a_dict(s, a):
    d = {"s": s, "o": [s.copy()]}
    d["s"] += a
    d["o"][0] += "other"
    d["s"].gen("x", max_tokens=2)
    d["o"][0].gen("y", max_tokens=2)
    d["s"] = d["o"][0]
    d["s"] += "more"
    return s.text(), d["o"][0].text(), s is d["s"], "x" in s, d["s"].get("x", "none")


class Mine(Exception):
    def __init__(self, v):
        self.v = v


@JittedFunction
def thrower(s, a):
    s += a
    g = s.gen("t", max_tokens=2)
    effect("throw", a)
    if a == "bad":
        raise Mine("v" + a)
    return g


@case(make=lambda: (["ok", "bad", "z"],))
def exceptions_cross_programs(s, items):
    out = []
    for i in items:
        try:
            out.append(thrower(i))
        except Mine as e:
            out.append(e.v)
            s += e.v
        else:
            s += "ok"
        finally:
            effect("fin", i)
    return out, s.gen("x", max_tokens=2), s.text()


@case("abc", stops="a user message can't follow bare text")
def exception_inside_a_role(s, a):
    s += "x"
    s.gen("p", max_tokens=2)
    with s.user():
        thrower("bad")


@case("abc", 3)
def leaves_role_blocks_early(s, a, n):
    with s.system():
        s += "sys"
    for i in range(n):
        with s.user():
            s += a
            if i == 1:
                return s.text(), i
        with s.assistant():
            x = s.gen("x", max_tokens=3)
            if not x:
                break
            if i == 0:
                continue
    return s.text(), x


def touch():
    COUNT[0] += 1
    G["n"] += 1


@case(make=fresh)
def global_data_changes(s, a):
    s += f"{G['n']}{NAME}"
    touch()
    s += f"{G['n']}{COUNT[0]}"
    x = s.gen("x", max_tokens=2)
    touch()
    return COUNT[0], G["n"], x


@case(make=fresh)
def global_name_is_bound(s, a):
    global NAME
    old = NAME
    NAME = a
    s += NAME
    x = s.gen("x", max_tokens=2)
    NAME = old
    return x, NAME


def pieces(log):
    for piece in ("a", "b"):
        try:
            yield piece
        except ValueError:
            log.append("not the generator's")


@case("w", stops="pieces() yields inside a `try` or `with` that sees how a block is left")
def an_exception_behind_a_yield(s, a: str):
    s += a
    log: list[str] = []
    try:
        for piece in pieces(log):
            log.append(piece + s.gen("g", max_tokens=1))
            raise ValueError(piece)
    except ValueError as error:
        log.append(str(error))
    return log


class Truth:
    def __init__(self, text):
        self.text = text

    def __bool__(self):
        effect("asked", self.text)
        return "e" in self.text


@tool
def truth_of(text: str):
    return Truth(text)


@case("w")
def operands_are_asked_once(s, a: str):
    s += a
    x, y = truth_of(s.gen("x", max_tokens=2)), truth_of(a)
    first = (x and y) or a
    second = (x or y) and (y or x) and a
    return first is a, second is a
