import asyncio
import datetime
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import pytest

from lmc.frontend.language.running import HOST
from lmc.frontend.tools.tools import Tool, tool
from lmc.ir.core import Effect
from lmc.ir.errors import CaptureError, EngineError, InputError, ToolTimeoutError
from lmc.library.tool_arguments import RefusedArgumentsError, arguments_of, by_text, shown


class Place(pydantic.BaseModel):
    name: str
    size: int = 0


class Plain:
    def __str__(self) -> str:
        return "plain"


def even(value: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    return value


@tool(effect="reads")
def find(query: str, limit: int = 3, *, kind: Literal["a", "b"] = "a", place: Place | None = None) -> str:
    """Find."""
    return f"{query} {limit} {kind} {place.name if place else None}"


@tool(effect="pure")
def halve(number: Annotated[int, pydantic.AfterValidator(even)]) -> int:
    return number // 2


def test_the_schema_says_what_the_annotations_say():
    schema = json.loads(arguments_of(find).schema)
    assert schema["required"] == ["query"]
    assert list(schema["properties"]) == ["query", "limit", "kind", "place"]
    assert schema["properties"]["limit"]["default"] == 3
    assert schema["properties"]["kind"]["enum"] == ["a", "b"]
    assert schema["additionalProperties"] is False
    assert arguments_of(find) is arguments_of(find)


def test_arguments_are_read_as_they_are_annotated_and_defaults_are_the_tools():
    assert arguments_of(find).read('{"query":"x"}') == {"query": "x"}
    found = arguments_of(find).read('{"query":"x","place":{"name":"p"}}')
    assert found["place"] == Place(name="p")
    assert by_text(find, "raise")('{"query":"x","kind":"b","place":{"name":"p"}}') == "x 3 b p"


def test_parameters_may_be_called_as_they_like():
    @tool
    def odd(json: str, schema: str, copy: int, _hidden: int, self: str, model_config: str) -> None:
        pass

    given = {"json": "a", "schema": "b", "copy": 1, "_hidden": 2, "self": "c", "model_config": "d"}
    assert arguments_of(odd).read(json.dumps(given)) == given


def test_a_tool_may_take_nothing():
    @tool(effect="pure")
    def now() -> str:
        return "noon"

    assert by_text(now, "raise")("{}") == "noon"


def test_as_text_a_tool_keeps_its_effect_and_has_a_name_of_its_own():
    made = by_text(find, "raise")
    assert (made.name, made.effect, made.__doc__) == ("find", Effect.READS, "Find.")
    names = {made.function.__qualname__, by_text(find, "tell").function.__qualname__, find.function.__qualname__}
    assert len(names) == 3
    assert by_text(find, "raise") is made


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        ({"a": [1, 2.5, "é"]}, '{"a":[1,2.5,"é"]}'),
        (Place(name="x"), '{"name":"x","size":0}'),
        (datetime.date(2024, 2, 29), '"2024-02-29"'),
        (math.nan, "NaN"),
        ({"f": Plain()}, '{"f":"plain"}'),
    ],
)
def test_results_are_texts_or_json(result: object, text: str):
    assert shown(result) == text


def unannotated(x) -> None:
    pass


def starred(*words: str) -> None:
    pass


def positional(x: str, /) -> None:
    pass


def callback(x: Callable[[int], int]) -> None:
    pass


def missing(x: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


@pytest.mark.parametrize(
    ("function", "cause", "remedy"),
    [
        (unannotated, "the parameter 'x' of the tool 'unannotated' has no annotation", "x: str"),
        (starred, "the tool 'starred' has the parameter *words: str", "plain parameters"),
        (positional, "the tool 'positional' has the parameter x: str", "plain parameters"),
        (callback, "a model can't give the arguments of the tool 'callback'", ""),
        (missing, "the annotations of the tool 'missing' name what is not there", "import what they name"),
    ],
)
def test_what_json_can_not_give_is_refused(function: Callable[..., Any], cause: str, remedy: str):
    with pytest.raises(CaptureError) as caught:
        arguments_of(tool(function))
    assert cause in caught.value.cause
    assert remedy in (caught.value.remedy or "")
    assert caught.value.remedy
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_arguments_that_only_a_validator_refuses():
    assert by_text(halve, "raise")('{"number":4}') == "2"
    with pytest.raises(
        RefusedArgumentsError, match=r"the tool 'halve' does not take .* number: Value error, it is odd"
    ):
        by_text(halve, "raise")('{"number":3}')
    told = by_text(halve, "tell")('{"number":3}')
    assert told.startswith("Error: the tool 'halve' does not take")
    assert "it is odd" in told


def raising(error: Exception, *, is_async: bool = False) -> Tool[..., Any]:
    def fails() -> str:
        raise error

    async def fails_async() -> str:
        raise error

    return tool(effect="reads")(fails_async if is_async else fails)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_is_told_of_errors_where_the_program_says_so(is_async: bool):
    def called(errors: Any, error: Exception) -> str:
        made: Any = by_text(raising(error, is_async=is_async), errors)
        token = HOST.set("test")  # as in a run
        try:
            return made("{}")
        finally:
            HOST.reset(token)

    assert called("tell", KeyError("x")) == "Error: KeyError: 'x'"
    assert called("tell", ToolTimeoutError("too late", remedy="wait")) == "Error: too late"
    with pytest.raises(KeyError):
        called("raise", KeyError("x"))
    for error in (EngineError("x"), InputError("annotated to give")):
        with pytest.raises(type(error)):
            called("tell", error)


def test_outside_of_a_run_an_async_tool_is_awaited():
    made: Any = by_text(raising(OSError("x"), is_async=True), "tell")
    assert asyncio.run(made("{}")) == "Error: OSError: x"
