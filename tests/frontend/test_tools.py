import pytest

from lmc.frontend.tools import Tool, annotated_type, fit, tool
from lmc.ir.core import Effect
from lmc.ir.errors import CaptureError, InputError
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, list_of


@tool(effect="reads")
def word_count(text: str) -> int:
    """Words."""
    return len(text.split())


def test_a_tool_is_the_function_outside_of_programs():
    assert word_count("a b") == 2
    assert (word_count.__name__, word_count.__doc__, word_count.effect) == ("word_count", "Words.", Effect.READS)
    assert repr(word_count) == "<lmc tool word_count (reads)>"


def test_the_undeclared_effect_is_writes():
    @tool
    def act():
        return None

    assert isinstance(act, Tool)
    assert act.effect is Effect.WRITES
    assert act.result_type == ANY


def test_unknown_effects_are_refused():
    with pytest.raises(CaptureError, match="unknown effect 'read'") as caught:
        tool(effect="read")
    assert "pure, reads or writes" in str(caught.value).replace('"', "")
    assert caught.value.location is not None


def test_async_tools_are_refused():
    async def later():
        return 1

    with pytest.raises(CaptureError, match="the tool 'later' is async") as caught:
        tool(later)
    assert "plain function" in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (str, TEXT), (int, INT), (float, FLOAT), (bool, BOOL), (None, NONE), (list[str], list_of(TEXT)),
        (list, ANY), (dict, ANY), (list[dict], ANY), (str | None, ANY), ([], ANY),
    ],
)  # fmt: skip
def test_types_of_annotations(annotation, kind):
    assert annotated_type(annotation) == kind


class Sub(str):
    pass


def test_results_are_made_exactly_what_was_promised():
    assert type(fit(Sub("x"), TEXT)) is str
    assert type(fit(1, FLOAT)) is float
    assert fit([1], list_of(INT)) == [1]


@pytest.mark.parametrize(
    ("value", "annotation"),
    [(1, str), (True, int), ("x", int), (1, bool), ([1], list[str]), ((), list[str]), (0, None)],
)
def test_a_broken_promise_is_an_input_error(value, annotation):
    def give():
        return value

    give.__annotations__["return"] = annotation
    with pytest.raises(InputError, match="the tool 'give' is annotated to give") as caught:
        tool(give)()
    assert "return annotation" in str(caught.value)
    assert caught.value.location is not None


def test_annotations_that_name_nothing_promise_nothing():
    def give() -> "Missing":  # type: ignore[name-defined]  # noqa: F821
        return 1

    assert tool(give).result_type == ANY
    assert tool(give)() == 1
