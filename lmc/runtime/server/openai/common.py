"""Parameters that chat and plain completions share, and the jobs that they make."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from lmc.grammar.compiling import Whitespace
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import SamplingParams
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.model import Model
from lmc.runtime.server.parameters import MOST_CHOICES, Parameters, UnsupportedError, sampling_of


class StreamOptions(Parameters):
    """Options of a stream: ``include_usage`` asks for a last event with the counts."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"include_obfuscation"})

    include_usage: bool | None = None


class TextPart(Parameters):
    """A part of the content of a message: text."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"prompt_cache_breakpoint"})

    type: Literal["text"]
    text: str

    @field_validator("type", mode="wrap")
    @classmethod
    def _check_type(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(
                f"a content is text, and not {str(value)[:80]!r}: images, audio and files are not served"
            ) from None


class SchemaFormat(BaseModel):
    """A named JSON schema."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    description: str | None = None
    definition: dict[str, Any] | bool = Field(alias="schema", default_factory=dict[str, Any])
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """The form of an output, enforced while it is generated."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None

    @model_validator(mode="after")
    def _check_type(self) -> ResponseFormat:
        if self.json_schema is not None and self.type != "json_schema":
            raise UnsupportedError("json_schema", f"the type {self.type} has none")
        return self

    @property
    def definition(self) -> dict[str, Any] | bool | None:
        """The schema of the output; None for text."""
        if self.type == "json_schema":
            if self.json_schema is None:
                raise refused("response_format", "json_schema is missing")
            return self.json_schema.definition
        return {"type": "object"} if self.type == "json_object" else None


class StructuredOutputs(BaseModel):
    """A constraint as vLLM's server takes it: one of the first four."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    json_: dict[str, Any] | bool | str | None = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    disable_any_whitespace: bool | None = None

    @property
    def definitions(self) -> list[tuple[str, str, Any]]:
        """Parameter, kind and definition of each constraint in it."""
        given = {"json": self.json_, "regex": self.regex, "choice": self.choice, "grammar": self.grammar}
        kinds = {"json": "schema", "choice": "choices"}
        return [
            (f"structured_outputs.{name}", kinds.get(name, name), value)
            for name, value in given.items()
            if value is not None
        ]


class Restriction(NamedTuple):
    """A parameter that restricts the output; the rest is as in ``Model.constraint``."""

    parameter: str
    kind: str
    definition: Any
    whitespace: Whitespace | None


class Sampled(Parameters):
    """Parameters of the draw, and lmc's own additions (those of vLLM and SGLang) to OpenAI's."""

    model: str
    n: int | None = Field(default=None, ge=1, le=MOST_CHOICES)
    seed: int | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    top_k: int | None = None
    min_p: float | None = None
    min_tokens: int | None = None
    repetition_penalty: float | None = None
    stop_token_ids: list[int] | None = None
    regex: str | None = None
    ebnf: str | None = None
    json_schema: dict[str, Any] | bool | str | None = None
    whitespace: Whitespace | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None

    @model_validator(mode="after")
    def _check_stream_options(self) -> Sampled:
        if self.stream_options is not None and not self.stream:
            raise UnsupportedError("stream_options", "it needs stream")
        return self

    @property
    def choices(self) -> int:
        """The number of answers to each prompt."""
        return self.n or 1

    def sampling(self, model: Model, max_tokens: int | None, prompt: int, logprobs: int | None) -> SamplingParams:
        """Return the sampling; without ``max_tokens`` the context is the limit."""
        rest = max(model.engine.info.context_length - prompt, 1)
        return sampling_of(
            max_tokens=rest if max_tokens is None else max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stop=self.stop,
            top_k=self.top_k,
            min_p=self.min_p,
            min_tokens=self.min_tokens,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            repetition_penalty=self.repetition_penalty,
            stop_token_ids=self.stop_token_ids,
            logit_bias=self.logit_bias,
            logprobs=logprobs,
            vocabulary_size=model.tokenizer.vocabulary_size,
        )

    async def constraint(self, model: Model) -> TokenConstraint | None:
        """Compile what restricts the output. Raises ``ApiError`` where two parameters do."""
        found = self.restriction()
        return await model.constraint(*found) if found else None

    def restriction(self) -> Restriction | None:
        """Return what restricts the output. Raises ``ApiError`` where two parameters do."""
        found = self._constraints()
        if len(found) > 1:
            raise refused(found[1][0], f"the output is restricted by {found[0][0]} already")
        if not found:
            if self.whitespace is not None:
                raise refused("whitespace", "it is that of a json_schema or response_format")
            return None
        of_vllm = self.structured_outputs
        is_flexible = of_vllm is not None and of_vllm.json_ is not None and of_vllm.disable_any_whitespace is False
        return Restriction(*found[0], "flexible" if is_flexible else self.whitespace)

    def _constraints(self) -> list[tuple[str, str, Any]]:
        """Return the parameters that restrict the output, with kind and definition. An empty text is none."""
        found: list[tuple[str, str, Any]] = []
        if self.regex:
            found.append(("regex", "regex", self.regex))
        if self.ebnf:
            found.append(("ebnf", "grammar", self.ebnf))
        if self.json_schema not in (None, ""):
            found.append(("json_schema", "schema", self.json_schema))
        if self.response_format is not None and (schema := self.response_format.definition) is not None:
            found.append(("response_format", "schema", schema))
        return [*found, *(self.structured_outputs.definitions if self.structured_outputs is not None else ())]


def check_model(model: Model, name: str) -> None:
    """Raise ``ApiError`` for a name that is not the model's."""
    if name != model.name:
        raise ApiError(
            "missing", f"there is no model {name!r}; this server has {model.name!r}", "model", "model_not_found"
        )
