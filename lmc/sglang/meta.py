"""Meta data of variables in the form that sglang gives it.

A generation with ``return_logprob=True``::

    {"output_token_logprobs": [(logprob, token id, text), …],
     "output_top_logprobs": [[(logprob, token id, text), …], …],
     "completion_tokens": 3, "finish_reason": {"type": "stop"}}

A choice::

    {"normalized_prompt_logprobs": [mean per token, …], "input_token_logprobs": [[(logprob, token id, text), …], …]}

in the order of the choices. The text is None where ``return_text_in_logprobs`` is not set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TEXTS = "@texts:"
"""The prefix of names of flags: the meta data of a variable shows the texts of tokens."""

Entry = tuple[float, int, str | None]


def meta_info(meta: Any, texts: Any) -> Any:
    """Meta data of lmc's as sglang gives it, a list of it for several draws; None for none.

    ``texts`` says whether to show the texts of tokens; those of choices are always shown.
    """
    if isinstance(meta, list):
        return [_of_generation(entry, bool(texts)) for entry in meta]
    if meta is None or "choices" not in meta:
        return None if meta is None else _of_generation(meta, bool(texts))
    return _of_choice(meta)


def finish_reason(reason: str, completion_tokens: int) -> dict[str, Any]:
    """Why a generation ended."""
    return {"type": "length", "length": completion_tokens} if reason == "length" else {"type": "stop"}


def _of_generation(meta: dict[str, Any], texts: bool) -> dict[str, Any]:
    tops = [
        _entries([logprob for _, logprob in pairs], [token_id for token_id, _ in pairs], said, texts)
        for pairs, said in zip(meta["top_logprobs"], meta["top_tokens"], strict=True)
    ]
    count = len(meta["token_ids"])
    return {
        "output_token_logprobs": _entries(meta["logprobs"], meta["token_ids"], meta["tokens"], texts),
        "output_top_logprobs": tops,
        "completion_tokens": count,
        "finish_reason": finish_reason(meta["finish_reason"], count),
    }


def _of_choice(meta: dict[str, Any]) -> dict[str, Any]:
    rows = zip(meta["logprobs"], meta["token_ids"], meta["tokens"], strict=True)
    return {
        "normalized_prompt_logprobs": [sum(row) / len(row) for row in meta["logprobs"]],
        "input_token_logprobs": [_entries(logprobs, ids, said, texts=True) for logprobs, ids, said in rows],
    }


def _entries(logprobs: Sequence[float], ids: Sequence[int], said: Sequence[str], texts: bool) -> list[Entry]:
    return [
        (logprob, token_id, text if texts else None)
        for logprob, token_id, text in zip(logprobs, ids, said, strict=True)
    ]
