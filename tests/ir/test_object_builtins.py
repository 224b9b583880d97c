from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import pytest

from lmc.ir.builtins.object_builtins import lookup
from lmc.ir.errors import CaptureError
from lmc.ir.types import ANY, INT, TEXT


def run(name: str, *args: Any, **kwargs: Any) -> Any:
    found = lookup(name)
    assert found is not None
    return found.run(*args, **kwargs)


@pytest.mark.parametrize(
    ("name", "args", "made"),
    [
        ("list", (1, "a"), [1, "a"]),
        ("list_from", ("ab",), ["a", "b"]),
        ("dict", ("a", 1, "b", 2), {"a": 1, "b": 2}),
        ("dict_from", ([("a", 1)],), {"a": 1}),
        ("set", (1, 2, 1), {1, 2}),
        ("set_from", ("aab",), {"a", "b"}),
        ("deque", (2, 1, 2, 3), deque([2, 3], 2)),
        ("Counter", ("a", 2), Counter(a=2)),
        ("OrderedDict", ("b", 1, "a", 2), OrderedDict(b=1, a=2)),
        ("defaultdict", ("list", "a", 1), defaultdict(list, a=1)),
        ("defaultdict", (None,), defaultdict(None)),
    ],
)
def test_what_makes_objects(name: str, args: tuple[Any, ...], made: Any):
    found = run(name, *args)
    assert (type(found), found) == (type(made), made)
    if isinstance(made, deque):
        assert found.maxlen == made.maxlen
    if isinstance(made, defaultdict):
        assert found.default_factory is made.default_factory
    assert run(name, *args) is not found


def test_what_changes_objects():
    items = [1, 2, 3, 4]
    run("setitem", items, 0, 9)
    run("delitem", items, 1)
    run("setslice", items, 0, 1, None, [7, 8])
    assert items == [7, 8, 3, 4]
    run("delslice", items, None, None, 2)
    assert items == [8, 4]
    assert run("method", "pop", items) == 4
    assert run("iadd", items, (1,)) is items
    assert items == [8, 1]


def test_an_iterator_is_read_live_to_its_end():
    items = ["a"]
    iterator = run("iter", items)
    assert run("next", iterator) == (True, "a")
    items.append("b")
    assert run("next", iterator) == (True, "b")
    assert run("next", iterator) == (False, None)
    items.append("c")
    assert run("next", iterator) == (False, None)


def test_a_dict_that_changes_its_size_raises_as_python_does():
    held = {"a": 1}
    iterator = run("iter", held)
    held["b"] = 2
    with pytest.raises(RuntimeError, match="changed size"):
        run("next", iterator)


def test_methods_are_those_of_pythons_own_containers():
    with pytest.raises(CaptureError, match=r"calls get\(\) of a SimpleNamespace"):
        run("method", "get", SimpleNamespace(get=lambda: 1))
    with pytest.raises(CaptureError, match="no container has a method '__reduce__'"):
        run("method", "__reduce__", [])
    with pytest.raises(AttributeError, match="'str' object has no attribute 'append'"):
        run("method", "append", "text", 1)


def test_a_factory_has_to_be_known():
    with pytest.raises(CaptureError, match="a defaultdict of 'open'"):
        run("defaultdict", "open")


@pytest.mark.parametrize(
    ("name", "types", "may_raise"),
    [
        ("list", (ANY,), False),
        ("dict", (TEXT, ANY), False),
        ("dict", (ANY, TEXT), True),
        ("set", (TEXT, INT), False),
        ("set", (ANY,), True),
        ("setitem", (ANY, TEXT, TEXT), True),
        ("next", (ANY,), True),
    ],
)
def test_what_may_raise(name: str, types: tuple[Any, ...], may_raise: bool):
    found = lookup(name)
    assert found is not None
    assert found.may_raise(types) is may_raise
    assert found.may_raise(types, ("x",))


def test_an_unknown_name_is_no_builtin():
    assert lookup("eval") is None
