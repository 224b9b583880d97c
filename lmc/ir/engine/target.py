"""Targets: the user's choice of an engine, and the assumptions of passes and lowering about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lmc.ir.errors import InputError

KINDS = ("builtin", "hf", "local", "toy")
WITH_PATH = ("hf", "local")
"""Kinds whose name is followed by a model: ``local:PATH``, ``hf:ORG/NAME[@REVISION]``."""
WITH_WEIGHTS = ("builtin", "hf", "local")
"""Kinds that have a model folder."""
TARGETS = "builtin, toy, local:PATH (a model folder) or hf:ORG/NAME[@REVISION]"
GIVEN = "engine"
"""The kind of a target that stands for an engine which the caller has made: ``engine:NAME``."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target as the user named it. Parse one with ``Target.parse``.

    ``kind`` is one of ``KINDS``; ``path`` the model folder of a local target, or the name of a model on the Hugging
    Face Hub (``hf``). ``kv_tokens`` is the size of the KV pool in tokens (None: from free memory), ``deterministic``
    whether a request gets the same text whatever else is running, ``device`` where it computes ("auto": on CUDA where
    there is one), ``prefill_tokens`` how many tokens of prompts a step computes beside what is being generated (None:
    as many as the engine finds good).
    """

    kind: str
    path: str | None = None
    dtype: str = "float32"
    kv_tokens: int | None = None
    deterministic: bool = False
    device: str = "auto"
    prefill_tokens: int | None = None

    @classmethod
    def parse(cls, spec: str, **settings: Any) -> Target:
        """The target of a text: ``builtin``, ``toy``, ``local:PATH``, ``hf:ORG/NAME[@REVISION]`` or ``engine:NAME``.

        ``settings`` are other fields by name, checked by the caller. Raises ``InputError`` for any other text, and for
        settings of a given engine (``engine:NAME``).
        """
        kind, colon, path = spec.partition(":")
        is_given = kind == GIVEN and bool(path)
        if not is_given and (kind not in KINDS or (kind in WITH_PATH) != bool(path) or bool(colon) != bool(path)):
            raise InputError(f"unknown target {spec!r}", remedy=f"use {TARGETS}")
        bare = cls(kind, path or None)
        target = replace(bare, **settings)
        if is_given and target != bare:
            raise InputError(
                "the engine is set up already",
                remedy="leave out dtype, kv_tokens, deterministic, device and prefill_tokens",
            )
        return target

    @classmethod
    def spec_of(cls, model: str) -> str:
        """Return the text for ``parse`` of what ``--model`` takes: a path stands for ``local:PATH``."""
        kind, colon, _ = model.partition(":")
        return model if kind in KINDS and (kind in WITH_PATH) == bool(colon) else f"local:{model}"

    @property
    def spec(self) -> str:
        """The text that ``parse`` reads."""
        return self.kind if self.path is None else f"{self.kind}:{self.path}"

    @property
    def supports_constraints(self) -> bool:
        """True if the target's engine enforces regexes, choices, schemas and grammars."""
        return self.kind in KINDS or self.kind == GIVEN
