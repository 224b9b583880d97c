"""``/v1/chat/completions``."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta
from lmc.runtime.server.errors import error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import Answered, ClientLane, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import Sampled, check_model
from lmc.runtime.server.openai.form import FINISH, chat_logprobs, failed, usage_of
from lmc.runtime.server.parameters import MOST_LOGPROBS
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import DONE, EventStream, data, while_connected

router = APIRouter()

_ROLES = {"developer": "system"}


class TextPart(BaseModel):
    """A part of the content of a message: text."""

    model_config = ConfigDict(frozen=True, strict=True)

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: None = None
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    tool_calls: None = None

    @property
    def message(self) -> ChatTurn:
        """The message with its whole text."""
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return ChatTurn(_ROLES.get(self.role, self.role), text)


class ChatRequest(Sampled):
    """The body of a chat completion."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        {
            "metadata",
            "prediction",
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
        "modalities": (["text"],),
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "parallel_tool_calls": (True, False),
    }

    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_LOGPROBS)
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None

    async def job(self, model: Model, lane: ClientLane) -> GenerationJob:
        """Return what the engine has to do. Raises ``ApiError``."""
        (prompt,) = self.prompts(model)
        most = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        logprobs = (self.top_logprobs or 0) if self.logprobs else None
        sampling = self.sampling(model, most, len(prompt), logprobs)
        seeds = seeds_of(model.seed(self.seed), self.n or 1)
        return GenerationJob(prompt, sampling, seeds, lane, await self.constraint(model))

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        found = await model.generate(await self.job(model, lane))
        return Answered({**_head(model), "choices": _choices(model, found), "usage": usage_of(found)}, found)

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompt, as the only one. Raises ``ApiError``."""
        check_model(model, self.model)
        if self.top_logprobs is not None and not self.logprobs:
            raise refused("top_logprobs", "it needs logprobs")
        if None not in (self.max_tokens, self.max_completion_tokens):
            raise refused("max_tokens", "max_completion_tokens is given too")
        goes_on = bool(self.continue_final_message)
        if goes_on and self.add_generation_prompt:
            raise refused("continue_final_message", "add_generation_prompt is given too")
        if not goes_on and self.add_generation_prompt is False:
            raise refused("add_generation_prompt", "an answer needs one, unless it continues the final message")
        try:
            return [model.prompts.chat([each.message for each in self.messages], goes_on=goes_on)]
        except Exception as error:
            raise error_of(error, "messages") from error


@router.post("/v1/chat/completions")
async def chat_completions(request: Request, body: ChatRequest) -> Response:
    """Continue a conversation."""
    model = model_of(request)
    if body.stream:
        job = await body.job(model, lane_of(request))
        head = {**_head(model), "object": "chat.completion.chunk"}
        wants_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return await EventStream.open(request, _events(request, model, job, head, wants_usage=wants_usage), failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


def _head(model: Model) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": model.now,
        "model": model.name,
    }


def _choices(model: Model, found: Sequence[Generation]) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "message": {"role": "assistant", "content": each.text, "refusal": None},
            "logprobs": None if each.logprobs is None else chat_logprobs(each.logprobs, model.texts),
            "finish_reason": FINISH[each.finish_reason],
        }
        for index, each in enumerate(found)
    ]


async def _events(
    request: Request, model: Model, job: GenerationJob, head: dict[str, Any], *, wants_usage: bool
) -> AsyncIterator[bytes]:
    """Yield the chunks of a stream: the role of each choice, its text, its end, and the usage if that is wanted."""
    usage: dict[str, Any] = {"usage": None} if wants_usage else {}
    scored = job.sampling.logprobs is not None

    def chunk(index: int, delta: dict[str, Any], finish: str | None = None, logprobs: Any = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return data({**head, "choices": [choice], **usage})

    begun: set[int] = set()
    sent = [0] * len(job.seeds)
    found: dict[int, Generation] = {}
    async for event in model.stream(job):
        index, content = event.choice, event.content
        if index not in begun:
            begun.add(index)
            yield chunk(index, {"role": "assistant", "content": "", "refusal": None})
        if isinstance(content, TokenDelta):
            sent[index] += len(content.token_ids)
            logprobs = chat_logprobs(content.logprobs, model.texts) if scored else None
            yield chunk(index, {"content": content.text}, logprobs=logprobs)
            continue
        found[index] = content
        rest = (content.logprobs or ())[sent[index] :]
        if rest:
            yield chunk(index, {"content": ""}, logprobs=chat_logprobs(rest, model.texts))
        yield chunk(index, {}, FINISH[content.finish_reason])
    note_usage(request, list(found.values()))
    if wants_usage:
        yield data({**head, "choices": [], "usage": usage_of([found[index] for index in sorted(found)])})
    yield DONE
