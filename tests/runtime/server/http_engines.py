"""An engine whose requests travel to ``lmc serve``, each compared with the answer of an engine in this process."""

import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from unittest import mock

import httpx2

from lmc.grammar.compiling import Source
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.protocol import (
    Engine,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Request,
    SamplingParams,
    Score,
    ScoreRequest,
    TokenLogprob,
)
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.server.prompts import ChatTurn, Prompts
from lmc.runtime.server.tokens import TokenTexts
from tests.runtime.server.servers import SECONDS, Served

T = TypeVar("T")
SOURCES: dict[int, Source] = {}
"""Sources of the constraints that were compiled, by their ids; the cache keeps constraints alive."""
KEPT: list[Any] = []


@contextmanager
def recorded_sources() -> Any:
    """Record which source each constraint has: it travels as text."""
    originals = {name: getattr(ConstraintCache, name) for name in ("compiled", "built")}

    def recorded(name: str) -> Any:
        def call(self: ConstraintCache, source: Source, tokenizer: Any) -> Any:
            made = originals[name](self, source, tokenizer)
            constraint = getattr(made, "constraint", made)
            KEPT.append(constraint)
            SOURCES[id(constraint)] = source
            return made

        return call

    with mock.patch.multiple(ConstraintCache, **{name: recorded(name) for name in originals}):
        yield


@dataclass(frozen=True)
class Sent(Generic[T]):
    """A request that is under way."""

    future: "Future[T]"

    def cancel(self) -> None:
        self.future.cancel()


@dataclass
class HttpEngine:
    """Sends every request to the endpoints of a server. Requests fail where the answer is not that of ``local``."""

    server: Served
    local: Engine
    counts: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.texts = TokenTexts.of(self.tokenizer)
        self._threads = ThreadPoolExecutor(16)
        self._client = httpx2.Client(base_url=self.server.url, timeout=SECONDS)
        self._lock = threading.Lock()

    @property
    def tokenizer(self) -> Tokenizer:
        return self.local.tokenizer

    @property
    def info(self) -> EngineInfo:
        return self.local.info

    @property
    def statistics(self) -> EngineStatistics:
        return EngineStatistics()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        assert on_delta is None
        return Sent(self._threads.submit(self._generate, request))

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return Sent(self._threads.submit(self._score, request))

    def close(self) -> None:
        self._threads.shutdown()
        self._client.close()

    def _generate(self, request: Request) -> Generation:
        scored = replace(
            request, place=None, sampling=replace(request.sampling, logprobs=request.sampling.logprobs or 0)
        )
        expected = self.local.submit(scored).future.result()
        found = self._continued(scored)
        check_same(facts(found), facts(expected))
        self._check_completion(scored, expected)
        self._check_chat(scored, expected)
        return found if request.sampling.logprobs is not None else replace(found, logprobs=None)

    def _continued(self, request: Request) -> Generation:
        """Return the answer of ``/generate``."""
        sampling = request.sampling
        answer = self._post(
            "/generate",
            {
                "input_ids": list(request.prompt),
                "sampling_params": {
                    **common(request),
                    "max_new_tokens": sampling.max_tokens,
                    "min_new_tokens": sampling.min_tokens,
                    "sampling_seed": signed(request.seed),
                    "n": 1,
                    "stop_regex": [],
                    "ignore_eos": False,
                },
                "return_logprob": True,
                "top_logprobs_num": sampling.logprobs,
            },
        )
        meta = answer["meta_info"]
        ids = tuple(answer["output_ids"])
        text = answer["text"]
        reason = meta["finish_reason"]
        tops = meta.get("output_top_logprobs") or [[] for _ in ids]
        entries = tuple(
            TokenLogprob(token_id, logprob, tuple((other, value) for value, other, _ in top))
            for (logprob, token_id, _), top in zip(meta["output_token_logprobs"], tops, strict=True)
        )
        matched = reason.get("matched")
        kept = self.tokenizer.decode(ids)
        return Generation(
            ids,
            text,
            "length" if reason["type"] == "length" else "eos" if matched in (None, *self.tokenizer.eos_ids) else "stop",
            remainder=text.removeprefix(kept) if isinstance(matched, str) else "",
            matched_stop=matched,
            logprobs=entries,
            prompt_tokens=meta["prompt_tokens"],
            generated_tokens=meta["completion_tokens"],
        )

    def _check_completion(self, request: Request, expected: Generation) -> None:
        """Check that ``/v1/completions`` gives the same tokens and log-probabilities."""
        sampling = request.sampling
        if (sampling.logprobs or 0) > 5:
            return
        answer = self._post(
            "/v1/completions",
            {
                "model": self.server.model,
                "prompt": list(request.prompt),
                **common(request),
                "max_tokens": sampling.max_tokens,
                "min_tokens": sampling.min_tokens,
                "seed": signed(request.seed),
                "logprobs": 0,
            },
        )
        (choice,) = answer["choices"]
        logprobs = choice["logprobs"]
        check_same(choice["text"], expected.text)
        check_same(choice["finish_reason"], "length" if expected.finish_reason == "length" else "stop")
        check_same(logprobs["tokens"], [self.texts.text(token_id) for token_id in expected.token_ids])
        check_same(logprobs["token_logprobs"], [entry.logprob for entry in expected.logprobs or ()])

    def _check_chat(self, request: Request, expected: Generation) -> None:
        """Check that chat gives the same, where messages make these tokens."""
        turns = turns_of(self.tokenizer, request.prompt)
        if turns is None:
            return
        messages, goes_on = turns
        rendered = Prompts(self.tokenizer, self.info.context_length, TokenTexts.of(self.tokenizer)).chat(
            messages, goes_on=goes_on
        )
        if rendered != request.prompt:  # a generation of an earlier turn is encoded as its text here
            return
        sampling = request.sampling
        answer = self._post(
            "/v1/chat/completions",
            {
                "model": self.server.model,
                "messages": [{"role": each.role, "content": each.text} for each in messages],
                "continue_final_message": goes_on,
                "add_generation_prompt": not goes_on,
                **common(request),
                "max_tokens": sampling.max_tokens,
                "min_tokens": sampling.min_tokens,
                "seed": signed(request.seed),
                "logprobs": True,
            },
        )
        (choice,) = answer["choices"]
        entries = choice["logprobs"]["content"]
        check_same(choice["message"]["content"], expected.text)
        check_same([entry["token"] for entry in entries], [self.texts.text(each) for each in expected.token_ids])
        check_same([entry["logprob"] for entry in entries], [entry.logprob for entry in expected.logprobs or ()])

    def _score(self, request: ScoreRequest) -> Score:
        expected = self.local.score(replace(request, place=None)).future.result()
        answers = self._post(
            "/generate",
            {
                "input_ids": [[*request.prompt, *each] for each in request.continuations],
                "sampling_params": {"max_new_tokens": 0},
                "return_logprob": True,
                "logprob_start_len": len(request.prompt) - 1,
            },
        )
        entries = [answer["meta_info"]["input_token_logprobs"] for answer in answers]
        found = Score(tuple(tuple(logprob for logprob, _, _ in each) for each in entries))
        check_same([tuple(token_id for _, token_id, _ in each) for each in entries], list(request.continuations))
        check_same(found.logprobs, expected.logprobs)
        return replace(found, prompt_tokens=len(request.prompt))

    def _post(self, path: str, body: Any) -> Any:
        answer = self._client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        with self._lock:
            self.counts[path] += 1
        return answer.json()


def check_same(found: Any, expected: Any) -> None:
    """Raise ``AssertionError`` that shows both."""
    if found != expected:
        raise AssertionError(f"over HTTP it is\n{found!r}, in process\n{expected!r}")


def facts(found: Generation) -> Any:
    """The figures of a result that do not depend on the cache."""
    return replace(found, cached_tokens=0, timing=None)


def signed(seed: int) -> int:
    """The same 64 bits as a signed number."""
    return seed - (1 << 64) if seed >> 63 else seed


def common(request: Request) -> dict[str, Any]:
    """Parameters that all protocols name alike."""
    sampling: SamplingParams = request.sampling
    return {
        "stop": list(sampling.stop),
        "stop_token_ids": list(sampling.stop_token_ids),
        "temperature": sampling.temperature or 0.0,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "min_p": sampling.min_p,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "logit_bias": {str(token_id): value for token_id, value in sampling.logit_bias},
        **constraint_of(request),
    }


def constraint_of(request: Request) -> dict[str, Any]:
    """The constraint of a request as parameters."""
    if request.constraint is None:
        return {}
    source = SOURCES[id(request.constraint)]
    match source.kind:
        case "regex":
            return {"regex": source.text}
        case "choices":
            choices: Sequence[str] = source.data
            return {"regex": "|".join(map(re.escape, choices))}
        case "grammar":
            return {"ebnf": source.text}
        case _:
            return {"json_schema": json.loads(source.text), "whitespace": source.whitespace}


def turns_of(tokenizer: Tokenizer, prompt: tuple[int, ...]) -> tuple[list[ChatTurn], bool] | None:
    """Return the messages of a prompt in ChatML, and whether the last one goes on; None for a prompt without roles."""
    marks = {token.id: token.text for token in tokenizer.special_tokens}
    turns: list[ChatTurn] = []
    part: list[int] = []
    is_open = False
    for token_id in prompt:
        mark = marks.get(token_id)
        if mark is None:
            part.append(token_id)
        elif mark == "<|im_start|>":
            part, is_open = [], True
        elif mark == "<|im_end|>" and is_open:
            role, _, text = tokenizer.decode(part).partition("\n")
            turns.append(ChatTurn(role, text))
            part, is_open = [], False
        else:
            return None
    if not is_open or not turns:
        return None
    role, _, text = tokenizer.decode(part).partition("\n")
    if role != "assistant" or any(turn.role not in ("system", "user", "assistant") for turn in turns):
        return None
    return ([*turns, ChatTurn(role, text)], True) if text else (turns, False)
