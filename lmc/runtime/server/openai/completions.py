"""``/v1/completions``: raw text or token ids, continued or scored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from lmc.ir.engine.protocol import Generation, TokenDelta, TokenLogprob
from lmc.runtime.server.errors import error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import Answered, ClientLane, GenerationJob, ScoredPart, seeds_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import Sampled, check_model
from lmc.runtime.server.openai.form import FINISH, failed, head_of, usage_of
from lmc.runtime.server.parameters import Ids, Texts
from lmc.runtime.server.streams import DONE, EventStream, data, while_connected
from lmc.runtime.server.tokens import TextOffsets

router = APIRouter()

_DEFAULT_MAX_TOKENS = 16  # as in OpenAI's API


class CompletionRequest(Sampled):
    """The body of a plain completion. ``max_tokens`` 0 computes a prompt, or scores it with ``echo``."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"user"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {"best_of": (1,), "suffix": ("",)}

    prompt: str | Ids | Texts | list[Ids]
    max_tokens: int | None = Field(default=None, ge=0)
    logprobs: int | None = Field(default=None, ge=0, le=5)
    echo: bool | None = None
    return_token_ids: bool | None = None

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompts as token ids. Raises ``ApiError``."""
        check_model(model, self.model)
        given: list[Any] = [*self.prompt] if isinstance(self.prompt, list) else [self.prompt]
        if given and isinstance(given[0], int):
            given = [given]
        if not given:
            raise refused("prompt", "there is none")
        model.check_count(len(given) * self.choices, "prompt")
        try:
            return [model.prompts.raw(each) if isinstance(each, str) else model.ids(each) for each in given]
        except Exception as error:
            raise error_of(error, "prompt") from error

    async def work(self, model: Model, lane: ClientLane) -> Completing:
        """Return what the engine has to do. Raises ``ApiError``."""
        if self.echo and self.logprobs:
            raise refused(
                "logprobs", "with echo it must be 0: the likeliest tokens at places of a prompt are not computed"
            )
        prompts = await model.prompts_of(self, lane)
        constraint = await self.constraint(model)
        seeds = seeds_of(model.seed(self.seed), self.choices)
        most = _DEFAULT_MAX_TOKENS if self.max_tokens is None else max(self.max_tokens, 1)
        jobs = [
            GenerationJob(
                prompt, self.sampling(model, most, len(prompt), self.logprobs), seeds, lane, constraint, "prompt"
            )
            for prompt in prompts
        ]
        return Completing(model, self, lane, prompts, jobs)

    @property
    def most_tokens(self) -> int:
        """The most tokens of an answer, as a batch plans it."""
        return _DEFAULT_MAX_TOKENS if self.max_tokens is None else self.max_tokens

    async def answer(self, model: Model, lane: ClientLane) -> Answered:
        """Return the whole answer. Raises ``ApiError``."""
        found, choices = await (await self.work(model, lane)).results()
        return Answered(
            {**head_of(model, "cmpl", "text_completion"), "choices": choices, "usage": _usage(found, self.choices)},
            found,
        )


@dataclass(frozen=True)
class Completing:
    """One request: its prompts, and what is to be shown of each."""

    model: Model
    body: CompletionRequest
    lane: ClientLane
    prompts: list[tuple[int, ...]]
    jobs: list[GenerationJob]

    async def results(self) -> tuple[list[Generation], list[dict[str, Any]]]:
        """Return generations and choices of all prompts, in their order."""
        echoed = await self.echoed()
        count = self.body.choices
        if self.body.max_tokens == 0:
            kept = await self.model.keep(self.prompts, self.lane)
            found = [each for each in kept for _ in range(count)]
        else:
            found = await self.model.generate(*self.jobs)
        choices = [
            {"index": index, **self.choice(self.prompts[index // count], echoed[index // count], each)}
            for index, each in enumerate(found)
        ]
        return found, choices

    async def echoed(self) -> list[list[TokenLogprob | None]]:
        """Return the log-probabilities of the prompts' tokens; None for the first, which nothing precedes."""
        if not self.body.echo or self.body.logprobs is None:
            return [[] for _ in self.prompts]
        parts = [ScoredPart(prompt, 1) for prompt in self.prompts]
        scores = await self.model.scores(parts, self.lane)
        return [
            [None, *map(TokenLogprob, part.rest, score.logprobs[0])] for part, score in zip(parts, scores, strict=True)
        ]

    def choice(self, prompt: tuple[int, ...], echoed: list[TokenLogprob | None], found: Generation) -> dict[str, Any]:
        """Return a choice as JSON data."""
        text = self.model.tokenizer.decode(prompt) if self.body.echo else ""
        tokens = {"token_ids": list(found.token_ids)} if self.body.return_token_ids else {}
        logprobs = None
        if self.body.logprobs is not None:
            entries = [*echoed, *(found.logprobs or ())]
            logprobs = logprobs_of(entries, prompt if self.body.echo else (), TextOffsets(self.model.texts))
        return {
            "text": text + found.text,
            "logprobs": logprobs,
            "finish_reason": FINISH[found.finish_reason],
            "stop_reason": found.matched_stop if found.finish_reason == "stop" else None,
            **tokens,
        }


def logprobs_of(
    entries: Sequence[TokenLogprob | None], prompt: tuple[int, ...], offsets: TextOffsets
) -> dict[str, Any]:
    """Return log-probabilities in the form of plain completions; ``offsets`` has seen the tokens before them."""
    texts = offsets.texts
    ids = [prompt[place] if entry is None else entry.token_id for place, entry in enumerate(entries)]
    return {
        "tokens": [texts.text(token_id) for token_id in ids],
        "token_logprobs": [None if entry is None else entry.logprob for entry in entries],
        "top_logprobs": [
            {texts.text(token_id): logprob for token_id, logprob in entry.top}
            if entry is not None and entry.top
            else None
            for entry in entries
        ],
        "text_offset": [offsets.next(token_id) for token_id in ids],
    }


@router.post("/v1/completions")
async def completions(request: Request, body: CompletionRequest) -> Response:
    """Continue or score raw text."""
    model = model_of(request)
    if body.stream:
        work = await body.work(model, lane_of(request))
        return await EventStream.open(
            request, _events(request, work, head_of(model, "cmpl", "text_completion")), failed
        )
    answered = await while_connected(request, body.answer(model, lane_of(request)))
    note_usage(request, answered.found, body.choices)
    return JSONResponse(answered.content)


def _usage(found: Sequence[Generation], choices: int) -> dict[str, Any]:
    """Return the usage of all prompts together."""
    each = [usage_of(found[start : start + choices]) for start in range(0, len(found), choices)]
    total = {name: sum(part[name] for part in each) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    cached = sum(part["prompt_tokens_details"]["cached_tokens"] for part in each)
    return {**total, "prompt_tokens_details": {"cached_tokens": cached}}


async def _events(request: Request, work: Completing, head: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield the chunks of a stream, one prompt's after the other's in arrival order of their tokens."""
    body, model = work.body, work.model
    wants_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
    usage: dict[str, Any] = {"usage": None} if wants_usage else {}
    count = body.choices

    def chunk(
        index: int,
        text: str,
        finish: str | None = None,
        logprobs: Any = None,
        *,
        ids: Sequence[int] = (),
        stop: str | int | None = None,
    ) -> bytes:
        choice: dict[str, Any] = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
        choice["stop_reason"] = stop
        if body.return_token_ids:
            choice["token_ids"] = list(ids)
        return data({**head, "choices": [choice], **usage})

    echoed = await work.echoed()
    found: dict[int, Generation] = {}
    sent = [0] * (count * len(work.jobs))
    offsets = [TextOffsets(model.texts) for _ in sent]
    begun: set[int] = set()
    computed = [prompt for prompt in work.prompts for _ in range(count)] if body.max_tokens == 0 else None
    async for event in model.stream(*work.jobs) if computed is None else model.computing(computed, work.lane):
        index, content = event.choice, event.content
        if body.echo and index not in begun:
            begun.add(index)
            prompt = work.prompts[index // count]
            text = model.tokenizer.decode(prompt)
            scored = echoed[index // count]
            logprobs = logprobs_of(scored, prompt, offsets[index]) if scored else None
            yield chunk(index, text, logprobs=logprobs)
        if isinstance(content, TokenDelta):
            sent[index] += len(content.token_ids)
            logprobs = None
            if body.logprobs is not None:
                logprobs = logprobs_of(content.logprobs, (), offsets[index])
            yield chunk(index, content.text, logprobs=logprobs, ids=content.token_ids)
            continue
        found[index] = content
        rest = (content.logprobs or ())[sent[index] :]
        if rest:
            yield chunk(index, "", logprobs=logprobs_of(rest, (), offsets[index]))
        stop = content.matched_stop if content.finish_reason == "stop" else None
        yield chunk(index, "", FINISH[content.finish_reason], ids=content.token_ids[sent[index] :], stop=stop)
    ordered = [found[index] for index in sorted(found)]
    note_usage(request, ordered, count)
    if wants_usage:
        yield data({**head, "choices": [], "usage": _usage(ordered, count)})
    yield DONE
