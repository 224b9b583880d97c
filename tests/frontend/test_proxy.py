"""A Proxy answers nothing: whatever touches one outside of transformed code ends the capture."""

import copy
import json
import math
import operator

import pytest

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.expressions import Expression, MissingInputError, evaluate, holds_proxy, is_proxy, parameter
from lmc.frontend.recorder import Recorder
from lmc.ir.core import Value
from lmc.ir.types import TEXT

TOUCHES = [
    str, repr, bytes, hash, bool, len, iter, next, int, float, complex, operator.index, operator.neg, abs,
    operator.invert, reversed, math.floor, json.dumps, copy.copy, copy.deepcopy, sorted, list, "".join, set, round,
    format,
    lambda p: f"{p}", lambda p: f"{p!r:>3}", lambda p: "%s".__mod__((p,)), lambda p: f"{p}", lambda p: p + "x",
    lambda p: "x" + p, lambda p: p * 2, lambda p: p == "x", lambda p: p == "x", lambda p: p != p, lambda p: p < "x",
    lambda p: "x" in p, lambda p: p in "abc", lambda p: p[0], lambda p: {p: 1}, lambda p: p.strip, lambda p: p.anything,
    lambda p: isinstance(p, str), lambda p: p.__class__, lambda p: [1, 2][p], lambda p: range(p), lambda p: p % 2,
    lambda p: setattr(p, "x", 1), lambda p: getattr(p, "x", None), lambda p: hasattr(p, "x"), lambda p: p(),
    lambda p: ["x"].index(p), lambda p: "x" in [p], lambda p: max(p, "x"), lambda p: sum([p]), lambda p: divmod(p, 2),
    lambda p: p.__enter__(), lambda p: vars(p),
]  # fmt: skip


@pytest.mark.parametrize("touch", TOUCHES)
def test_touching_a_proxy_ends_the_capture(touch):
    recorder = Recorder([Value("a", TEXT)], {"a": "x"})
    proxy = recorder.proxy(Value("a", TEXT), "the argument 'a'", expression=parameter("a"))
    with pytest.raises((CaptureBreak, TypeError)) as caught:
        touch(proxy)
    if caught.type is CaptureBreak:
        assert recorder.broken is not None
        assert "the argument 'a' is known only when the program runs, but it reached code" in recorder.broken.cause
        assert "f-strings" in recorder.broken.remedy
        assert str(recorder.broken).startswith(f"{__file__}:")


def test_no_except_exception_swallows_the_end_of_a_capture():
    assert not issubclass(CaptureBreak, Exception)


def test_asking_for_proxies_does_not_touch_them():
    recorder = Recorder([Value("a", TEXT)], {})
    proxy = recorder.proxy(Value("a", TEXT), "a")
    assert is_proxy(proxy)
    assert holds_proxy([{"x": (proxy,)}])
    assert not holds_proxy([{"x": ("y",)}])
    assert recorder.broken is None


def test_expressions_are_evaluated_without_recursion():
    expression = parameter("a")
    for _ in range(50_000):
        expression = Expression("add", (expression, 1))
    assert evaluate(expression, {"a": 1}, {}) == 50_001


def test_expressions_need_their_inputs():
    with pytest.raises(MissingInputError):
        evaluate(Expression("len", (parameter("a"),)), {}, {})
