"""Programs written to break tracers: aliasing, order of effects, what looks fixed and is not."""

# Programs as users write them.
# ruff: noqa: B006, B023, C416, PLW2901, RUF005
# pyright: reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false

import collections
import datetime
import enum
import functools
import types
from typing import NamedTuple

from lmc.frontend.language.messages import gen, user
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Item, details, find, lookup, record, shout
from tests.frontend.harness import effect


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Name(str):
    pass


class Point(NamedTuple):
    x: int
    tags: list[str]


class Shouting:
    def __str__(self):
        effect("str")
        return "SHOUT"

    def __eq__(self, other):
        effect("eq")
        return True

    def __hash__(self):
        return 1

    @property
    def loud(self):
        effect("loud")
        return "LOUD"


QUEUE = collections.deque(["a"])
COUNTS = collections.Counter("aab")
SPACE = types.SimpleNamespace(level=3)
POINT = Point(1, ["t"])
SHOUTING = Shouting()
TABLE = {"k": "v", "l": "w"}
NAMES = ["n1", "n2"]
WHEN = datetime.date(2024, 2, 3)


class Settings:
    limit = 2


def restore() -> tuple[str]:
    QUEUE.clear()
    QUEUE.append("a")
    SPACE.level = 3
    Settings.limit = 2
    TABLE.clear()
    TABLE.update(k="v", l="w")
    NAMES[:] = ["n1", "n2"]
    POINT.tags[:] = ["t"]
    return ("w",)


def disturb(x=None):
    effect("disturb", x)
    QUEUE.append("b")
    SPACE.level += 1
    Settings.limit += 1
    TABLE["m"] = "new"
    NAMES.append("n3")
    POINT.tags.append("u")


@case(make=restore)
def deque_is_read_in_order(s, a: str):
    before = f"{QUEUE}"
    disturb()
    return before, f"{QUEUE}", len(QUEUE), f"{COUNTS}"


@case(make=restore)
def namespace_after_write(s, a: str):
    disturb()
    return SPACE.level


@case(make=restore)
def class_attribute_after_write(s, a: str):
    disturb()
    return Settings.limit


@case(make=restore)
def named_tuple_after_write(s, a: str):
    disturb()
    return POINT.x, list(POINT.tags)


@case(make=restore, stops="a list or dict from outside the program is gone over in a loop whose c")
def loop_over_changed_list(s, a: str):
    out = []
    for name in NAMES:
        out.append(name)
        if len(out) < 5:
            disturb(name)
    return out


@case(make=restore, stops="a view of a dict from outside the program is gone over after a call th")
def view_after_write(s, a: str):
    values = TABLE.values()
    disturb()
    return list(values)


@case(make=restore)
def copy_before_write(s, a: str):
    names = list(NAMES)
    table = dict(TABLE)
    disturb()
    s += "".join(names) + "".join(table)
    return s.gen("g", max_tokens=2), names, table


@case(make=restore)
def loop_with_declared_tool(s, a: str):
    for name in NAMES:
        s += lookup(name)
    return s.gen("g", max_tokens=2)


@case("w")
def objects_with_special_methods(s, a: str):
    s += f"{SHOUTING} {Color.RED} {Color.RED.value} {WHEN:%Y} {WHEN.year}"
    return s.gen("g", max_tokens=2), str(SHOUTING), Color.BLUE == Color.BLUE, Color("red") is Color.RED


@case("w")
def property_of_object(s, a: str):
    s += SHOUTING.loud
    return s.gen("g", max_tokens=2)


@case("w")
def special_equality_in_order(s, a: str):
    effect("first")
    same = a == SHOUTING
    effect("second")
    return f"{same}"


@case(make=lambda: (Name("n"), Color.RED, b"x", {1, 2}))
def unusual_arguments(s, name, color, raw, numbers):
    s += f"{color.value} {raw!r} {len(numbers)} {color is Color.RED}"
    s += name
    return s.gen("g", max_tokens=2)


@case(make=lambda: ([],))
def empty_list(s, words: list[str]):
    s += "x" + ",".join(words)
    for word in words:
        s += word
    return s.gen("g", max_tokens=2), len(words)


@case(make=lambda: ([[1, 2], [3.5, "x"]], [True], []))
def mixed_lists(s, rows, flags, nothing):
    s += " ".join(str(cell) for row in rows for cell in row) + str(flags[0]) + str(nothing)
    return s.gen("g", max_tokens=2), rows[1][1], sum(rows[0])


@case("w")
def lambdas_see_later_values(s, a: str):
    makers = [lambda: index for index in range(3)]
    text = a
    later = lambda: text  # noqa: E731
    text = text + "!"
    return [make() for make in makers], later()


@case("w")
def mutation_through_alias(s, a: str):
    rows = [[a]] * 2
    rows[0].append("x")
    same = rows[1]
    same += ["y"]
    table = {"r": rows}
    table["r"][0][0] = table["r"][1][0] + "?"
    return rows, table


@case("w")
def short_circuit_keeps_effects(s, a: str, n: int = 0):
    x = n and shout(a)
    y = (n or 1) and shout(a + "2")
    z = n > 5 or lookup(a)
    return x, y, z, [q for q in (1, 2) if q > 1 and not record(a)]


@case("w")
def evaluation_order(s, a: str):
    def note(x):
        effect("note", x)
        return x

    table = {note("k"): note(a), note("l"): note(2)}
    table[note("m")] = note("value")
    result = [note(1), *[note(2)]] + [note(3)]
    f"{note('x')}{note(a)}"
    table.get(note("k"), note("default"))
    return result, note(a) + note("b") < note("z") <= note("zz")


@case("w")
def sum_over_generated_texts(s, a: str):
    x = s.gen("x", max_tokens=2)
    return sum(record_and(y) for y in (x, a))


def record_and(x):
    effect("record_and", x)
    return x


@case("w")
def sums_over_numbers(s, a: str):
    views = s.fork(2)
    for view in views:
        view += a
        view.gen("v", max_tokens=3)
    total = sum(len(view["v"]) for view in views)
    longest = max(len(view["v"]) for view in views)
    smallest = min(view["v"] for view in views)
    s += f"{total} {longest} {smallest}"
    return s.gen("g", max_tokens=2), sum([len(view["v"]) for view in views], 1)


@case("w")
def samples_are_a_list(s, a: str):
    s += a
    drawn = s.gen("many", n=2, max_tokens=3, temperature=1.0)
    for index, text in enumerate(drawn):
        s += f"{index}{text}"
    drawn.append("mine")
    s.gen("g", max_tokens=2)
    return s["many"], len(drawn), sorted(drawn)


@case("w")
def select_from_tool_list(s, a: str):
    options = find(a)
    s += a
    choice = s.select("c", options)
    effect(choice)
    return choice, f"{options}"


@case("w")
def tool_results_are_chained(s, a: str):
    found = details(a)
    found["extra"] if False else None
    keys = found.keys()
    return f"{keys}", found.get("n") + 1, found["parts"][0].upper()


@case("w")
def methods_of_unknown(s, a: str):
    item = make_item(a)
    title = item.title
    s += f"{title} {item.count:03d}"
    return item.title.upper(), s.gen("g", max_tokens=2)


def make_item(a):
    return Item(a, 7)


@case("w")
def passes_branches(s, a: str):
    consume(s.fork(2))
    return 1


@case("w")
def passes_lambda(s, a: str):
    return apply(lambda x: x + a, a)


def apply(function, value):
    effect("apply")
    return function(value)


@case("w")
def passes_generator(s, a: str):
    return consume(x + a for x in "pq")


def consume(items):
    return list(items)


@case("w")
def passes_fresh_containers(s, a: str):
    consume([a, "b", {"k": [a]}])
    consume(items=(a, ("x", a)))
    consume([x + a for x in ("p", "q")])
    return consume({"k": a}), consume([])


@case("w")
def functions_as_arguments(s, a: str):
    return (
        sorted(["bb", "a"], key=len),
        list(filter(None, ["", "x"])),
        max("ab", key=ord),
    )


@case("w")
def effects_through_map(s, a: str):
    first = map(shout, [a, "x"])
    effect("made")
    return [f"{x}" for x in first], [x for x in filter(lambda q: q > "m", ["a", "z"])]


@case("w")
def effects_through_map_before_break(s, a: str):
    loud = list(map(shout, [a, "x"]))
    s += f"{loud[0]}"
    hash(s.gen("x", max_tokens=2))
    return f"{loud[1]}", [shout(y) for y in ("p", "q")]


def decorate(function):
    @functools.wraps(function)
    def wrapped(s, *args):
        effect("wrapped")
        return function(s, *args) + "!"

    return wrapped


@case("w")
@decorate
def decorated(s, a: str):
    s += a
    return s.gen("g", max_tokens=2)


@case("w")
def decorated_inside(s, a: str):
    def twice(function):
        return lambda x: function(function(x))

    @twice
    def mark(x):
        return x + "*"

    return mark(a)


@case("w")
def generator_inside(s, a: str):
    def steps(n):
        for i in range(n):
            yield f"{a}{i}"

    for step in steps(2):
        s += step
    return s.gen("g", max_tokens=2), list(steps(1))


@case("w")
def deep_default(s, a: str, options={"words": ["x"], "n": 2}):
    s += a + options["words"][0] * options["n"]
    return s.gen("g", max_tokens=2)


@case("w")
def raises_after_effects(s, a: str):
    effect("one")
    s += a
    x = s.gen("x", max_tokens=2)
    effect("two", x)
    y = int(x)
    effect("three")
    return y


@case("w")
def tool_raises(s, a: str):
    effect("one")
    explode(a)
    effect("never")


@tool
def explode(word: str) -> str:
    raise OSError(f"no {word}")


@case("w")
def tool_breaks_its_promise(s, a: str):
    s += wrong(a)


@tool
def wrong(word: str) -> str:
    return len(word)  # type: ignore[return-value]


@case("w")
def message_with_unknown(s, a: str):
    s += user(shout(a))
    s += "x " + gen("g", max_tokens=2)
    s += f"{shout(a)}"
    return s.text()


@case("w", stops="this raises CaptureError: the program appends an int, text is needed")
def appends_a_number_from_a_function(s, a: str):
    s += number(a)


def number(a):
    return 3


@case(None, stops="the program appends a NoneType")
def appends_none(s, nothing):
    s += "x"
    s.gen("g", max_tokens=2)
    s += nothing


@case("w")
def in_place_on_unknown(s, a: str):
    found = make_list(a)
    same = found
    found += ["more"]
    text = shout(a)
    text += "!"
    return f"{same} {found} {text}", same


def make_list(a):
    return [a]


@case("w")
def sorts_unknown(s, a: str):
    return sorted([shout(a), shout("b")])


@case("w")
def attribute_of_unknown(s, a: str):
    return hasattr(details(a), "keys"), a


@case("w")
def attributes_of_texts(s, a: str):
    return hasattr(a, "upper"), hasattr(a, "nothing"), getattr([], "missing", 3), a.upper()


@case("w")
def key_is_a_tool(s, a: str):
    return max(["a", "bb"], key=lookup)


@case("w")
def key_is_an_object(s, a: str):
    return sorted(["a", "bb"], key=functools.partial(shout))


@case("w", stops="`next` of a generator that has a name can't be captured yet")
def method_of_own_generator(s, a: str):
    def echo():
        got = yield 1
        yield got

    steps = echo()
    next(steps)
    return steps.send(a)


@case("", "w")
def role_after_maybe_empty_text(s, a: str, b: str):
    s += a
    try:
        s += user(b)
    except Exception as error:
        return type(error).__name__
    return s.gen("g", max_tokens=2)


@case("x", "w")
def role_after_maybe_full_text(s, a: str, b: str):
    s += a
    try:
        s += user(b)
    except Exception as error:
        return type(error).__name__
    return s.gen("g", max_tokens=2)


@case("x", "w")
def role_after_text_raises(s, a: str, b: str):
    s += a
    s += user(b)


@case("w")
def two_equal_objects_stay_two(s, a: str):
    one, two = make_item(a), make_item(a)
    rename(one, "changed")
    return f"{one.title} {two.title}", Item(a), Item(a)


def rename(item, title):
    item.title = title
    effect("rename", title)
