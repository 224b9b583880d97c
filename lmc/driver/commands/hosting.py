"""Programs of ``lmc serve``: compiled as for ``lmc run``, on the engine of the server."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pydantic
from pydantic_core import to_jsonable_python

from lmc.driver.batch.rows import ArgumentReader, Signature
from lmc.driver.commands.cli_options import Configured
from lmc.driver.compile.compile import Variants
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.programs import load_program
from lmc.driver.run.result import result_row
from lmc.driver.run.stream import AsyncStream
from lmc.driver.runner import Runner
from lmc.driver.targets.defaults import resolve_target
from lmc.driver.targets.engines import adopt_engine
from lmc.frontend.program.function import JittedFunction
from lmc.ir.cached import cached_property
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.runtime.events import TokenEvent

if TYPE_CHECKING:  # it needs the packages of a server
    from lmc.runtime.server.jobs import ClientLane
    from lmc.runtime.server.programs.hosted import ProgramEnd


def load_programs(specs: Sequence[str], target: Target) -> list[JittedFunction]:
    """Load programs named ``PROGRAM.py[:name]``.

    Raises ``UsageError`` for two of one name, and for one whose own options name another target than the server's.
    """
    found: dict[str, JittedFunction] = {}
    for spec in specs:
        function = load_program(spec)
        if function.name in found:
            raise UsageError(f"two programs are named {function.name}", remedy="serve each of them once")
        own = _options(function)
        if own.engine and (theirs := resolve_target(own)) != target:
            raise UsageError(
                f"{spec} runs on {_shown(theirs)} by its @lmc.jit, and the server has {_shown(target)}",
                remedy="serve that target with --model and its options, or leave them out in the file",
            )
        found[function.name] = function
    return list(found.values())


def host(function: JittedFunction, engine: Engine) -> Hosted:
    """Return a program as the endpoints of a server use it, on its engine."""
    options = replace(_options(function).without_engine(), target=adopt_engine(engine))
    return Hosted(function, options)


def _options(function: JittedFunction) -> Options:
    return function.options if isinstance(function, Configured) else Options()


def _shown(target: Target) -> str:
    defaults = Target(target.kind, target.path)
    names = ("dtype", "kv_tokens", "deterministic", "device", "prefill_tokens")
    given = [f"{name}={getattr(target, name)}" for name in names if getattr(target, name) != getattr(defaults, name)]
    return " ".join([target.spec, *given])


@dataclass
class Hosted:
    """A program and the options that it runs under. Its compiled variants are shared by all clients."""

    function: JittedFunction
    options: Options
    variants: Variants = field(default_factory=Variants)

    @property
    def name(self) -> str:
        """The name in the path of its endpoint."""
        return self.function.name

    @property
    def description(self) -> Mapping[str, Any]:
        """Name, docstring, and the JSON schemas of arguments and value."""
        text = inspect.getdoc(self.function.definition)
        return {"name": self.name, "object": "program", "description": text, **_schemas(self.function, self._signature)}

    @cached_property
    def _signature(self) -> Signature:
        return Signature.of(self.function)

    @cached_property
    def _reader(self) -> ArgumentReader:
        return ArgumentReader(self._signature)

    def run(self, row: bytes, seed: int | None, lane: ClientLane) -> _HostedRun:
        """Prepare a run with the arguments of a row. Raises ``InputError``."""
        arguments = self._reader.row(row)
        options = replace(self.options, lane=lane.number, priority=self.options.priority + lane.priority)
        if seed is not None:
            options = replace(options, seed=seed)
        runner = Runner(self.function, options, self.variants)
        return _HostedRun(runner.astream(((), arguments)))


@dataclass(frozen=True)
class _HostedRun:
    stream: AsyncStream

    async def events(self) -> AsyncGenerator[TokenEvent | ProgramEnd]:
        """Yield the tokens of the run, and its end."""
        from lmc.runtime.server.programs.hosted import ProgramEnd

        try:
            async with aclosing(aiter(self.stream)) as events:
                async for event in events:
                    yield event
        except BaseException:
            if not self.stream.is_over:  # the run could not begin, or the client is gone
                raise
        result = self.stream.result
        yield ProgramEnd(result_row(0, result), result.usage, result.error)

    def cancel(self) -> None:
        """End the run with an error."""
        self.stream.close()


def _schemas(function: JittedFunction, signature: Signature) -> dict[str, Any]:
    """Return the JSON schemas of arguments and value; what has no annotation, or none with a schema, takes anything."""
    properties: dict[str, dict[str, Any]] = {}
    for name in signature.names:
        annotation = signature.types.get(name, Any)
        properties[name] = _schema(annotation, "validation", f"#/properties/{name}")
        if name in signature.optional:
            with suppress(ValueError):
                properties[name]["default"] = to_jsonable_python(function.defaults[name])
    arguments = {
        "type": "object",
        "properties": properties,
        "required": list(signature.needed),
        "additionalProperties": signature.open,
    }
    try:
        value = typing.get_type_hints(function.definition).get("return", Any)
    except (NameError, TypeError, AttributeError, SyntaxError):
        value = Any
    return {"arguments": arguments, "value": _schema(value, "serialization", "#")}


def _schema(annotation: Any, mode: typing.Literal["validation", "serialization"], root: str) -> dict[str, Any]:
    """Return the schema of a type that stands at ``root``, a JSON pointer."""
    try:
        return pydantic.TypeAdapter(annotation).json_schema(mode=mode, ref_template=f"{root}/$defs/{{model}}")
    except (pydantic.PydanticUserError, pydantic.PydanticInvalidForJsonSchema):
        return {}
