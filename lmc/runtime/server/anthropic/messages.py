"""``/v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta
from lmc.runtime.server.anthropic.content import (
    MessageParam,
    MessageTool,
    TextBlock,
    ToolChoiceParam,
    text_of,
    tool_use,
    turns_of,
)
from lmc.runtime.server.anthropic.form import failed, usage, usage_of
from lmc.runtime.server.calls import (
    MOST_TOOLS,
    ArgumentsPiece,
    CallStart,
    OutputFormat,
    Piece,
    TextPiece,
    ToolUse,
    compiled,
    new_id,
)
from lmc.runtime.server.errors import error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import Answered, ClientLane, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import check_model
from lmc.runtime.server.parameters import Parameters, sampling_of
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import EventStream, data, while_connected

router = APIRouter()


class JsonFormat(BaseModel):
    """The form of an output, enforced while it is generated."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: Literal["json_schema"]
    definition: dict[str, Any] | bool = Field(alias="schema")


class OutputConfig(Parameters):
    """Requirements on an output."""

    format: JsonFormat | None = None


class Conversation(Parameters):
    """Parameters that make the prompt."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        {
            "cache_control",
            "diagnostics",
            "inference_geo",
            "metadata",
            "service_tier",
            "user_profile_id",
            "workspace_id",
        }
    )
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "thinking": ({"type": "disabled"},),
        "speed": ("standard",),
    }

    model: str
    messages: list[MessageParam] = Field(min_length=1)
    system: str | list[TextBlock] | None = None
    output_config: OutputConfig | None = None
    tools: list[MessageTool] | None = Field(default=None, max_length=MOST_TOOLS)
    tool_choice: ToolChoiceParam | None = None

    @property
    def use(self) -> ToolUse:
        """The tools of the conversation. Raises ``ApiError``."""
        return tool_use(self.tools, self.tool_choice)

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompt, as the only one. A final message of the assistant is continued."""
        check_model(model, self.model)
        system = text_of(self.system or "")
        turns = turns_of(self.messages)
        if system:
            turns.insert(0, ChatTurn("system", system))
        if turns[-1].calls:
            raise refused("messages", "the final message has calls without results")
        try:
            return [model.prompts.chat(turns, goes_on=turns[-1].role == "assistant", tools=self.use.tools)]
        except Exception as error:
            raise error_of(error, "messages") from error


class MessagesRequest(Conversation):
    """The body of a message. ``max_tokens`` 0 computes the prompt, so that later requests find it in the cache."""

    max_tokens: int = Field(ge=0)
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None

    @property
    def choices(self) -> int:
        """The number of answers."""
        return 1

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer, as a batch plans it."""
        return self.max_tokens

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        job, output = await self.job(model, lane)
        found = await _generated(model, job, self.max_tokens)
        text, calls = output.read(found.text, "toolu_")
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content += [_block(call.id, call.name, _whole_members(call.arguments)) for call in calls]
        return Answered(_message(model, content, usage_of(found), _stop(output, found)), [found])

    async def job(self, model: Model, lane: ClientLane) -> tuple[GenerationJob, OutputFormat]:
        """Return what the engine has to do, and the format of its output. Raises ``ApiError``."""
        (prompt,) = await model.prompts_of(self, lane)
        sampling = sampling_of(
            max_tokens=max(self.max_tokens, 1),
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            stop=self.stop_sequences,
            vocabulary_size=model.tokenizer.vocabulary_size,
            names={"stop": "stop_sequences"},
        )
        form = None if self.output_config is None else self.output_config.format
        output, constraint = OutputFormat(), None
        if self.use.tools:
            output, constraint = await compiled(model, self.use, None if form is None else form.definition)
        elif form is not None:
            constraint = await model.constraint("output_config.format", "schema", form.definition)
        return GenerationJob(prompt, sampling, seeds_of(model.seed(None), 1), lane, constraint, "messages"), output


def _whole_members(arguments: str) -> Any:
    """Return the arguments of a call, or those that are whole where it is cut: as the SDK reads a stream."""
    return from_json(arguments, allow_partial=True) if arguments else {}


def _block(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _message(
    model: Model, content: list[dict[str, Any]], usage: dict[str, Any], stop: dict[str, str | None]
) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model.name,
        "content": content,
        **stop,
        "usage": usage,
    }


def _stop(output: OutputFormat, found: Generation) -> dict[str, str | None]:
    reason = {"eos": "end_turn", "length": "max_tokens", "stop": "stop_sequence"}[found.finish_reason]
    if output.ends_with_calls(found):
        reason = "tool_use"
    matched = found.matched_stop if isinstance(found.matched_stop, str) else None
    return {"stop_reason": reason, "stop_sequence": matched}


_NO_STOP: dict[str, str | None] = {"stop_reason": None, "stop_sequence": None}


@router.post("/v1/messages")
async def create_message(request: Request, body: MessagesRequest) -> Response:
    """Continue a conversation."""
    model = model_of(request)
    if body.stream:
        job, output = await body.job(model, lane_of(request))
        return await EventStream.open(request, _events(request, model, job, output, body.max_tokens), failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


@router.post("/v1/messages/count_tokens")
async def count_tokens(request: Request, body: Conversation) -> dict[str, int]:
    """Count the tokens of a conversation."""
    (prompt,) = await model_of(request).prompts_of(body, lane_of(request))
    return {"input_tokens": len(prompt)}


async def _generated(model: Model, job: GenerationJob, max_tokens: int) -> Generation:
    if max_tokens == 0:
        (kept,) = await model.keep([job.prompt], job.lane)
        return kept
    (found,) = await model.generate(job)
    return found


class _Blocks:
    """Makes the events of the blocks of a message: one of text, and one for each call."""

    def __init__(self) -> None:
        self.count = 0
        self._open: str | None = None

    def of(self, piece: Piece) -> list[bytes]:
        """Return the events of some more of the output."""
        match piece:
            case TextPiece():
                begun = self._begin({"type": "text", "text": ""}) if self._open != "text" else []
                return [*begun, self._delta({"type": "text_delta", "text": piece.text})]
            case CallStart():
                return self._begin(_block(new_id("toolu_"), piece.name, {}))
            case ArgumentsPiece():
                return [self._delta({"type": "input_json_delta", "partial_json": piece.text})]

    def end(self) -> list[bytes]:
        """Return the end of the open block, if there is one."""
        if self._open is None:
            return []
        self._open = None
        self.count += 1
        return [_event("content_block_stop", index=self.count - 1)]

    def _begin(self, block: dict[str, Any]) -> list[bytes]:
        ended = self.end()
        self._open = block["type"]
        return [*ended, _event("content_block_start", index=self.count, content_block=block)]

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self.count, delta=delta)


def _event(name: str, **content: Any) -> bytes:
    return data({"type": name, **content}, name)


async def _events(
    request: Request, model: Model, job: GenerationJob, output: OutputFormat, max_tokens: int
) -> AsyncIterator[bytes]:
    """Yield the named events of a message."""

    def start(cached_tokens: int) -> bytes:
        return _event("message_start", message=_message(model, [], usage(len(job.prompt), cached_tokens, 0), _NO_STOP))

    found: Generation | None = None
    blocks = _Blocks()
    if max_tokens == 0:
        found = await _generated(model, job, 0)
        yield start(found.cached_tokens)
    else:
        reader = output.reader()
        has_begun = False
        async for event in model.stream(job):
            if not has_begun:
                has_begun = True
                yield start(event.content.cached_tokens)
            if isinstance(event.content, Generation):
                found = event.content
            text = event.content.text if isinstance(event.content, TokenDelta) else ""
            for piece in reader.read(text, is_last=found is not None):
                for each in blocks.of(piece):
                    yield each
        for each in blocks.end():
            yield each
    assert found is not None, "a stream ends with its result"
    note_usage(request, [found])
    yield _event("message_delta", delta=_stop(output, found), usage=usage_of(found))
    yield _event("message_stop")
