"""Grades a network on one document: which answers it writes, which it selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from training.document import Document, Kind
from training.packing import encode_segments, value_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Span:
    """One answer in token positions `[start, stop)`, end mark included; `choices` are token lists, right one first."""

    start: int
    stop: int
    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Grade:
    """Whether greedy decoding writes the answer, and whether `select` picks it (None without choices)."""

    written: bool
    selected: bool | None


def spans(tokenizer: Tokenizer, document: Document) -> tuple[list[int], list[Span]]:
    """Return the document's tokens and its graded answers; an object gives one per value, its key included."""
    ids: list[int] = []
    found: list[Span] = []
    extends = False
    for segment, own in zip(document.segments, encode_segments(tokenizer, document), strict=True):
        learned = segment.kind in (Kind.ANSWER, Kind.ANSWER_END)
        if learned and extends:
            found[-1] = Span(found[-1].start, found[-1].stop + len(own), found[-1].choices)
        elif segment.values:
            stops = [len(ids) + stop for _, stop in value_tokens(tokenizer, segment)]
            stops[-1] = len(ids) + len(own)
            starts = [len(ids), *stops[:-1]]
            found += [Span(start, stop, ()) for start, stop in zip(starts, stops, strict=True)]
        elif learned and segment.graded:
            others = (choice for choice in segment.choices if choice != segment.text)
            encoded = tuple(tuple(tokenizer.encode(choice, add_special_tokens=False).ids) for choice in others)
            choices = (tuple(own), *encoded) if segment.choices else ()
            found.append(Span(len(ids), len(ids) + len(own), choices))
        extends = learned and bool(found)
        ids += own
    return ids, found


def grade(model: Any, tokenizer: Tokenizer, document: Document, context: int) -> list[Grade]:
    """Grade the answers that lie in the second half of the first `context` tokens.

    `model` is a transformers causal language model. Choices of several tokens are scored by
    their mean log-likelihood, for the last such answer of the document only (it costs a pass of its own).
    """
    ids, found = spans(tokenizer, document)
    ids = ids[:context]
    found = [span for span in found if span.stop <= len(ids) and span.start >= context // 2]
    if not found:
        return []
    with torch.inference_mode():
        logits = model(torch.tensor([ids]), use_cache=False).logits[0].float()
    best = logits.argmax(-1).tolist()
    grades: list[Grade] = []
    long_choices = [span for span in found if any(len(choice) > 1 for choice in span.choices)]
    for span in found:
        written = all(best[position - 1] == ids[position] for position in range(span.start, span.stop))
        selected: bool | None = None
        if span.choices and span not in long_choices:
            scores = [logits[span.start - 1, choice[0]].item() for choice in span.choices]
            selected = max(scores) == scores[0]
        elif long_choices and span is long_choices[-1]:
            scores = [_mean_likelihood(model, ids[: span.start], choice) for choice in span.choices]
            selected = max(scores) == scores[0]
        grades.append(Grade(written, selected))
    return grades


def _mean_likelihood(model: Any, prefix: list[int], choice: tuple[int, ...]) -> float:
    with torch.inference_mode():
        logits = model(torch.tensor([[*prefix, *choice]]), use_cache=False).logits[0, len(prefix) - 1 : -1].float()
    scores = logits.log_softmax(-1).gather(-1, torch.tensor(choice)[:, None])
    return scores.mean().item()
