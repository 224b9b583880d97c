"""A tool as a model calls it: JSON arguments under the schema of its annotations, and a text as result."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pydantic
import pydantic_core
from pydantic.errors import PydanticUserError

from lmc.frontend.language.refusals import bad
from lmc.frontend.schemas.schemas import UnknownSchemaError, schema_of
from lmc.frontend.tools.tools import Tool
from lmc.ir.cached import cached_property
from lmc.ir.errors import InputError, LmcError, ToolTimeoutError

Errors = Literal["raise", "tell"]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class RefusedArgumentsError(InputError):
    """Arguments that meet the schema of a tool, but not the further requirements of its annotations."""


@dataclass(frozen=True, eq=False)
class ToolArguments:
    """The arguments of ``tool``: ``model`` has a field for each parameter, named as in JSON."""

    tool: Tool[..., Any]
    model: type[pydantic.BaseModel]

    @cached_property
    def schema(self) -> str:
        """Their JSON schema."""
        return schema_of(self.model).text

    def read(self, text: str) -> dict[str, Any]:
        """Return the arguments in ``text``, JSON; missing ones are left to the tool's defaults.

        Raises ``RefusedArgumentsError`` for arguments that the annotations refuse.
        """
        try:
            found = self.model.model_validate_json(text)
        except pydantic.ValidationError as error:
            said = "; ".join(
                ": ".join(filter(None, (".".join(map(str, entry["loc"])), entry["msg"]))) for entry in error.errors()
            )
            raise RefusedArgumentsError(
                f"the tool {self.tool.name!r} does not take {text}: {said}",
                remedy='say so in its annotations, or let the model try again: errors="tell"',
            ) from error
        fields = type(found).model_fields
        return {fields[name].alias or name: getattr(found, name) for name in fields if name in found.model_fields_set}


@lru_cache(maxsize=256)
def arguments_of(tool: Tool[..., Any]) -> ToolArguments:
    """Return the JSON arguments of ``tool``. Raises ``CaptureError`` for parameters that JSON can't express."""
    hints = _hints(tool)
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(tool.function).parameters.values()):
        if parameter.kind not in _NAMED:
            raise bad(
                f"the tool {tool.name!r} has the parameter {parameter}, which no name of JSON stands for",
                "give it plain parameters, each with an annotation",
            )
        if parameter.name not in hints:
            raise bad(
                f"the parameter {parameter.name!r} of the tool {tool.name!r} has no annotation",
                f"say what a model may give it: {parameter.name}: str",
            )
        # Under a name of their own: a model has attributes that a parameter may be called like.
        fields[f"argument_{number}"] = (hints[parameter.name], _field(parameter))
    try:
        model = pydantic.create_model(tool.name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)
        schema_of(model)
    except (UnknownSchemaError, PydanticUserError) as error:
        cause = str(error).partition("\n")[0]
        remedy = error.remedy if isinstance(error, UnknownSchemaError) else None
        raise bad(
            f"a model can't give the arguments of the tool {tool.name!r}: {cause}",
            remedy or "annotate its parameters with types that JSON can hold",
        ) from error
    return ToolArguments(tool, model)


@lru_cache(maxsize=256)
def by_text(tool: Tool[..., Any], errors: Errors) -> Tool[[str], str]:
    """Wrap ``tool`` for the graph: arguments as JSON text, result as text.

    With ``errors`` "tell", the message of an exception is its result, too.
    """
    arguments = arguments_of(tool)

    def told(error: Exception) -> str:
        own = isinstance(error, LmcError) and not isinstance(error, ToolTimeoutError | RefusedArgumentsError)
        if errors == "raise" or own:
            raise error
        return f"Error: {error.cause if isinstance(error, LmcError) else f'{type(error).__name__}: {error}'}"

    def call(text: str) -> str:
        try:
            return shown(tool(**arguments.read(text)))
        except Exception as error:
            return told(error)

    async def call_async(text: str) -> str:
        try:
            return shown(await tool(**arguments.read(text)))
        except Exception as error:
            return told(error)

    chosen: Callable[[str], Any] = call_async if tool.is_async else call
    functools.update_wrapper(chosen, tool.function)
    chosen.__annotations__ = {"text": str, "return": str}
    chosen.__qualname__ += f".by_text[{errors}]"  # a saved plan tells it from the tool itself
    return Tool(chosen, tool.effect)


def shown(result: Any) -> str:
    """Return ``result`` as text for a model: a text as it is, else JSON, else ``str`` where JSON has no form."""
    if isinstance(result, str):
        return result
    return pydantic_core.to_json(result, inf_nan_mode="constants", fallback=str).decode()


def _field(parameter: inspect.Parameter) -> Any:
    if parameter.default is inspect.Parameter.empty:
        return pydantic.Field(alias=parameter.name)
    # Only shown: what a model leaves out is left out of the call.
    shown = parameter.default if type(parameter.default) in (bool, int, float, str) else None
    return pydantic.Field(shown, alias=parameter.name)


def _hints(tool: Tool[..., Any]) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(tool.function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise bad(
            f"the annotations of the tool {tool.name!r} name what is not there: {error}",
            "import what they name in its module",
        ) from error
