"""Every row of the table of the standard library says what the function does: on arguments drawn from its kinds."""

import copy
import datetime
import decimal
import difflib
import hashlib
import importlib
import json
import logging
import math
import random
import re
import subprocess
import sys
import urllib.parse
from typing import Any

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.python.library import table
from lmc.frontend.python.library.rows import CLASSES, LibraryFunction, resolve
from tests.frontend.harness import check
from tests.frontend.strategies import load

FULL = settings.default.max_examples > 100  # type: ignore[union-attr]
ROWS = {name: row for name, row in table.rows().items() if row.name != "time.sleep"}
FUNCTIONS = {name: row for name, row in ROWS.items() if not name.startswith(".")}

_TEXT = st.text(st.sampled_from("ab Zé1-.,\n\t{}[]\"'\\%&<x"), max_size=8)
_INT = st.integers(-3, 12) | st.integers(-(10**20), 10**20)
_SMALL = st.integers(-3, 12)
_FLOAT = st.floats(-20, 20) | st.sampled_from([0.0, -0.0, 0.5, 1e300, math.inf, math.nan])
_DATE = st.dates(datetime.date(2020, 1, 1), datetime.date(2030, 12, 31))
_MOMENT = st.datetimes()
_JSON = st.recursive(st.none() | st.booleans() | _SMALL | _FLOAT | _TEXT, lambda inner: st.lists(inner, max_size=3))
_PATTERNS = st.sampled_from([r"\w+", "a", "(a)|b", "(a)(b)?", "[", "(?P<x>.)", "", r"\s*,\s*", "a*", "(?i)Z"])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "any": _JSON,
    "scalar": st.none() | st.booleans() | _SMALL | st.floats(-9, 9) | _TEXT,
    "number": st.booleans() | _INT | _FLOAT,
    "int": _SMALL | st.booleans(),
    "float": st.floats(0.01, 0.99) | _FLOAT,
    "bool": st.booleans(),
    "none": st.none(),
    "text": _TEXT | st.sampled_from(["utf-8", "strict", "%Y-%m", "%d", "0.01", "7", "1e5", "x", "..."]),
    "json": st.builds(json.dumps, st.dictionaries(_TEXT, _JSON, max_size=2) | _JSON) | _TEXT,
    "isodate": st.builds(datetime.date.isoformat, _DATE) | st.builds(datetime.datetime.isoformat, _MOMENT) | _TEXT,
    "pattern": _PATTERNS,
    "url": st.sampled_from(["http://u:p@h.org:80/a/b?q=1#f", "/x", "", "http://[", "a b", "http://h:99999/"]),
    "date": _DATE,
    "datetime": _MOMENT,
    "timedelta": st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9)),
    "daytime": st.times(),
    "Pattern": _PATTERNS.filter(lambda text: text != "[").map(re.compile),
    "Match": st.sampled_from([re.search("(a)(?P<x>b)?", "ab"), re.search("a", "xa"), re.search("(a)(b)?", "xa")]),
    "flags": st.sampled_from([re.IGNORECASE, re.DOTALL, re.MULTILINE | re.ASCII]),
    "Decimal": st.decimals(-100, 100, places=3) | st.sampled_from([decimal.Decimal("0.01"), decimal.Decimal("nan")]),
    "Fraction": st.fractions(-5, 5, max_denominator=20),
    "UUID": st.uuids(),
    "Random": st.integers(0, 9).map(random.Random),
    "Logger": st.just(logging.getLogger("lmc.test.library")),
    "SequenceMatcher": st.builds(lambda a, b: difflib.SequenceMatcher(None, a, b), _TEXT, _TEXT),
    "Hash": _TEXT.map(lambda text: hashlib.sha256(text.encode())),
    "SplitResult": st.sampled_from(["http://h.org:80/a?q#f", "/x", "http://h:99999/"]).map(urllib.parse.urlsplit),
    "ParseResult": st.sampled_from(["http://h.org:80/a?q#f", "/x", "http://h:99999/"]).map(urllib.parse.urlparse),
    "bytes": _TEXT.map(str.encode),
    "class": st.sampled_from([int, str, ValueError, json.JSONDecodeError]),
}


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """Arguments of a kind."""
    if "|" in kind:
        return st.one_of([values_of(part) for part in kind.split("|")])
    if kind.startswith("list["):
        inner = values_of(kind[5:-1])
        return st.lists(inner, max_size=4) | st.lists(st.sampled_from([1, 2, 2, 3]) if "number" in kind else inner)
    return _VALUES[kind]


@st.composite
def calls_of(draw: Any, row: LibraryFunction) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call."""
    args, kwargs = [], {}
    for each in row.parameters:
        if each.many:
            args += draw(st.lists(values_of(each.kind), max_size=3))
        elif each.required:
            args.append(draw(values_of(each.kind)))
        elif each.name is not None:
            if draw(st.booleans()):
                kwargs[each.name] = draw(values_of(each.kind))
        elif draw(st.booleans()):
            args.append(draw(values_of(each.kind)))
    return args, kwargs


def is_of(value: Any, kind: str, args: list[Any]) -> bool:
    """Return whether a result is exactly of the type that a row says."""
    if kind in ("any", "object"):
        return True
    if kind == "item":
        lists = [each for each in args if type(each) is list]
        return any(value is each or value == each for each in lists[0])
    if kind.endswith("?"):
        return value is None or is_of(value, kind[:-1], args)
    if kind.startswith("list["):
        return type(value) is list and all(is_of(each, kind[5:-1], args) for each in value)
    if kind.startswith("tuple["):
        kinds = [part.strip() for part in kind[6:-1].split(",")]
        return isinstance(value, tuple) and [is_of(*pair, args) for pair in zip(value, kinds, strict=True)] == [
            True
        ] * len(kinds)
    wanted = {"text": str, "int": int, "float": float, "bool": bool, "none": type(None)}.get(kind)
    known = wanted or resolve(CLASSES[kind])
    return type(value) is known or (kind == "Logger" and isinstance(value, known))


def real(row: LibraryFunction) -> Any:
    """The function that a row is about."""
    for module in (row.name.rpartition(".")[0], row.name.partition(".")[0]):
        try:
            importlib.import_module(module)
        except ImportError:
            continue
    found = resolve(row.name) or resolve(row.name.replace("hashlib.", "_hashlib."))
    assert found is not None, row.name
    return found


def result_of(function: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[str, Any]:
    """Return what a call gives or raises."""
    try:
        return "gave", function(*args, **kwargs)
    except Exception as error:
        return "raised", error


def copied(value: Any) -> Any:
    """A copy, of the state of random numbers too; what can't change stays."""
    if type(value) in (list, dict):
        return copy.deepcopy(value)
    if type(value) is random.Random:
        made = random.Random()
        made.setstate(value.getstate())
        return made
    return value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_says_what_the_function_does(name: str, capsys: Any):
    row = FUNCTIONS[name]
    function = real(row)

    @settings(max_examples=1_000 if FULL else 25)
    @given(call=calls_of(row))
    def run(call: Any):
        args, kwargs = call
        note(f"{name} {args} {kwargs}")
        assume(row.limit is None or all(type(each) is not int or abs(each) <= row.limit for each in args))
        given_args, given_kwargs = [copied(each) for each in args], {key: copied(each) for key, each in kwargs.items()}
        again = [copied(each) for each in args]
        how, found = result_of(function, args, kwargs)
        if how == "raised":
            assert isinstance(found, row.exceptions()), repr(found)
        else:
            assert is_of(found, row.result, given_args), repr(found)
        if "mutates" not in row.flags:
            kept = [each for each in args if type(each) is not random.Random]
            assert repr(kept) == repr([each for each in given_args if type(each) is not random.Random])
            assert repr(kwargs) == repr(given_kwargs)
        if not row.is_ordered and " at 0x" not in repr(found) and "@ 0x" not in repr(found):
            assert repr(result_of(function, again, given_kwargs)[1]) == repr(found)

    run()


@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith(".")])
def test_a_row_says_what_an_attribute_is(name: str):
    row = ROWS[name]
    kind = row.parameters[0].kind

    @settings(max_examples=200 if FULL else 10)
    @given(owner=values_of(kind))
    def run(owner: Any):
        how, found = result_of(getattr, [owner, name.rpartition(".")[2]], {})
        if how == "raised":
            assert isinstance(found, row.exceptions())
        else:
            assert is_of(found, row.result, [])

    run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    return tmp_path_factory.mktemp("library")


HEADER = """
import {module}
from lmc.frontend.program.function import JittedFunction as jit
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_captured_call_is_the_call(name: str, folder: Any, capsys: Any):
    """The function is called in a graph, with arguments that only a run knows, and as constants.

    Results are compared by ``repr``; by class where two calls differ (clocks, ids, texts with addresses).
    """
    row = FUNCTIONS[name]
    real(row)
    differs = name.partition(".")[0] in ("time", "uuid") or name.endswith(
        (".now", ".utcnow", ".today", "Random", "seed")
    )
    has_address = row.result in ("Hash", "SequenceMatcher")
    shown = "type({}).__name__" if differs or has_address else "repr({})"
    owner, _, method = row.name.rpartition(".")
    module = owner if owner in sys.modules else owner.rpartition(".")[0]

    @settings(max_examples=100 if FULL else 4, deadline=None)
    @given(call=calls_of(row), known=st.booleans())
    def run(call: Any, known: bool):
        args, kwargs = call
        symbols = [type(each) in (str, int, float) and not known for each in args]
        places = [f"a{index}" if symbolic else f"K[{index}]" for index, symbolic in enumerate(symbols)]
        named = [f"{key}=V[{key!r}]" for key in kwargs]
        target = row.name if owner == module or not places else f"{places.pop(0)}.{method}"
        if owner != module and args and isinstance(args[0], str):
            target = row.name
            places.insert(0, "a0" if symbols[0] else "K[0]")
        parameters = "".join(f", a{index}" for index, symbolic in enumerate(symbols) if symbolic)
        source = f"@jit\ndef program(s{parameters}):\n    try:\n"
        call_text = f"{target}({', '.join([*places, *named])})"
        source += f"        return {shown.format(call_text)}\n"
        source += (
            "    except (ValueError, ArithmeticError, LookupError, TypeError) as error:\n        return repr(error)\n"
        )
        note(source)
        loaded = load(HEADER.format(module=module) + source, folder)
        vars(loaded).update(K=tuple(map(copied, args)), V=kwargs)
        given_args = tuple(each for each, symbolic in zip(args, symbols, strict=True) if symbolic)
        found = capture(loaded.program, bind(loaded.program, given_args, {}))
        note(str(found.breaks))

        def fresh() -> tuple[Any, ...]:
            for each, original in zip(loaded.K, args, strict=True):
                if type(each) is random.Random:
                    each.setstate(original.getstate())
            return given_args

        check(loaded.program, fresh, captured=found)

    run()


def test_building_the_table_imports_nothing_that_programs_use():
    names = ("statistics", "difflib", "html", "urllib.parse", "textwrap", "logging.handlers", "base64")
    code = (
        "import sys, lmc.frontend.source.pure_types; before = set(sys.modules);"
        "from lmc.frontend.python.library import table; table.rows();"
        f"print([name for name in {names} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
