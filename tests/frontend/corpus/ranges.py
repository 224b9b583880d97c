"""Ranges of numbers that only a run knows: their items are in the graph, other uses are not, for they are no lists."""

from tests.frontend.corpus.cases import case

USED = "a range of numbers that only a run knows is used as a value"


@case("apple pie")
def items_of_a_range(s, a: str):
    n = len(s.gen("x", max_tokens=4))
    numbers = range(n)
    total = 0
    for i in numbers:
        total += i
    return total, len(numbers), bool(numbers), 2 in numbers, sum(numbers), max(numbers, default=0), min(range(1, n + 2))


@case("apple pie")
def containers_of_a_range(s, a: str):
    n = len(s.gen("x", max_tokens=4))
    numbers = range(n)
    return list(numbers), tuple(numbers), sorted(numbers, reverse=True), list(reversed(numbers)), [-i for i in numbers]


@case("apple pie")
def rows_of_a_range(s, a: str):
    n = len(s.gen("x", max_tokens=4))
    return list(zip(range(n), a, strict=False)), [(i, j) for i, j in enumerate(range(n))], dict.fromkeys(range(n))


@case("apple pie", stops=USED)
def a_range_is_returned(s, a: str):
    return range(len(s.gen("x", max_tokens=4)))


@case("apple pie", stops=USED)
def the_text_of_a_range(s, a: str):
    return str(range(len(s.gen("x", max_tokens=4))))


@case("apple pie", stops="can't be captured yet")
def a_range_and_a_list(s, a: str):
    numbers = range(len(s.gen("x", max_tokens=4)))
    try:
        return numbers + [1]  # type: ignore[operator]  # noqa: RUF005
    except TypeError as error:
        return str(error)


@case("apple pie", stops=USED)
def an_item_of_a_range(s, a: str):
    n = len(s.gen("x", max_tokens=4))
    numbers = range(n) if n > 2 else range(3)
    return numbers[1], isinstance(numbers, range)
