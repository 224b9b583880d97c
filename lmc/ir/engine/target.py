"""Targets: the user's choice of an engine, and the assumptions of passes and lowering about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from lmc.ir.engine.capabilities import OWN, Capabilities
from lmc.ir.errors import InputError

HOSTED = ("anthropic", "openai", "server")
"""Kinds that are reached over HTTP: ``openai:MODEL``, ``anthropic:MODEL``, ``server:URL[#MODEL]``."""
KINDS = ("anthropic", "builtin", "hf", "local", "openai", "server", "toy")
WITH_PATH = ("hf", "local", *HOSTED)
"""Kinds whose name is followed by a model: ``local:PATH``, ``hf:ORG/NAME[@REVISION]``."""
WITH_WEIGHTS = ("builtin", "hf", "local")
"""Kinds that have a model folder."""
TARGETS = (
    "builtin, toy, local:PATH (a model folder), hf:ORG/NAME[@REVISION], openai:MODEL, anthropic:MODEL, "
    "server:URL[#MODEL] or a name of [tool.lmc.targets]"
)
GIVEN = "engine"
"""The kind of a target that stands for an engine which the caller has made: ``engine:NAME``."""
Api = Literal["responses", "chat", "completions", "messages"]
"""The protocol of requests: OpenAI's three, and Anthropic's messages."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """The settings of a target that is reached over HTTP.

    Attributes:
        api: the protocol of requests.
        base_url: where it is; None: the provider's own address.
        api_key_env: the environment variable that holds the key; None: the server needs none.
        requests_per_minute: the most requests in any 60 seconds; None: no limit but the provider's.
        tokens_per_minute: the most tokens of prompts and outputs in any 60 seconds.
        concurrency: the most requests at the same time.
        first_token_timeout: seconds until the first token; None: as many as ``timeout``.
        idle_timeout: seconds between two events of a stream.
        timeout: seconds of an attempt.
        attempts: the most attempts of a request.
        fallback: the target that is asked where this one fails: a text as for ``Target.parse``, or a name that the
            user has defined.
        continuation: ``turns``: where an open turn can't be continued, it is closed and a turn of the user asks the
            model to go on. ``error``: that is an error.
        reasoning_tokens: tokens for reasoning, which are added to ``max_tokens``.
        tokenizer: a ``tokenizer.json`` or its folder: contexts are tokens then, where the server takes them.
        server: the kind of a server, which is not probed then: ``vllm``, ``sglang``, ``lmc`` …
        context_length: the most tokens of a prompt and its output; None: not known.
        kv_tokens: tokens of the server's KV pool, for which rows of a batch may wait; None: not known.
        kv_page: tokens of a page of the pool.
        session_header: the header that names the row of a request to a router in front of several servers; all
            requests of a row have the same value, and no other row has it; eager runs send none. None: no such header.
        store: the provider keeps answers (``responses``): a resumed run fetches those that a crash has cut off.
    """

    api: Api = "chat"
    base_url: str | None = None
    api_key_env: str | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int = 64
    first_token_timeout: float | None = None
    idle_timeout: float | None = None
    timeout: float = 600.0
    attempts: int = 6
    fallback: str | None = None
    continuation: Literal["error", "turns"] = "error"
    reasoning_tokens: int = 0
    tokenizer: str | None = None
    server: str | None = None
    context_length: int | None = None
    kv_tokens: int | None = None
    kv_page: int = 16
    session_header: str | None = None
    store: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A target as the user named it. Parse one with ``Target.parse``.

    ``kind`` is one of ``KINDS``; ``path`` the model folder of a local target, or the name of a model on the Hugging
    Face Hub (``hf``). ``kv_tokens`` is the size of the KV pool in tokens (None: from free memory), ``deterministic``
    whether a request gets the same text whatever else is running, ``device`` where it computes ("auto": on CUDA where
    there is one), ``prefill_tokens`` how many tokens of prompts a step computes beside what is being generated (None:
    as many as the engine finds good). A hosted target (``HOSTED``) has its model in ``path`` and ``remote`` settings
    instead; ``capabilities`` are what it can do, and ``fallback`` is the target that is asked where it fails.
    """

    kind: str
    path: str | None = None
    dtype: str = "float32"
    kv_tokens: int | None = None
    deterministic: bool = False
    device: str = "auto"
    prefill_tokens: int | None = None
    remote: RemoteSettings | None = None
    capabilities: Capabilities = OWN
    fallback: Target | None = None

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
    def chain(self) -> tuple[Target, ...]:
        """This target, then those that are asked where it fails."""
        return (self,) if self.fallback is None else (self, *self.fallback.chain)

    @property
    def fallback_names(self) -> tuple[str, ...]:
        """Names of the targets of ``chain`` behind this one, all of them different."""
        specs = [each.spec for each in self.chain[1:]]
        return tuple(
            spec if spec not in specs[:at] else f"{spec} ({specs[:at].count(spec) + 1})"
            for at, spec in enumerate(specs)
        )

    @property
    def attempts(self) -> tuple[int, ...]:
        """The most attempts of a request at each target of ``chain``."""
        return tuple(1 if each.remote is None else each.remote.attempts for each in self.chain)

    @property
    def served(self) -> tuple[tuple[str, Capabilities], ...]:
        """Names and capabilities of ``chain``."""
        return tuple((each.spec, each.capabilities) for each in self.chain)

    @property
    def is_hosted(self) -> bool:
        """True if requests go to a provider or a server."""
        return self.remote is not None
