"""Which object is which, and what looks into objects: a capture ends where its own copies would answer."""

# Programs as users write them.
# ruff: noqa: UP030, UP032
# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass

import pytest

from lmc.frontend.program.function import JittedFunction
from tests.frontend.harness import check, effect


@dataclass
class Holder:
    items: list


class Titled:
    @property
    def title(self):
        effect("title")
        return "t"


TITLED = Titled()


def one_object(s, a, b):
    return a is b


def two_objects(s, a, b):
    return a is not b


@pytest.mark.parametrize("body", [one_object, two_objects])
@pytest.mark.parametrize("make", [lambda: [1, "x"], lambda: {"k": 1}, lambda: (1, "x"), lambda: Holder([1, "x"])])
def test_arguments_may_be_one_object(body, make):
    def same():
        value = make()
        return value, value

    for args in (same, lambda: (make(), make())):
        captured = check(JittedFunction(body), args)
        assert "`is`" in captured.breaks[0].cause


def test_what_can_not_be_one_object_is_told_apart():
    @JittedFunction
    def program(s, a, b):
        own = [1]
        return a is None, a is b, own is own

    assert check(program, lambda: ([1, "x"], {"k": 1})).breaks == ()


def test_a_list_in_a_record_argument_is_not_changed_in_a_copy():
    @JittedFunction
    def program(s, r):
        r.items.append("z")
        return "done"

    captured = check(program, lambda: (Holder([1, "x"]),))
    assert "changes a list or dict that it was given" in captured.breaks[0].cause


def formats(s, a: str):
    return "{0.title}".format(TITLED)


def formats_with_text(s, a: str):
    return "{0.title}{1}".format(TITLED, a)


def formats_item(s, a: str):
    return "{x[0].title}".format_map({"x": [TITLED]})


def formats_inner(s, a: str):
    return "{0:{1.title}}".format("x", TITLED)


@pytest.mark.parametrize("body", [formats, formats_with_text, formats_item, formats_inner])
def test_format_does_not_look_into_objects(body):
    captured = check(JittedFunction(body), ("w",))
    assert "looks into an object" in captured.breaks[0].cause


def test_format_looks_into_data():
    @JittedFunction
    def program(s, a: str):
        return "{0[0]}-{1[k]}. {2}".format([a], {"k": 1}, a), "{}. [{}]".format(len, a)

    assert check(program, ("w",)).breaks == ()


SOURCE = {"a": 1}
VIEW = SOURCE.keys()
ERROR = ValueError("early")


def size_of_view(s, a: str):
    return len(VIEW)


def text_of_error(s, a: str):
    return f"{ERROR}"


@pytest.mark.parametrize("body", [size_of_view, text_of_error])
def test_views_and_exceptions_from_outside_are_not_read(body):
    captured = check(JittedFunction(body), ("w",))
    assert "comes from outside the program" in captured.breaks[0].cause


def size(s, value):
    return len(value)


def text(s, value):
    return str(value)


def text_of_item(s, value):
    return str(value[0])


@pytest.mark.parametrize(
    ("body", "make"),
    [(size, lambda: SOURCE.values()), (text, lambda: ERROR), (text_of_item, lambda: [ERROR, "x"])],
)
def test_views_and_exceptions_in_arguments(body, make):
    captured = check(JittedFunction(body), (make(),))
    assert "comes from outside the program" in captured.breaks[0].cause


def test_the_number_of_exceptions_in_an_argument_is_known():
    assert not check(JittedFunction(size), ([ERROR, "x"],)).breaks


def test_views_and_exceptions_of_the_program_itself():
    @JittedFunction
    def program(s, a: str):
        found = ""
        try:
            {}["missing"]
        except KeyError as error:
            found = str(error)
        return found, len({"a": 1}.keys())

    assert check(program, ("w",)).breaks == ()
