"""Operations on constraints common to all engines: masks of allowed tokens, and the last check of an output.

Masks are packed as in ``TokenState.mask``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lmc.ir.engine.protocol import Generation, Request
from lmc.ir.errors import ConstraintError

Mask = NDArray[np.uint32]

_SHOWN = 40  # characters of an output's end that an error shows


def allows(mask: Mask, token_id: int) -> bool:
    """Return True if a mask allows a token."""
    word = token_id // 32
    return word < mask.size and bool(int(mask[word]) >> token_id % 32 & 1)


def allowed_ids(mask: Mask) -> list[int]:
    """The tokens that a mask allows, ascending."""
    bits = np.unpackbits(mask.astype("<u4", copy=False).view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()


def mask_without(mask: Mask, token_ids: Iterable[int]) -> Mask:
    """A mask less some tokens, or as it is where they are all that it allows."""
    rest = mask.copy()
    for token_id in token_ids:
        if token_id // 32 < rest.size:
            rest[token_id // 32] &= ~np.uint32(1 << token_id % 32)
    return rest if rest.any() else mask


def violation(request: Request, generation: Generation, output: str | bytes) -> ConstraintError | None:
    """The error of a generation whose ``output`` its constraint does not allow; None where it does.

    ``output`` is the generation's text, or bytes if the text does not determine them.
    """
    is_cut = request.may_be_cut and generation.finish_reason != "eos"
    if request.constraint is None or is_cut or request.constraint.matches(output):
        return None
    name = f"the output of {request.op_id!r}" if request.op_id else "an output"
    how, remedy = _how_it_ended(request, generation)
    end = f"… {generation.text[-_SHOWN:]!r}" if len(generation.text) > _SHOWN else repr(generation.text)
    return ConstraintError(f"{name} is not what its constraint allows: {how} after {end}", remedy=remedy)


def _how_it_ended(request: Request, generation: Generation) -> tuple[str, str]:
    """Return the cause of a generation's end, and a remedy."""
    if generation.finish_reason == "stop":
        return (
            f"the stop {generation.matched_stop!r} ended it",
            "leave that stop out, or have the constraint allow what comes before it",
        )
    if generation.finish_reason == "eos":
        return "it ended", "report this: the constraint's states allow what it refuses as a whole"
    if generation.generated_tokens >= request.sampling.max_tokens:
        return (
            f"max_tokens ({request.sampling.max_tokens}) ended it",
            "give it more max_tokens, or bound what the constraint allows",
        )
    return "the context or the KV pool was full", "shorten the prompt, or give the engine more kv_tokens"
