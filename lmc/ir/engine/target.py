"""Targets: the user's choice of an engine, and the assumptions of passes and lowering about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lmc.ir.errors import InputError

KINDS = ("builtin", "hf", "local", "toy")
WITH_PATH = ("hf", "local")
"""Kinds whose name is followed by a model: ``local:PATH``, ``hf:ORG/NAME[@REVISION]``."""
TARGETS = "builtin, toy, local:PATH (a model folder) or hf:ORG/NAME[@REVISION]"
GIVEN = "engine"
"""The kind of a target that stands for an engine which the caller has made: ``engine:NAME``."""
DTYPES = ("float32", "bfloat16")
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")
KvTokens = int | Literal["auto"]
"""Size of a KV pool in tokens; "auto": from free memory."""


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
    def parse(
        cls,
        spec: str,
        *,
        dtype: str = "float32",
        kv_tokens: KvTokens | None = None,
        deterministic: bool = False,
        device: str = "auto",
        prefill_tokens: int | None = None,
    ) -> Target:
        """``builtin``, ``toy``, ``local:PATH``, ``hf:ORG/NAME[@REVISION]`` or ``engine:NAME`` (a given one).

        Raises ``InputError`` for others.
        """
        kv_tokens = None if kv_tokens == "auto" else kv_tokens
        kind, colon, path = spec.partition(":")
        if kind == GIVEN and path:
            return _given(path, dtype, kv_tokens, deterministic, device, prefill_tokens)
        if kind not in KINDS or (kind in WITH_PATH) != bool(path) or bool(colon) != bool(path):
            raise InputError(f"unknown target {spec!r}", remedy=f"use {TARGETS}")
        if dtype not in DTYPES:
            raise InputError(f"unknown dtype {dtype!r}", remedy=f"use one of {', '.join(DTYPES)}")
        if kv_tokens is not None and (type(kv_tokens) is not int or kv_tokens < 1):
            raise InputError(f"kv_tokens is {kv_tokens!r}", remedy='give a number of tokens from 1 on, or "auto"')
        if type(deterministic) is not bool:
            raise InputError(f"deterministic is {deterministic!r}", remedy="give True or False")
        if not (isinstance(device, str) and _DEVICE.fullmatch(device)):
            raise InputError(f"unknown device {device!r}", remedy='use "auto", "cpu", "cuda" or "cuda:1"')
        if prefill_tokens is not None and (type(prefill_tokens) is not int or prefill_tokens < 1):
            raise InputError(f"prefill_tokens is {prefill_tokens!r}", remedy="give a number of tokens from 1 on")
        return cls(kind, path or None, dtype, kv_tokens, deterministic, device, prefill_tokens)

    @property
    def spec(self) -> str:
        """The text that ``parse`` reads."""
        return self.kind if self.path is None else f"{self.kind}:{self.path}"

    @property
    def supports_constraints(self) -> bool:
        """True if the target's engine enforces regexes, choices, schemas and grammars."""
        return self.kind in KINDS or self.kind == GIVEN


def _given(name: str, *settings: object) -> Target:
    """The target of a given engine. Raises ``InputError`` for settings: it is set up already."""
    target = Target(GIVEN, name)
    if settings != (target.dtype, target.kv_tokens, target.deterministic, target.device, target.prefill_tokens):
        raise InputError(
            "the engine is set up already",
            remedy="leave out dtype, kv_tokens, deterministic, device and prefill_tokens",
        )
    return target
