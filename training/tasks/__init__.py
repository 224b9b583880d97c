"""Task families of the built-in model, one module each, listed in `FAMILIES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.tasks import (
    arithmetic,
    conversation,
    extraction,
    fields,
    joining,
    judgement,
    lookup,
    multiple_choice,
    recall,
    structured,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from training.document import Document, Split

FAMILIES: dict[str, Callable[[Random, Split, int], Document]] = {
    "arithmetic": arithmetic.generate,
    "conversation": conversation.generate,
    "extraction": extraction.generate,
    "fields": fields.generate,
    "joining": joining.generate,
    "judgement": judgement.generate,
    "lookup": lookup.generate,
    "multiple_choice": multiple_choice.generate,
    "recall": recall.generate,
    "structured": structured.generate,
}
