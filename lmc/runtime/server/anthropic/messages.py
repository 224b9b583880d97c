"""``/v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Generation, TokenDelta
from lmc.runtime.server.anthropic.form import failed, usage_of
from lmc.runtime.server.errors import error_of
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import Answered, ClientLane, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import check_model
from lmc.runtime.server.parameters import Parameters, sampling_of
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import EventStream, data, while_connected

router = APIRouter()


class TextBlock(BaseModel):
    """A block of a content: text."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: Literal["text"]
    text: str
    cache_control: dict[str, Any] | None = None
    citations: None = None


class MessageParam(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    role: Literal["user", "assistant"]
    content: str | list[TextBlock]


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
        "tools": ([],),
        "tool_choice": ({"type": "auto"}, {"type": "none"}),
    }

    model: str
    messages: list[MessageParam] = Field(min_length=1)
    system: str | list[TextBlock] | None = None
    output_config: OutputConfig | None = None

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompt, as the only one. A final message of the assistant is continued."""
        check_model(model, self.model)
        system = _text(self.system or "")
        turns = [ChatTurn(each.role, _text(each.content)) for each in self.messages]
        if system:
            turns.insert(0, ChatTurn("system", system))
        try:
            return [model.prompts.chat(turns, goes_on=turns[-1].role == "assistant")]
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

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        found = await _generated(model, await self.job(model, lane), self.max_tokens)
        content = [{"type": "text", "text": found.text}] if found.text else []
        return Answered(_message(model, content, usage_of(found), found), [found])

    async def job(self, model: Model, lane: ClientLane) -> GenerationJob:
        """Return what the engine has to do. Raises ``ApiError``."""
        (prompt,) = self.prompts(model)
        sampling = sampling_of(
            max_tokens=max(self.max_tokens, 1),
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            stop=self.stop_sequences,
            vocabulary_size=model.tokenizer.vocabulary_size,
        )
        constraint: TokenConstraint | None = None
        if self.output_config is not None and self.output_config.format is not None:
            constraint = await model.constraint("output_config.format", "schema", self.output_config.format.definition)
        return GenerationJob(prompt, sampling, seeds_of(model.seed(None), 1), lane, constraint)


def _text(content: str | list[TextBlock]) -> str:
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _message(
    model: Model, content: list[dict[str, Any]], usage: dict[str, Any], stop: Generation | None
) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model.name,
        "content": content,
        "stop_reason": None if stop is None else _stop_reason(stop),
        "stop_sequence": None if stop is None else _stop_sequence(stop),
        "usage": usage,
    }


def _stop_reason(found: Generation) -> str:
    return {"eos": "end_turn", "length": "max_tokens", "stop": "stop_sequence"}[found.finish_reason]


def _stop_sequence(found: Generation) -> str | None:
    return found.matched_stop if isinstance(found.matched_stop, str) else None


@router.post("/v1/messages")
async def create_message(request: Request, body: MessagesRequest) -> Response:
    """Continue a conversation."""
    model = model_of(request)
    if body.stream:
        job = await body.job(model, lane_of(request))
        return await EventStream.open(request, _events(request, model, job, body.max_tokens), failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


@router.post("/v1/messages/count_tokens")
async def count_tokens(request: Request, body: Conversation) -> dict[str, int]:
    """Count the tokens of a conversation."""
    (prompt,) = body.prompts(model_of(request))
    return {"input_tokens": len(prompt)}


async def _generated(model: Model, job: GenerationJob, max_tokens: int) -> Generation:
    if max_tokens == 0:
        (kept,) = await model.keep([job.prompt], job.lane)
        return kept
    (found,) = await model.generate(job)
    return found


async def _events(request: Request, model: Model, job: GenerationJob, max_tokens: int) -> AsyncIterator[bytes]:
    """Yield the named events of a message."""
    events = model.stream(job)
    found: Generation | None = None
    begun = False
    # The part of the prompt that was in the cache is known at the end only; then all counts are given again.
    usage = {"input_tokens": len(job.prompt), "output_tokens": 0}
    start = data({"type": "message_start", "message": _message(model, [], usage, None)}, "message_start")
    if max_tokens == 0:
        found = await _generated(model, job, 0)
        yield start
    else:
        async for event in events:
            if not begun:
                begun = True
                yield start
                block = {"type": "text", "text": ""}
                yield data({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
            if isinstance(event.content, TokenDelta):
                delta = {"type": "text_delta", "text": event.content.text}
                yield data({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
            else:
                found = event.content
        yield data({"type": "content_block_stop", "index": 0}, "content_block_stop")
    assert found is not None, "a stream ends with its result"
    note_usage(request, [found])
    delta = {"stop_reason": _stop_reason(found), "stop_sequence": _stop_sequence(found)}
    yield data({"type": "message_delta", "delta": delta, "usage": usage_of(found)}, "message_delta")
    yield data({"type": "message_stop"}, "message_stop")
