"""What the user's classes do by themselves: their code runs where plain Python runs it, never in a capture."""

# Programs as users write them.
# pyright: reportIndexIssue=false, reportCallIssue=false

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pytest

from lmc.frontend.program.function import JittedFunction
from tests.frontend.harness import check, effect


@dataclass
class Query:
    text: str
    flag: bool = True

    def __bool__(self):
        return self.flag

    def __str__(self):
        return f"<{self.text}>"

    def __getitem__(self, index):
        return self.text[index]


@dataclass(frozen=True)
class Key:
    flag: bool = True


@runtime_checkable
class HasText(Protocol):
    @property
    def text(self) -> str: ...


class Asked(type):
    def __instancecheck__(cls, instance):
        effect("asked")
        return True


class Everything(metaclass=Asked):
    pass


class Hooked:
    def __class_getitem__(cls, key):
        effect("item", key)
        return key


class Property:
    @property
    def text(self):
        effect("property")
        return "x"


PROPERTY = Property()
UNION = int | Everything


def truth(s, r):
    return bool(r)


def negated(s, r):
    return not r


def condition(s, r):
    return "yes" if r else "no"


def formatted(s, r):
    return f"{r}"


def as_text(s, r):
    return str(r)


def item(s, r):
    return r[0]


def listed_text(s, r):
    return str([r])


@pytest.mark.parametrize("body", [truth, negated, condition, formatted, as_text, item])
def test_special_methods_of_a_record_argument_are_part_of_the_program(body):
    assert not check(JittedFunction(body), (Query("q", flag=False),)).breaks


def test_the_text_of_a_list_of_records_is_made_eagerly():
    assert check(JittedFunction(listed_text), (Query("q", flag=False),)).breaks


def equal(s, r, q):
    return r == q


def contained(s, r, q):
    return r in [q]


def indexed(s, r, q):
    return [q, r].index(r)


def keyed(s, r, q):
    return len({r: 1, q: 2})


@pytest.mark.parametrize("body", [equal, contained, indexed, keyed])
@pytest.mark.parametrize("kind", [lambda: Query("q"), lambda: Key()])
def test_record_arguments_are_compared_as_python_does(body, kind):
    found = check(JittedFunction(body), (kind(), kind())).breaks
    assert not found or body in (indexed, keyed)


def test_whether_a_record_argument_can_be_called_is_known():
    @JittedFunction
    def program(s, r):
        return callable(r)

    assert check(program, (Query("q"),)).breaks == ()


def is_protocol(s, r):
    return isinstance(r, HasText)


def is_anything(s, r):
    return isinstance(r, (int, Everything))


def is_anything_else(s, r):
    return isinstance(r, UNION)


@pytest.mark.parametrize("body", [is_protocol, is_anything, is_anything_else])
@pytest.mark.parametrize("value", [Query("q"), PROPERTY, "text"])
def test_classes_that_decide_themselves_what_belongs_to_them(body, value):
    (found,) = check(JittedFunction(body), (value,)).breaks
    assert "what belongs to this class" in found.cause
    assert found.location is not None


def test_item_of_a_class_is_asked_for_in_the_run():
    @JittedFunction
    def program(s):
        return Hooked["k"], list[int]

    assert not check(program).breaks


def test_plain_classes_are_asked_at_once():
    @JittedFunction
    def program(s, r, a: str):
        return isinstance(r, Query), isinstance(r, (Key, int)), isinstance(a, int | str), issubclass(Key, Query)

    assert check(program, (Query("q"), "w")).breaks == ()
