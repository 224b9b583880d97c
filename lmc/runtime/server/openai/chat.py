"""``/v1/chat/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta
from lmc.ir.tokens.tool_text import ChatCall
from lmc.runtime.server.calls import MOST_TOOLS, OutputFormat, TextPiece, ToolUse
from lmc.runtime.server.errors import error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import UNLIMITED, Answered, ClientLane, Event, GenerationJob, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import Sampled, TextPart, check_model
from lmc.runtime.server.openai.form import FINISH, chat_logprobs, failed, head_of, usage_of
from lmc.runtime.server.openai.tools import CallDeltas, CallParam, ChatTool, ChatToolChoice, output_format, tool_use
from lmc.runtime.server.parameters import MOST_LOGPROBS, Parameters
from lmc.runtime.server.prompts import ChatTurn
from lmc.runtime.server.streams import DONE, EventStream, data, while_connected

router = APIRouter()

_ROLES = {"developer": "system"}


class ChatMessage(Parameters):
    """A message of the conversation, by the client or as an earlier answer has it."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"name", "parsed"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "annotations": ([],),
        "audio": (),
        "function_call": (),
        "refusal": (),
    }

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[CallParam] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The whole text."""
        if self.content is None:
            if self.role != "assistant":
                raise refused("messages", f"a message of {self.role} has no content")
            return ""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


def turns_of(messages: Sequence[ChatMessage]) -> list[ChatTurn]:
    """Return the turns of a conversation. Raises ``ApiError`` for calls and results that are out of place."""
    turns: list[ChatTurn] = []
    calls: dict[str, ChatCall] = {}
    for message in messages:
        if message.tool_calls and message.role != "assistant":
            raise refused("messages", f"a message of {message.role} has tool_calls")
        made = tuple(each.call for each in message.tool_calls or ())
        calls.update((call.id, call) for call in made)
        answered = None
        if message.role == "tool":
            answered = calls.get(message.tool_call_id or "")
            if answered is None:
                raise refused("messages", f"there is no call {message.tool_call_id!r} before its result")
        elif message.tool_call_id is not None:
            raise refused("messages", f"a message of {message.role} has a tool_call_id")
        turns.append(ChatTurn(_ROLES.get(message.role, message.role), message.text, made, answered))
    return turns


class ChatRequest(Sampled):
    """The body of a chat completion. 0 tokens compute the prompt, so that later requests find it in the cache."""

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
        "function_call": ("none",),
        "functions": ([],),
        "modalities": (["text"],),
        "reasoning_effort": ("none",),
        "verbosity": ("medium",),
    }

    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=0)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_LOGPROBS)
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    tools: list[ChatTool] | None = Field(default=None, max_length=MOST_TOOLS)
    tool_choice: ChatToolChoice | None = None
    parallel_tool_calls: bool | None = None

    async def job(self, model: Model, lane: ClientLane) -> tuple[GenerationJob, OutputFormat]:
        """Return what the engine has to do, and the format of its outputs. Raises ``ApiError``."""
        (prompt,) = await model.prompts_of(self, lane)
        most = None if self.limit is None else max(self.limit, 1)
        logprobs = (self.top_logprobs or 0) if self.logprobs else None
        sampling = self.sampling(model, most, len(prompt), logprobs)
        seeds = seeds_of(model.seed(self.seed), self.choices)
        output, constraint = await output_format(model, self.use, self.restriction())
        return GenerationJob(prompt, sampling, seeds, lane, constraint, "messages"), output

    @property
    def limit(self) -> int | None:
        """The most tokens of an answer."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer, as a batch plans it."""
        return UNLIMITED if self.limit is None else self.limit

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        job, output = await self.job(model, lane)
        if self.limit == 0:
            found = await model.keep([job.prompt], lane) * len(job.seeds)
        else:
            found = await model.generate(job)
        return Answered(
            {
                **head_of(model, "chatcmpl", "chat.completion"),
                "choices": _choices(model, output, found),
                "usage": usage_of(found),
            },
            found,
        )

    @property
    def use(self) -> ToolUse:
        """The tools of the conversation. Raises ``ApiError``."""
        functions = [tool.function for tool in self.tools or ()]
        return tool_use(functions, self.tool_choice, is_parallel=self.parallel_tool_calls is not False)

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
        turns, tools = turns_of(self.messages), self.use.tools
        if goes_on and (turns[-1].calls or turns[-1].answered):
            raise refused("continue_final_message", "the final message has calls, or is the result of one")
        try:
            return [model.prompts.chat(turns, goes_on=goes_on, tools=tools)]
        except Exception as error:
            raise error_of(error, "messages") from error


@router.post("/v1/chat/completions")
async def chat_completions(request: Request, body: ChatRequest) -> Response:
    """Continue a conversation."""
    model = model_of(request)
    if body.stream:
        job, output = await body.job(model, lane_of(request))
        head = head_of(model, "chatcmpl", "chat.completion.chunk")
        wants_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        prompts = [job.prompt] * len(job.seeds)
        arriving = model.computing(prompts, job.lane) if body.limit == 0 else model.stream(job)
        events = _events(request, model, job, output, head, arriving=arriving, wants_usage=wants_usage)
        return await EventStream.open(request, events, failed)
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found)
    return JSONResponse(answered.content)


def _choices(model: Model, output: OutputFormat, found: Sequence[Generation]) -> list[dict[str, Any]]:
    choices: list[dict[str, Any]] = []
    for index, each in enumerate(found):
        text, calls = output.read(each.text, "call_")
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message["content"] = text or None
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls
            ]
        choices.append(
            {
                "index": index,
                "message": message,
                "logprobs": None if each.logprobs is None else chat_logprobs(each.logprobs, model.texts),
                "finish_reason": _finish(output, each),
            }
        )
    return choices


def _finish(output: OutputFormat, found: Generation) -> str:
    return "tool_calls" if output.ends_with_calls(found) else FINISH[found.finish_reason]


async def _events(
    request: Request,
    model: Model,
    job: GenerationJob,
    output: OutputFormat,
    head: dict[str, Any],
    *,
    arriving: AsyncIterator[Event],
    wants_usage: bool,
) -> AsyncIterator[bytes]:
    """Yield the chunks of a stream: the role of each choice, its text and calls, its end, and the usage if wanted."""
    usage: dict[str, Any] = {"usage": None} if wants_usage else {}
    scored = job.sampling.logprobs is not None

    def chunk(index: int, delta: dict[str, Any], finish: str | None = None, logprobs: Any = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return data({**head, "choices": [choice], **usage})

    begun: set[int] = set()
    sent = [0] * len(job.seeds)
    readers = [output.reader() for _ in job.seeds]
    calls = [CallDeltas() for _ in job.seeds]
    found: dict[int, Generation] = {}
    async for event in arriving:
        index, content = event.choice, event.content
        if index not in begun:
            begun.add(index)
            yield chunk(index, {"role": "assistant", "content": "" if output.syntax is None else None, "refusal": None})
        if isinstance(content, TokenDelta):
            sent[index] += len(content.token_ids)
            entries, text = content.logprobs, content.text
        else:
            found[index] = content
            entries, text = (content.logprobs or ())[sent[index] :], ""
        logprobs = chat_logprobs(entries, model.texts) if scored and entries else None
        for piece in readers[index].read(text, is_last=index in found):
            delta = {"content": piece.text} if isinstance(piece, TextPiece) else calls[index].of(piece)
            yield chunk(index, delta, logprobs=logprobs)
            logprobs = None
        if logprobs is not None:
            yield chunk(index, {"content": ""}, logprobs=logprobs)
        if index in found:
            yield chunk(index, {}, _finish(output, found[index]))
    note_usage(request, list(found.values()))
    if wants_usage:
        yield data({**head, "choices": [], "usage": usage_of([found[index] for index in sorted(found)])})
    yield DONE
