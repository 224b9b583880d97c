"""``/v1/responses``: answers in text. Nothing is stored, so each request has the whole conversation."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta, TokenLogprob
from lmc.runtime.server.calls import new_id
from lmc.runtime.server.errors import ApiError, error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import UNLIMITED, Answered, ClientLane, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import check_model
from lmc.runtime.server.openai.form import chat_logprobs, form, usage_of
from lmc.runtime.server.parameters import MOST_LOGPROBS, Parameters, sampling_of
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import EventStream, data, while_connected

router = APIRouter()

_ROLES = {"developer": "system"}


class ResponsePart(Parameters):
    """A part of the content of a message: text."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"annotations", "logprobs", "prompt_cache_breakpoint"})

    type: Literal["input_text", "output_text"]
    text: str


class ResponseMessage(Parameters):
    """A message of the conversation, by the client or as an earlier answer has it."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"id", "status", "phase"})

    type: Literal["message"] | None = None
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ResponsePart]

    @property
    def turn(self) -> ChatTurn:
        """The message as a turn."""
        parts = self.content
        text = parts if isinstance(parts, str) else "".join(part.text for part in parts)
        return ChatTurn(_ROLES.get(self.role, self.role), text)


class ResponseTextFormat(BaseModel):
    """The form of an output, enforced while it is generated."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    definition: dict[str, Any] | bool | None = Field(alias="schema", default=None)
    strict: bool | None = None


class ResponseTextConfig(Parameters):
    """Requirements on an output."""

    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {"verbosity": ("medium",)}

    format: ResponseTextFormat | None = None


class ResponsesRequest(Parameters):
    """The body of a response."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        {
            "metadata",
            "prompt_cache_key",
            "prompt_cache_options",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "store",
            "user",
        }
    )
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "background": (False,),
        "context_management": ([],),
        "parallel_tool_calls": (True, False),  # there are no tools
        "reasoning": ({}, {"effort": "none"}),
        "stream_options": ({}, {"include_obfuscation": False}, {"include_obfuscation": True}),
        "tool_choice": ("auto", "none"),
        "tools": ([],),
        "truncation": ("disabled",),
    }

    model: str
    input: str | list[ResponseMessage]
    instructions: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_LOGPROBS)
    include: list[Literal["message.output_text.logprobs"]] | None = None
    text: ResponseTextConfig | None = None
    stream: bool | None = None

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer, as a batch plans it."""
        return self.max_output_tokens or UNLIMITED

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompt, as the only one. Raises ``ApiError``."""
        check_model(model, self.model)
        given = [ChatTurn("user", self.input)] if isinstance(self.input, str) else [each.turn for each in self.input]
        if not given:
            raise refused("input", "there is no message")
        turns = [ChatTurn("system", self.instructions), *given] if self.instructions else given
        try:
            return [model.prompts.chat(turns, goes_on=False)]
        except Exception as error:
            raise error_of(error, "input") from error

    async def job(self, model: Model, lane: ClientLane) -> GenerationJob:
        """Return what the engine has to do. Raises ``ApiError``."""
        (prompt,) = self.prompts(model)
        if self.top_logprobs and not self.include:
            raise refused("top_logprobs", "it needs message.output_text.logprobs in include")
        rest = max(model.engine.info.context_length - len(prompt), 1)
        sampling = sampling_of(
            max_tokens=self.max_output_tokens or rest,
            temperature=self.temperature,
            top_p=self.top_p,
            logprobs=(self.top_logprobs or 0) if self.include else None,
            vocabulary_size=model.tokenizer.vocabulary_size,
        )
        schema = self._schema()
        constraint = None if schema is None else await model.constraint("text.format", "schema", schema)
        return GenerationJob(prompt, sampling, seeds_of(model.seed(None), 1), lane, constraint)

    def _schema(self) -> dict[str, Any] | bool | None:
        given = None if self.text is None else self.text.format
        if given is None or given.type == "text":
            return None
        if given.type == "json_object":
            return {"type": "object"}
        if given.definition is None:
            raise refused("text.format", "schema is missing")
        return given.definition

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        (found,) = await model.generate(await self.job(model, lane))
        written = _Written(self, model)
        return Answered(written.ended(found), [found])


@router.post("/v1/responses")
async def create_response(request: Request, body: ResponsesRequest) -> Response:
    """Answer a conversation."""
    model = model_of(request)
    if body.stream:
        written = _Written(body, model)
        events = _events(request, written, await body.job(model, lane_of(request)))
        return await EventStream.open(request, events, written.failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


class _Written:
    """Makes the forms of one response: as it begins, its events, as it ends."""

    def __init__(self, body: ResponsesRequest, model: Model) -> None:
        self._body = body
        self.model = model
        self._id = new_id("resp_")
        self._item = new_id("msg_")
        self._created = model.now
        self._numbers = itertools.count()

    def response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the response, with the parameters that it was asked for."""
        body = self._body
        given = None if body.text is None else body.text.format
        shown = {"type": "text"} if given is None else given.model_dump(by_alias=True, exclude_none=True)
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": {},
            "model": self.model.name,
            "output": output,
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "text": {"format": shown},
            "tool_choice": "none",
            "tools": [],
            "top_logprobs": body.top_logprobs or 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "usage": None,
        }

    def ended(self, found: Generation) -> dict[str, Any]:
        """Return the response with its output and usage."""
        status = "incomplete" if found.finish_reason == "length" else "completed"
        usage = usage_of([found])
        return {
            **self.response(status, [self.item(status, [self.part(found.text, found.logprobs)])]),
            "completed_at": self.model.now if status == "completed" else None,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
        }

    def item(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the message of the output."""
        return {"id": self._item, "type": "message", "role": "assistant", "status": status, "content": content}

    def part(self, text: str, logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any]:
        """Return the text of the message."""
        return {"type": "output_text", "annotations": [], "text": text, "logprobs": self.logprobs(logprobs or ())}

    def logprobs(self, entries: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
        """Return log-probabilities."""
        return chat_logprobs(entries, self.model.texts)["content"]

    def event(self, kind: str, **content: Any) -> bytes:
        """Return an event of the stream."""
        return data({"type": kind, "sequence_number": next(self._numbers), **content}, kind)

    def at_item(self, kind: str, **content: Any) -> bytes:
        """Return an event about the message."""
        return self.event(kind, output_index=0, **content)

    def at_part(self, kind: str, **content: Any) -> bytes:
        """Return an event about the text of the message."""
        return self.at_item(kind, item_id=self._item, content_index=0, **content)

    def failed(self, error: ApiError) -> bytes:
        """Return an error as the last event."""
        found = form(error)["error"]
        return self.event("error", code=found["code"], message=found["message"], param=found["param"], error=found)


async def _events(request: Request, written: _Written, job: GenerationJob) -> AsyncIterator[bytes]:
    """Yield the events of a stream."""
    sent, is_begun = 0, False
    async for event in written.model.stream(job):
        content = event.content
        if not is_begun:
            is_begun = True
            for kind in ("response.created", "response.in_progress"):
                yield written.event(kind, response=written.response("in_progress", []))
            yield written.at_item("response.output_item.added", item=written.item("in_progress", []))
            yield written.at_part("response.content_part.added", part=written.part("", None))
        if isinstance(content, TokenDelta):
            sent += len(content.token_ids)
            entries, text = content.logprobs or (), content.text
        else:
            entries, text = (content.logprobs or ())[sent:], ""
        if text or entries:
            yield written.at_part("response.output_text.delta", delta=text, logprobs=written.logprobs(entries))
        if isinstance(content, TokenDelta):
            continue
        ended = written.ended(content)
        (item,) = ended["output"]
        (part,) = item["content"]
        yield written.at_part("response.output_text.done", text=part["text"], logprobs=part["logprobs"])
        yield written.at_part("response.content_part.done", part=part)
        yield written.at_item("response.output_item.done", item=item)
        note_usage(request, [content])
        yield written.event(f"response.{ended['status']}", response=ended)
