"""Python in the arms of conditions: decorators, defaults, shadowed names, closures, comprehensions, `del`."""

# Programs as users write them.
# ruff: noqa: B006, RUF021, RUF034, B905, C420, F841, PLE0643, PLW0120, PLW0603, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

import functools

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import Item, lookup, record
from tests.frontend.harness import effect

SEEN: list[str] = ["global"]
LIMIT = 3
COUNT = 0


def loud(function):
    @functools.wraps(function)
    def wrapped(s, a: str):
        effect("wrapped")
        return function(s, a), "!"

    return wrapped


@condition()
@loud
def a_decorated_program(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "e"
    else:
        s += "none"
    return s.gen("y", max_tokens=2)


@condition()
def decorated_functions_inside(s, a: str):
    def twice(function):
        def run(text):
            return function(function(text))

        return run

    @twice
    def marked(text):
        return text + ("!" if "e" in text else "?")

    s += a
    x = s.gen("x", max_tokens=4)
    if "t" in x:
        x = marked(x)
    s += x
    return x, marked(s.gen("y", max_tokens=2))


@condition()
def mutable_defaults_of_an_inner_function(s, a: str):
    def keep(text, found=[]):
        found.append(text)
        return ",".join(found)

    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += keep("e")
    else:
        s += keep(x)
    return keep("last"), s.gen("y", max_tokens=2)


@condition()
def mutable_defaults_in_one_arm(s, a: str):
    def keep(text, found=[]):
        found.append(text)
        return ",".join(found)

    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += keep("e")
    return keep("last"), s.gen("y", max_tokens=2)


@condition()
def shadowed_builtins(s, a: str):
    def len(text):  # noqa: A001
        return text.count("e")

    str, print = a, effect  # noqa: A001
    s += str
    x = s.gen("x", max_tokens=6)
    if len(x) > 1:
        print("many", x)
        list = ["many"]  # noqa: A001
    else:
        list = ["few"]  # noqa: A001
    return list, len(a), s.gen("y", max_tokens=2)


@condition()
def generators_as_arguments(s, a: str):
    def joined(parts, *more):
        return "+".join([*parts, *more])

    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        y = joined((w.upper() for w in ["p", x]), "end")
    else:
        y = joined(w for w in ["q"] if w in "qr")
    s += y
    return y, s.gen("y", max_tokens=2)


@condition()
def closures_made_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        suffix = "!"
        shout = lambda t: t.upper() + suffix  # noqa: E731
        y = shout(x)
    else:
        found = []
        keep = found.append
        keep(x)
        keep("two")
        y = "".join(found)
    s += y
    return y, s.gen("y", max_tokens=2)


@condition(never=('return "never"',))
def conditions_in_functions_in_functions(s, a: str):
    def outer(text):
        def inner(letter):
            if letter in text:
                return letter
            elif letter == "z":
                return "never"
            return "no " + letter

        one = inner("e")
        if one == "e":
            return one + inner("t")
        return one

    s += a
    x = s.gen("x", max_tokens=5)
    s += outer(x)
    return outer(s.gen("y", max_tokens=5))


@condition()
def comprehensions_with_conditions_inside(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    words = [w + "!" if w in x else w for w in ["e", "t", "o"]]
    table = {w: ("in" if w in x else "out") for w in ["e", "t"]}
    pairs = [(w, n) for w in ["e", "t"] for n in ([1, 2] if w in x else [3, 4])]
    s += " ".join(words)
    return words, table, pairs, s.gen("y", max_tokens=2)


@condition()
def a_comprehension_that_filters(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    found = [w for w in ["e", "t", "o"] if w in x]
    s += ",".join(found)
    return found, s.gen("y", max_tokens=2)


@condition()
def a_walrus_in_each_test(s, a: str):
    s += a
    x = s.gen("x", max_tokens=5)
    if (n := len(x)) > 2 and (m := x.count("e")) < 1:
        s += f"{n} {m}"
    elif (y := s.gen("y", max_tokens=2)) == x:
        s += y
    else:
        s += f"else {y}{n}"
    return n, s.gen("z", max_tokens=2)


@condition()
def chained_comparisons_that_generate(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "a" < x <= s.gen("y", max_tokens=4) < "zz":
        s += "in order"
    if not 1 <= len(x) < 3 != 4:
        s += "long"
    return x, s.gen("z", max_tokens=2)


@condition()
def and_or_with_effects(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "e" in x and (record("e") or "recorded")
    z = "t" in x or effect("no t") or lookup("none")
    if "o" in x and lookup(x) or effect("neither"):
        s += "o"
    return y, z, s.gen("z", max_tokens=2)


@condition()
def del_in_an_arm(s, a: str):
    s += a
    y = "old"
    xs = ["one", "two", "three"]
    d = {"a": 1, "b": 2}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        del xs[0], d["a"]
        del y
    else:
        del xs[1], d["a"]
    s += ",".join(xs)
    return xs, d, y


@condition()
def del_of_items_in_arms(s, a: str):
    s += a
    xs = ["one", "two", "three"]
    d = {"a": 1, "b": 2}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        del xs[0], d["a"]
        y = "deleted"
        del y
    else:
        del xs[-1:]
        del d["a"]
    s += ",".join(xs)
    return xs, d, s.gen("y", max_tokens=2)


@condition()
def a_global_in_an_arm(s, a: str):
    global COUNT
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        COUNT = 7
    found, COUNT = COUNT, 0
    return found, s.gen("y", max_tokens=2)


@condition()
def globals_read_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if len(x) > LIMIT:
        s += SEEN[0]
    else:
        s += f"{LIMIT}"
    return s.gen("y", max_tokens=2)


@condition()
def f_strings_with_conditions(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    s += f"{'yes' if 'e' in x else 'no'}-{x if len(x) > 2 else x * 2:>6}-{('t' in x) or 'none'!r}"
    return f"{s['x'] or 'empty'}{'!' * (1 if 'e' in x else 2)}", s.gen("y", max_tokens=2)


@condition()
def parts_taken_apart_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    first, (second, *rest) = "p", ["q", "r", "s"]
    if "e" in x:
        (first, second), rest = (second, x), [first]
        first += "!"
    else:
        rest[0], second = second, rest[0]
        rest = rest[:1]
    s += first + second + rest[0]
    return first, second, rest, s.gen("y", max_tokens=2)


@JittedFunction
def deeper(s, word: str, depth: int):
    s += word
    x = s.gen("x", max_tokens=3)
    if depth > 0 and "e" in x:
        return deeper(x, depth - 1) + "."
    return x


@condition()
def a_recursion_with_a_condition(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    return deeper(x, 2), s.gen("y", max_tokens=2)


@condition()
def star_arguments_in_arms(s, a: str):
    def shown(*parts, sep="-", **named):
        return sep.join([*parts, *named, *named.values()])

    s += a
    x = s.gen("x", max_tokens=4)
    options = {"sep": "+"}
    if "e" in x:
        options = {"sep": "/", "k": x}
        y = shown(*["one", x], **{"sep": "|"})
    else:
        y = shown(x, word=x)
    s += y
    return y, s.gen("y", max_tokens=2)


@condition()
def instances_in_arms(s, a: str):
    s += a
    item = Item("old", 1)
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        other = Item(x, len(x))
        n = other.count + item.count
    else:
        n = item.count
    s += f"{n}"
    return n, item.title, s.gen("y", max_tokens=2)


@condition()
def slices_and_items_by_what_arms_bind(s, a: str):
    s += a
    words = ["zero", "one", "two", "three"]
    x = s.gen("x", max_tokens=4)
    i = 1
    if "e" in x:
        i = 2
    elif "t" in x:
        i = -1
    s += words[i]
    return words[i], x[i:], x[:i], {1: "b", 2: "c", -1: "d"}[i], s.gen("y", max_tokens=2)


@condition()
def conditional_state_expressions(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    s += "yes" if "e" in x else s.gen("w", max_tokens=2)
    (s if "t" in x else s).append("always")
    return "w" in s, s.get("w", "none"), s.gen("y", max_tokens=2)


@condition()
def a_walrus_of_one_operand_is_read(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    flag = "e" in x and (y := x.upper())
    s += "on"
    return flag, y


@condition()
def a_walrus_that_binds_anew(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "old"
    z = (y := x + "!") if "e" in x else y
    w = "t" in x or (y := y + "?")
    f = lambda t: (u := t.upper()) + u if "e" in t else t  # noqa: E731
    s += y
    return y, z, w, f(x), s.gen("y", max_tokens=2)


@condition()
def a_walrus_in_a_comprehension(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    found = [(last := w) if w in x else "none" for w in ["e", "t", "o"]]
    return found, s.gen("y", max_tokens=2)
