"""``/generate``: raw text or token ids, continued or scored."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from lmc.grammar.compiling import Whitespace
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Generation, TokenDelta, TokenLogprob
from lmc.runtime.server.errors import error_of, refused
from lmc.runtime.server.gate import lane_of, model_of, note_usage
from lmc.runtime.server.jobs import MOST_PRIORITY, ClientLane, GenerationJob, ScoredPart, seeds_of
from lmc.runtime.server.model import Model, computed
from lmc.runtime.server.parameters import MOST_CHOICES, MOST_LOGPROBS, Ids, Parameters, Texts, sampling_of
from lmc.runtime.server.sglang.form import failed
from lmc.runtime.server.streams import DONE, EventStream, data, while_connected

router = APIRouter()

_DEFAULT_MAX_NEW_TOKENS = 128  # as in SGLang


class SamplingFields(Parameters):
    """``sampling_params``. Its clients send all of them, most with the value that has no effect."""

    IGNORED: ClassVar[frozenset[str]] = frozenset({"spaces_between_special_tokens", "stop_regex_max_len"})
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "ignore_eos": (False,),
        "no_stop_trim": (False,),
        "skip_special_tokens": (True, False),  # special tokens end a generation, so none is in its text
        "stop_regex": ([], ""),
        "structural_tag": ("",),
        "custom_params": ({},),
        "beam_width": (0, 1),
    }

    max_new_tokens: int | None = Field(default=None, ge=0)
    min_new_tokens: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    n: int | None = Field(default=None, ge=1, le=MOST_CHOICES)
    sampling_seed: int | None = None
    seed: int | None = None
    regex: str | None = None
    ebnf: str | None = None
    json_schema: str | dict[str, Any] | None = None
    whitespace: Whitespace | None = None

    async def constraint(self, model: Model) -> TokenConstraint | None:
        """Compile what restricts the output."""
        given = [
            ("regex", "regex", self.regex),
            ("ebnf", "grammar", self.ebnf),
            ("json_schema", "schema", self.json_schema),
        ]
        found = [each for each in given if each[2] not in (None, "")]
        if len(found) > 1:
            raise refused(f"sampling_params.{found[1][0]}", f"the output is restricted by {found[0][0]} already")
        if not found:
            if self.whitespace is not None:
                raise refused("sampling_params.whitespace", "it is that of a json_schema")
            return None
        name, kind, definition = found[0]
        return await model.constraint(f"sampling_params.{name}", kind, definition, self.whitespace)


class GenerateRequest(Parameters):
    """The body of a request: one prompt or a list of them."""

    IGNORED: ClassVar[frozenset[str]] = frozenset(
        {"background", "bootstrap_host", "bootstrap_port", "bootstrap_room", "log_metrics", "routing_key"}
    )
    NEUTRAL: ClassVar[dict[str, tuple[Any, ...]]] = {
        "return_hidden_states": (False,),
        "modalities": ([],),
    }

    text: str | Texts | None = None
    input_ids: Ids | list[Ids] | None = None
    sampling_params: SamplingFields | list[SamplingFields] | None = None
    rid: str | list[str] | None = None
    return_logprob: bool | list[bool] | None = None
    logprob_start_len: int | list[int] | None = None
    top_logprobs_num: int | list[int] | None = None
    return_text_in_logprobs: bool | None = None
    stream: bool | None = None
    priority: int | None = Field(default=None, ge=-MOST_PRIORITY, le=MOST_PRIORITY)

    @property
    def is_batch(self) -> bool:
        """True if the answer is a list."""
        return isinstance(self.text, list) or bool(self.input_ids and isinstance(self.input_ids[0], list))

    @property
    def prompt_name(self) -> str:
        """The parameter with the prompts."""
        return "input_ids" if self.text is None else "text"

    def prompts(self, model: Model) -> list[tuple[int, ...]]:
        """Return the prompts as token ids. Raises ``ApiError``."""
        if (self.text is None) == (self.input_ids is None):
            raise refused("text", "give either text or input_ids")
        name = self.prompt_name
        given: Any = self.input_ids if self.text is None else self.text
        prompts: Sequence[Any] = given if self.is_batch else [given]
        if not prompts:
            raise refused(name, "there is none")
        model.check_count(len(prompts), name)
        try:
            return [model.prompts.raw(each) if isinstance(each, str) else model.ids(each) for each in prompts]
        except Exception as error:
            raise error_of(error, name) from error


@dataclass(frozen=True)
class Piece:
    """One prompt of a request, with what is asked for it. Tokens of the prompt behind ``start`` are scored."""

    id: str
    prompt: tuple[int, ...]
    parameters: SamplingFields
    job: GenerationJob | None
    lane: ClientLane
    start: int | None
    top: int
    with_text: bool
    began: float
    is_boundary: bool = False
    """The first scored token is not the same in all prompts of the list."""

    def answer(self, model: Model, found: Generation, scores: Sequence[tuple[int, float | None]]) -> dict[str, Any]:
        """Return an answer as JSON data."""
        reason: dict[str, Any] = {"type": "length", "length": found.generated_tokens}
        if found.finish_reason != "length":
            reason = {"type": "stop", "matched": found.matched_stop}
        return {
            "text": found.text,
            "output_ids": list(found.token_ids),
            "meta_info": self.meta(model, reason, found, scores, found.logprobs or ()),
        }

    def meta(
        self,
        model: Model,
        reason: dict[str, Any] | None,
        found: Generation,
        scores: Sequence[tuple[int, float | None]],
        logprobs: Sequence[TokenLogprob],
    ) -> dict[str, Any]:
        """Return the facts of an answer."""
        meta: dict[str, Any] = {
            "id": self.id,
            "finish_reason": reason,
            "prompt_tokens": found.prompt_tokens,
            "completion_tokens": found.generated_tokens,
            "cached_tokens": found.cached_tokens,
            "e2e_latency": time.perf_counter() - self.began,
        }
        if self.start is None:
            return meta

        def entry(token_id: int, logprob: float | None) -> list[Any]:
            return [logprob, token_id, model.tokenizer.text_of(token_id) if self.with_text else None]

        meta["input_token_logprobs"] = entries = [entry(*each) for each in scores]
        if self.with_text and entries and self.start:
            entries[0][2] = self._first_text(entries[0][2])
        meta["output_token_logprobs"] = [entry(each.token_id, each.logprob) for each in logprobs]
        if self.top:
            meta["output_top_logprobs"] = [
                [entry(token_id, logprob) for token_id, logprob in each.top] for each in logprobs
            ]
        return meta

    def _first_text(self, text: str) -> str:
        """Return the text of the first scored token of a prompt, by which SGLang's frontend knows the end of its text.

        It leaves a token out of the mean of a choice if its text ends with that of the token. Of a token that begins
        within a character that is the rest. One that some choices replace is not left out for the others, whose means
        would be over other places: so its text begins with U+0000.
        """
        return f"\0{text}" if self.is_boundary else text.rpartition("\ufffd")[2]


async def _results(model: Model, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Return the answers of all prompts, one for each sample."""
    scores = await _scores(model, pieces)
    jobs = [piece.job for piece in pieces if piece.job is not None]
    generations = iter(await model.generate(*jobs) if jobs else ())
    others = iter(await _computed(model, [piece for piece in pieces if piece.job is None]))
    answers: list[dict[str, Any]] = []
    for piece, scored in zip(pieces, scores, strict=True):
        found = [next(others)] if piece.job is None else [next(generations) for _ in piece.job.seeds]
        answers += [piece.answer(model, each, scored) for each in found]
    return answers


async def _computed(model: Model, pieces: Sequence[Piece]) -> list[Generation]:
    """Return the outputs of prompts that are only computed; those that are scored are computed already."""
    prompts = [piece.prompt for piece in pieces if piece.start is None]
    kept = iter(await model.keep(prompts, pieces[0].lane) if prompts else ())
    return [next(kept) if piece.start is None else computed(piece.prompt) for piece in pieces]


async def _scores(model: Model, pieces: Sequence[Piece]) -> list[list[tuple[int, float | None]]]:
    """Return the scored tokens of prompts with their log-probabilities; None for a first token.

    They are those behind the place ``start``, and the first token of the prompt where that is 0. SGLang's frontend
    takes the first of them for the last token of the text before a choice, and leaves it out of the choice's mean.
    """
    parts = [None if piece.start is None else ScoredPart(piece.prompt, piece.start + 1) for piece in pieces]
    asked = [part for part in parts if part is not None and part.rest]
    found = iter(await model.scores(asked, pieces[0].lane) if asked else ())
    scores: list[list[tuple[int, float | None]]] = []
    for piece, part in zip(pieces, parts, strict=True):
        scored: list[tuple[int, float | None]] = [(piece.prompt[0], None)] if piece.start == 0 else []
        if part is not None and part.rest:
            scored += zip(part.rest, next(found).logprobs[0], strict=True)
        scores.append(scored)
    return scores


async def _pieces(model: Model, request: Request, body: GenerateRequest) -> list[Piece]:
    """Return the prompts of a request. Raises ``ApiError``."""
    lane = lane_of(request)
    if body.priority is not None:
        lane = replace(lane, priority=body.priority)
    prompts = await model.prompts_of(body, lane)
    began = time.perf_counter()

    def of(name: str, value: Any, index: int) -> Any:
        if not isinstance(value, list):
            return value
        if len(value) != len(prompts):
            raise refused(name, f"there are {len(value)} for {len(prompts)} prompts")
        return value[index]

    pieces: list[Piece] = []
    for index, prompt in enumerate(prompts):
        parameters: SamplingFields = of("sampling_params", body.sampling_params, index) or SamplingFields()
        scored = bool(of("return_logprob", body.return_logprob, index))
        start = of("logprob_start_len", body.logprob_start_len, index)
        top = of("top_logprobs_num", body.top_logprobs_num, index) or 0
        if not 0 <= top <= MOST_LOGPROBS:
            raise refused("top_logprobs_num", f"it must be from 0 to {MOST_LOGPROBS}")
        for name, value in (("top_logprobs_num", top), ("logprob_start_len", start not in (None, -1))):
            if value and not scored:
                raise refused(name, "it needs return_logprob")
        start = len(prompt) if start is None or start == -1 else start
        if parameters.max_new_tokens == 0 and body.logprob_start_len is None:
            start = 0  # nothing else is asked for
        if not 0 <= start <= len(prompt):
            raise refused("logprob_start_len", f"it is {start}, and the prompt has {len(prompt)} tokens")
        if scored and top and start < len(prompt):
            raise refused("top_logprobs_num", "the likeliest tokens at places of a prompt are not computed")
        job = None
        if parameters.max_new_tokens != 0:
            job = await _job(model, prompt, parameters, lane, top if scored else None, name=body.prompt_name)
        name = of("rid", body.rid, index) or uuid.uuid4().hex
        with_text = bool(body.return_text_in_logprobs)
        pieces.append(Piece(name, prompt, parameters, job, lane, start if scored else None, top, with_text, began))
    return [replace(piece, is_boundary=True) for piece in pieces] if _replace_a_token(pieces) else pieces


def _replace_a_token(pieces: Sequence[Piece]) -> bool:
    """Return True for prompts to be scored that are the same before their first scored token, and not at it."""
    ends = [0 if piece.start is None or piece.job is not None else piece.start for piece in pieces]
    if len(set(ends)) > 1 or not ends[0]:
        return False
    befores, withs = ({piece.prompt[: ends[0] + count] for piece in pieces} for count in (1, 2))
    return len(befores) == 1 and len(withs) > 1


async def _job(
    model: Model, prompt: tuple[int, ...], given: SamplingFields, lane: ClientLane, logprobs: int | None, *, name: str
) -> GenerationJob:
    sampling = sampling_of(
        max_tokens=_DEFAULT_MAX_NEW_TOKENS if given.max_new_tokens is None else given.max_new_tokens,
        temperature=given.temperature,
        top_p=given.top_p,
        stop=[text for text in ([given.stop] if isinstance(given.stop, str) else given.stop or []) if text],
        top_k=given.top_k,
        min_p=given.min_p,
        min_tokens=given.min_new_tokens,
        frequency_penalty=given.frequency_penalty,
        presence_penalty=given.presence_penalty,
        repetition_penalty=given.repetition_penalty,
        stop_token_ids=given.stop_token_ids,
        logit_bias=given.logit_bias,
        logprobs=logprobs,
        vocabulary_size=model.tokenizer.vocabulary_size,
        prefix="sampling_params.",
        names={"min_tokens": "min_new_tokens"},
    )
    seed = given.seed if given.sampling_seed is None else given.sampling_seed
    seeds = seeds_of(model.seed(seed), given.n or 1)
    return GenerationJob(prompt, sampling, seeds, lane, await given.constraint(model), name)


@router.post("/generate")
async def generate(request: Request, body: GenerateRequest) -> Response:
    """Continue or score raw text."""
    model = model_of(request)
    pieces = await _pieces(model, request, body)
    if body.stream:
        is_list = body.is_batch or any(piece.job is not None and len(piece.job.seeds) > 1 for piece in pieces)
        return await EventStream.open(request, _events(request, model, pieces, is_list=is_list), failed)
    answers = await while_connected(request, _results(model, pieces))
    for each in answers:
        note_usage(request, [_counts(each)])
    is_list = body.is_batch or len(answers) > 1
    return JSONResponse(answers if is_list else answers[0])


def _counts(answer: dict[str, Any]) -> Generation:
    meta = answer["meta_info"]
    return Generation(
        (),
        answer["text"],
        "stop",
        prompt_tokens=meta["prompt_tokens"],
        cached_tokens=meta["cached_tokens"],
        generated_tokens=meta["completion_tokens"],
    )


@dataclass
class _Output:
    """One output of a stream: all of it so far."""

    piece: Piece
    scores: Sequence[tuple[int, float | None]]
    text: str = ""
    tokens: list[int] = field(default_factory=list[int])
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])

    def more(self, model: Model, delta: TokenDelta) -> dict[str, Any]:
        """Return the answer with some more of it."""
        self.text += delta.text
        self.tokens += delta.token_ids
        self.logprobs += delta.logprobs
        so_far = Generation(
            tuple(self.tokens),
            self.text,
            "length",
            prompt_tokens=len(self.piece.prompt),
            generated_tokens=len(self.tokens),
        )
        meta = self.piece.meta(model, None, so_far, self.scores, self.logprobs)
        return {"text": self.text, "output_ids": self.tokens, "meta_info": meta}


async def _events(request: Request, model: Model, pieces: Sequence[Piece], *, is_list: bool) -> AsyncIterator[bytes]:
    """Yield the events of a stream: each has a whole output so far, and its place among several."""
    scores = await _scores(model, pieces)
    outputs = [
        _Output(piece, scored)
        for piece, scored in zip(pieces, scores, strict=True)
        for _ in (piece.job.seeds if piece.job else (0,))
    ]

    def event(place: int, answer: dict[str, Any]) -> bytes:
        return data({**answer, "index": place} if is_list else answer)

    def ended(place: int, found: Generation) -> bytes:
        note_usage(request, [found])
        return event(place, outputs[place].piece.answer(model, found, outputs[place].scores))

    generated = [place for place, output in enumerate(outputs) if output.piece.job is not None]
    others = [place for place, output in enumerate(outputs) if output.piece.job is None]
    for place, found in zip(others, await _computed(model, [outputs[each].piece for each in others]), strict=True):
        yield ended(place, found)
    jobs = [piece.job for piece in pieces if piece.job is not None]
    if jobs:
        async for each in model.stream(*jobs):
            place = generated[each.choice]
            if isinstance(each.content, TokenDelta):
                yield event(place, outputs[place].more(model, each.content))
            else:
                yield ended(place, each.content)
    yield DONE
