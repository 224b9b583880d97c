"""One program for each reason why a capture ends that no other file of the corpus has."""

# Programs as users write them.
# pyright: reportArgumentType=false, reportUnnecessaryComparison=false

import asyncio
import math

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Item, details, shout
from tests.frontend.harness import effect

EVALUATE = eval


class OwnError(Exception):
    pass


class Titled(Item):
    def shouted(self):
        return self.title.upper()


class Anything:
    pass


ANYTHING = Anything()


@JittedFunction
def on(s):
    s += " on "
    return s.gen("o", max_tokens=2)


@case("w")
def sorted_by_text_method(s, a: str):
    x = s.gen("x", max_tokens=2)
    return sorted(["B", x], key=str.lower)


@case("w")
def sorted_by_user_function(s, a: str):
    s += a
    return sorted(["b", "a"], key=shout)


@case(["p", "q"])
def method_of_list_argument(s, words: list[str]):
    s += words[0]
    return words.index("q")


@case("w", stops="this raises CaptureError: on.on_state() continues the state of a jitte")
def on_state_without_state(s, a: str):
    s += a
    return on.on_state(a)


@case("w", stops="the program runs code that it makes itself")
def evaluates_under_another_name(s, a: str):
    s += a
    return EVALUATE("a + '!'")


@case("w", stops="refuse_async() of lmc's own can't be captured yet")
def method_of_a_program(s, a: str):
    s += a
    return on.refuse_async()


async def later(x):
    return x


@case("w", stops="later() is async, and is called as a plain function")
def awaits_elsewhere(s, a: str):
    s += asyncio.run(later(a))
    return s.gen("g", max_tokens=2)


@case(["p"])
def passes_list_argument(s, words: list[str]):
    effect(words)
    return s.gen("g", max_tokens=2)


def keywords(word="", n=0, parts=()):
    return f"{word}{n}{parts}"


@case("w")
def unknown_keywords(s, a: str):
    return keywords(**details(a))


@case(["p", "q", "r"])
def unpacks_too_many(s, words: list[str]):
    x, y = words
    return x + y


@case(["p", "q", "r"])
def unpacks_star_with_tuple(s, words: list[str]):
    for x, *(y, z) in [(words[0], words[1], words[2])]:
        s += x + y + z
    return s.gen("g", max_tokens=2)


@case("w")
def raises_own_exception(s, a: str):
    s += a
    raise OwnError(a)


@case("w", stops="`iter` with a sentinel can't be captured yet")
def calls_until(s, a: str):
    s += a
    return list(iter(lambda: "x", "x"))


@case("w", stops="the program makes a class")
def makes_a_class(s, a: str):
    s += a
    return type("Made", (), {}).__name__


@case("w")
def class_of_unknown(s, a: str):
    s += a
    return isinstance(details(a), dict)


@case("w")
def class_of_list(s, a: str):
    s += a
    return isinstance(a.partition(" "), list)


@case("w")
def attribute_with_default(s, a: str):
    x = s.gen("x", max_tokens=2)
    return getattr(x, "missing", "default")


@case("w", stops="importing 'colorsys' runs it")
def imports_what_is_not_loaded(s, a: str):
    import colorsys

    s += a + colorsys.__name__
    return s.gen("g", max_tokens=2)


@case("w", stops="the attribute '__name__' of a function that is made in the program can")
def dunder_of_generated(s, a: str):
    x = s.gen("x", max_tokens=2)
    return x.__class__.__name__


@case(Titled("boat"))
def method_of_record(s, item: Titled):
    s += item.title
    return item.shouted()


@case(Item("boat"), stops="a list of the program takes a tuple of the program's own, and might ch")
def passes_record(s, item: Item):
    effect(item)
    return s.gen("g", max_tokens=2)


@case("w")
def returns_an_object(s, a: str):
    s += a
    s.gen("g", max_tokens=2)
    return ANYTHING


WORDS = ["shared"]


@case("w")
def returns_global_list(s, a: str):
    s += a
    return WORDS


@case("w", stops="the program's result can't be captured: it is nested too deep")
def returns_itself(s, a: str):
    found = [a]
    for _ in range(80):
        found = [found]
    return found


@case(3)
def shifts(s, n: int):
    s += f"{1 << n}"
    return s.gen("g", max_tokens=2)


@case("w")
def identity_of_values(s, a: str):
    x = s.gen("x", max_tokens=2)
    return x is a


@case("w")
def unknown_in_set(s, a: str):
    found = details(a)["word"]
    return found in {"w", "x"}


@case("w")
def item_of_range(s, a: str):
    x = s.gen("x", max_tokens=2)
    return range(20)[len(x)]


@case("w", stops="a state can't be part of the graph")
def formats_a_state(s, a: str):
    s += a
    return f"{s}"


@case("w")
def condition_that_raises(s, a: str):
    if int(a):
        s += a
    return s.gen("g", max_tokens=2)


@case(math.nan, stops="the argument 'x' is known only when the program runs, but temperature")
def not_a_number(s, x: float):
    return s.gen("g", max_tokens=2, temperature=x)


@case("w")
def encodes(s, a: str):
    return len(a.encode())


@case("w")
def adds_an_object(s, a: str):
    s += a
    return ANYTHING_ELSE + "x", f"{ANYTHING_ELSE + a}"


@case("w")
def multiplies_an_object(s, a: str):
    s += a
    return ANYTHING_ELSE @ 2


class Adding(Anything):
    def __add__(self, other):
        effect("add")
        return f"added {other}"

    def __matmul__(self, other):
        effect("matmul")
        return f"multiplied {other}"


ANYTHING_ELSE = Adding()


@case("w")
def matches_the_items_of_an_object(s, a: str):
    s += a
    match EQUAL:
        case [1]:
            return "one"
        case _:
            return "other"


@case("w")
def matches_an_object(s, a: str):
    s += a
    match EQUAL:
        case 1:
            return "one"
        case _:
            return "other"


class Equal(Adding):
    def __eq__(self, other):
        effect("eq")
        return other == 1

    def __hash__(self):
        return 1


EQUAL = Equal()


@case("w", stops="going over an Items can't be captured yet")
def loops_over_an_object(s, a: str):
    for item in ITEMS:
        s += item
    return s.gen("g", max_tokens=2)


class Items:
    def __iter__(self):
        effect("iter")
        return iter(["a"])


ITEMS = Items()


class Asker:
    @JittedFunction
    def ask(self, s, question: str):
        s += question
        return s.gen("answer", max_tokens=2)


@case("w")
def makes_an_object_with_a_program(s, a: str):
    s += a
    asker = Asker()
    return asker.ask(a), s.gen("g", max_tokens=2)
