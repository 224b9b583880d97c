"""``/v1/responses``: answers in text, and calls of functions. Nothing is stored: requests have whole conversations."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, Tag, model_validator
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta, TokenLogprob
from lmc.ir.tokens.tool_text import ChatCall
from lmc.runtime.server.calls import (
    MOST_TOOLS,
    ArgumentsPiece,
    CallStart,
    OutputFormat,
    Piece,
    TextPiece,
    ToolUse,
    new_id,
)
from lmc.runtime.server.errors import ApiError, error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import UNLIMITED, Answered, ClientLane, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import Restriction, TextPart, check_model
from lmc.runtime.server.openai.form import chat_logprobs, form, usage_of
from lmc.runtime.server.openai.tools import ResponseTool, ResponseToolChoice, call_of, output_format, tool_use
from lmc.runtime.server.parameters import MOST_LOGPROBS, Parameters, UnsupportedError, by_type, sampling_of
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import EventStream, data, while_connected
from lmc.runtime.server.tokens import TextOffsets, TokenTexts

router = APIRouter()

_ROLES = {"developer": "system"}


class ResponsePart(TextPart):
    """A part of the content of a message: text, by the client or as an earlier answer has it."""

    IGNORED: ClassVar[frozenset[str]] = TextPart.IGNORED | {"annotations", "logprobs", "parsed"}

    type: Literal["input_text", "output_text"]  # pyright: ignore[reportIncompatibleVariableOverride]


class ResponseMessage(Parameters):
    """A message of the conversation, by the client or as an earlier answer has it."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"id", "status", "phase"})

    type: Literal["message"] | None = None
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ResponsePart]

    @property
    def turn(self) -> ChatTurn:
        """The message as a turn."""
        return ChatTurn(_ROLES.get(self.role, self.role), _text_of(self.content))


class FunctionCallItem(Parameters):
    """A call that the assistant has made."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"id", "status", "created_by", "parsed_arguments"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {"async": (False,), "caller": ({"type": "direct"},)}

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class FunctionOutputItem(Parameters):
    """The result of a call."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"id", "status", "created_by"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {"caller": ({"type": "direct"},)}

    type: Literal["function_call_output"]
    call_id: str
    name: str | None = None
    output: str | list[ResponsePart]


def _text_of(content: str | Sequence[ResponsePart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


ResponseItem = Annotated[
    Annotated[ResponseMessage, Tag("Message")]
    | Annotated[FunctionCallItem, Tag("Function_call")]
    | Annotated[FunctionOutputItem, Tag("Function_call_output")],
    by_type("an item is a message, a function_call or a function_call_output", default="message"),
]


def turns_of(items: Sequence[ResponseItem]) -> list[ChatTurn]:
    """Return the turns of a conversation: a message of the assistant and the calls behind it are one.

    Raises ``ApiError`` for a result without its call.
    """
    turns: list[ChatTurn] = []
    calls: dict[str, ChatCall] = {}
    for item in items:
        if isinstance(item, ResponseMessage):
            turns.append(item.turn)
        elif isinstance(item, FunctionCallItem):
            call = calls[item.call_id] = call_of("input", item.call_id, item.name, item.arguments)
            if not turns or turns[-1].role != "assistant":
                turns.append(ChatTurn("assistant", ""))
            turns[-1] = replace(turns[-1], calls=(*turns[-1].calls, call))
        else:
            answered = calls.get(item.call_id)
            if answered is None:
                raise refused("input", f"there is no call {item.call_id!r} before its output")
            turns.append(ChatTurn("tool", _text_of(item.output), answered=answered))
    return turns


class ResponseTextFormat(BaseModel):
    """The form of an output, enforced while it is generated."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    definition: dict[str, Any] | bool | None = Field(alias="schema", default=None)
    strict: bool | None = None

    @model_validator(mode="after")
    def _check_type(self) -> ResponseTextFormat:
        for name, value in (("name", self.name), ("schema", self.definition)):
            if self.type == "json_schema" and value is None:
                raise UnsupportedError(name, "a json_schema has one")
            if self.type != "json_schema" and value is not None:
                raise UnsupportedError(name, f"the type {self.type} has none")
        return self


class ResponseTextConfig(Parameters):
    """Requirements on an output."""

    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {"verbosity": ("medium",)}

    format: ResponseTextFormat | None = None


class ResponsesRequest(Parameters):
    """The body of a response."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        {
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
        "reasoning": ({}, {"effort": "none"}),
        "stream_options": ({}, {"include_obfuscation": False}, {"include_obfuscation": True}),
        "truncation": ("disabled",),
    }

    model: str
    input: str | list[ResponseItem]
    instructions: str | None = None
    metadata: dict[str, str] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_LOGPROBS)
    include: list[Literal["message.output_text.logprobs"]] | None = None
    text: ResponseTextConfig | None = None
    tools: list[ResponseTool] | None = Field(default=None, max_length=MOST_TOOLS)
    tool_choice: ResponseToolChoice | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None

    @property
    def choices(self) -> int:
        """The number of answers."""
        return 1

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer, as a batch plans it."""
        return self.max_output_tokens or UNLIMITED

    @property
    def use(self) -> ToolUse:
        """The tools of the conversation. Raises ``ApiError``."""
        return tool_use(self.tools or (), self.tool_choice, is_parallel=self.parallel_tool_calls is not False)

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompt, as the only one. Raises ``ApiError``."""
        check_model(model, self.model)
        given = [ChatTurn("user", self.input)] if isinstance(self.input, str) else turns_of(self.input)
        if not given:
            raise refused("input", "there is no message")
        turns = [ChatTurn("system", self.instructions), *given] if self.instructions else given
        tools = self.use.tools
        try:
            return [model.prompts.chat(turns, goes_on=False, tools=tools)]
        except Exception as error:
            raise error_of(error, "input") from error

    async def job(self, model: Model, lane: ClientLane) -> tuple[GenerationJob, OutputFormat]:
        """Return what the engine has to do, and the format of its output. Raises ``ApiError``."""
        (prompt,) = await model.prompts_of(self, lane)
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
        restriction = None if schema is None else Restriction("text.format", "schema", schema, None)
        output, constraint = await output_format(model, self.use, restriction)
        return GenerationJob(prompt, sampling, seeds_of(model.seed(None), 1), lane, constraint, "input"), output

    def _schema(self) -> dict[str, Any] | bool | None:
        given = None if self.text is None else self.text.format
        if given is None or given.type == "text":
            return None
        if given.type == "json_object":
            return {"type": "object"}
        return given.definition

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        job, output = await self.job(model, lane)
        (found,) = await model.generate(job)
        written, reader = _Written(self, model), output.reader()
        written.items.score(found.logprobs or ())
        for piece in reader.read(found.text, is_last=True):
            written.items.add(piece, reader.text_start)
        written.items.end(_status(found), may_call=output.syntax is not None)
        return Answered(written.ended(found), [found])


@router.post("/v1/responses")
async def create_response(request: Request, body: ResponsesRequest) -> Response:
    """Answer a conversation."""
    model = model_of(request)
    if body.stream:
        written = _Written(body, model)
        job, output = await body.job(model, lane_of(request))
        return await EventStream.open(request, _events(request, written, job, output), written.failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


def _status(found: Generation) -> str:
    return "incomplete" if found.finish_reason == "length" else "completed"


_Event = tuple[str, dict[str, Any]]


class _Items:
    """Makes the items of an output, piece by piece: a message, and one for each call. Gives the events about them."""

    def __init__(self, texts: TokenTexts) -> None:
        self.done: list[dict[str, Any]] = []
        self._texts = texts
        self._open: dict[str, Any] | None = None
        self._said: list[str] = []
        self._scored: list[dict[str, Any]] = []
        self._offsets = TextOffsets(texts)
        self._unsaid: list[tuple[int, TokenLogprob]] = []
        self._text_length = 0

    def score(self, entries: Sequence[TokenLogprob]) -> None:
        """Take in the log-probabilities of tokens, before the pieces that they make."""
        self._unsaid += [(self._offsets.next(entry.token_id), entry) for entry in entries]

    def add(self, piece: Piece, text_start: int = 0) -> list[_Event]:
        """Return the events of some more of the output, whose text begins at ``text_start``."""
        match piece:
            case CallStart(name):
                return self._begin(
                    {"id": new_id("fc_"), "type": "function_call", "call_id": new_id("call_"), "name": name}
                )
            case ArgumentsPiece(text):
                self._said.append(text)
                return [self._at("response.function_call_arguments.delta", delta=text)]
            case TextPiece(text):
                begun = (
                    []
                    if self._is_message
                    else self._begin({"id": new_id("msg_"), "type": "message", "role": "assistant"})
                )
                self._text_length += len(text)
                return [*begun, *self._more(text, self._scores(text_start, text_start + self._text_length))]

    def end(self, status: str, *, may_call: bool) -> list[_Event]:
        """Return the events of the end of the output; there is a message at least.

        Tokens that are left at the end of a message have no text of their own, as the beginning of a character that is
        cut. Where there is no text, they may be the beginning of a call.
        """
        rest = [entry for _, entry in self._unsaid] if self._is_message or not may_call else []
        events = [] if self.done or self._open else self.add(TextPiece(""))
        return [*events, *(self._more("", rest) if self._is_message else ()), *self._close(status)]

    def _more(self, text: str, entries: Sequence[TokenLogprob]) -> list[_Event]:
        """Return the event of some more of the open message, if there is any."""
        scored = chat_logprobs(entries, self._texts)["content"]
        self._said.append(text)
        self._scored += scored
        delta = self._at("response.output_text.delta", content_index=0, delta=text, logprobs=scored)
        return [delta] if text or scored else []

    def _scores(self, start: int, end: int) -> list[TokenLogprob]:
        """Take out the tokens of the text from ``start`` on that begin before ``end``."""
        unsaid = self._unsaid
        before = sum(place < start and after <= start for (place, _), (after, _) in itertools.pairwise(unsaid))
        count = sum(place < end for place, _ in unsaid)
        self._unsaid = unsaid[count:]
        return [entry for _, entry in unsaid[before:count]]

    @property
    def _is_message(self) -> bool:
        return self._open is not None and self._open["type"] == "message"

    def _begin(self, head: dict[str, Any]) -> list[_Event]:
        events = self._close("completed")
        self._open, self._said, self._scored = head, [], []
        empty = {"content": []} if self._is_message else {"arguments": ""}
        item = {**head, "status": "in_progress", **empty}
        events.append(("response.output_item.added", {"output_index": len(self.done), "item": item}))
        if self._is_message:
            events.append(self._at("response.content_part.added", content_index=0, part=self._part("", [])))
        return events

    def _close(self, status: str) -> list[_Event]:
        """Return the end of the open item, if there is one."""
        if self._open is None:
            return []
        said = "".join(self._said)
        if self._is_message:
            part = self._part(said, self._scored)
            item = {**self._open, "status": status, "content": [part]}
            events = [
                self._at("response.output_text.done", content_index=0, text=said, logprobs=self._scored),
                self._at("response.content_part.done", content_index=0, part=part),
            ]
        else:
            item = {**self._open, "status": status, "arguments": said}
            events = [self._at("response.function_call_arguments.done", arguments=said)]
        events.append(("response.output_item.done", {"output_index": len(self.done), "item": item}))
        self.done.append(item)
        self._open = None
        return events

    def _at(self, kind: str, **content: Any) -> _Event:
        """Return an event about the open item."""
        assert self._open is not None, "an item has begun"
        return kind, {"output_index": len(self.done), "item_id": self._open["id"], **content}

    def _part(self, text: str, scored: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "output_text", "annotations": [], "text": text, "logprobs": scored}


class _Written:
    """Makes the forms of one response: as it begins, its events, as it ends."""

    def __init__(self, body: ResponsesRequest, model: Model) -> None:
        self.model = model
        self.items = _Items(model.texts)
        self._body = body
        self._id = new_id("resp_")
        self._created = model.now
        self._numbers = itertools.count()

    def response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the response, with the parameters that it was asked for."""
        body = self._body
        given = None if body.text is None else body.text.format
        shown = {"type": "text"} if given is None else given.model_dump(by_alias=True, exclude_none=True)
        choice = body.tool_choice or "auto"
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": body.metadata or {},
            "model": self.model.name,
            "output": output,
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": None,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "text": {"format": shown},
            "tool_choice": choice if isinstance(choice, str) else choice.model_dump(),
            "tools": [tool.model_dump() for tool in body.tools or ()],
            "top_logprobs": body.top_logprobs or 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "usage": None,
        }

    def ended(self, found: Generation) -> dict[str, Any]:
        """Return the response with its output and usage."""
        status = _status(found)
        usage = usage_of([found])
        return {
            **self.response(status, self.items.done),
            "completed_at": self.model.now if status == "completed" else None,
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
        }

    def event(self, kind: str, content: dict[str, Any]) -> bytes:
        """Return an event of the stream."""
        return data({"type": kind, "sequence_number": next(self._numbers), **content}, kind)

    def failed(self, error: ApiError) -> bytes:
        """Return an error as the last event."""
        found = form(error)["error"]
        return self.event(
            "error", {"code": found["code"], "message": found["message"], "param": found["param"], "error": found}
        )


async def _events(
    request: Request, written: _Written, job: GenerationJob, output: OutputFormat
) -> AsyncIterator[bytes]:
    """Yield the events of a stream."""
    sent, is_begun = 0, False
    items, reader = written.items, output.reader()
    async for event in written.model.stream(job):
        content = event.content
        if not is_begun:
            is_begun = True
            for kind in ("response.created", "response.in_progress"):
                yield written.event(kind, {"response": written.response("in_progress", [])})
        if isinstance(content, TokenDelta):
            sent += len(content.token_ids)
            items.score(content.logprobs or ())
            for piece in reader.read(content.text):
                for each in items.add(piece, reader.text_start):
                    yield written.event(*each)
            continue
        items.score((content.logprobs or ())[sent:])
        for piece in reader.read("", is_last=True):
            for each in items.add(piece, reader.text_start):
                yield written.event(*each)
        for each in items.end(_status(content), may_call=output.syntax is not None):
            yield written.event(*each)
        note_usage(request, [content])
        ended = written.ended(content)
        yield written.event(f"response.{ended['status']}", {"response": ended})
