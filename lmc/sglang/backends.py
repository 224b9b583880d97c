"""Backends of sglang's language as targets of lmc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from lmc.driver import (
    DEFAULT_BACKEND,
    InputError,
    Options,
    RemoteTarget,
    adopt_engine,
    close_engine,
    engine_info,
    remote,
)
from lmc.driver import flush_cache as flush_cache_of
from lmc.frontend.source.locations import user_location
from lmc.ir.engine.target import TARGETS
from lmc.ir.wording import with_article

_ENGINE = ("submit", "score", "tokenizer", "info")
_PRECISIONS = {"auto": None, "float32": "float32", "float": "float32", "bfloat16": "bfloat16"}


@dataclass(frozen=True)
class Backend:
    """A target of lmc and how programs run there; the fields are the options of ``lmc.Program.on``.

    What is None is as in the environment (``LMC_TARGET``) and in ``[tool.lmc]``.
    """

    target: str | RemoteTarget | None = None
    dtype: Literal["float32", "bfloat16"] | None = None
    kv_tokens: int | Literal["auto"] | None = None
    deterministic: bool | None = None
    device: str | None = None
    prefill_tokens: int | None = None
    seed: int = 0
    level: Literal["O0", "O1", "O2"] = "O2"
    timeout: float | None = None

    def options(self, requests: int | None = None) -> Options:
        """Return the run options; ``requests`` is the number of a batch's that run at the same time."""
        return Options(**vars(self), requests=requests)

    def shutdown(self) -> None:
        """Close the engine, where it was started."""
        close_engine(self.options())


def backend_of(value: Any) -> Backend:
    """The backend that ``value`` names; None is the default one. Raises ``InputError`` at the user's line."""
    chosen = DEFAULT_BACKEND.chosen if value is None else value
    if chosen is None:
        return Backend()
    if isinstance(chosen, str):
        return Backend(chosen)
    if isinstance(chosen, Backend):
        return chosen
    if all(hasattr(chosen, name) for name in _ENGINE):
        return Backend(adopt_engine(chosen))
    raise _wrong(f"the backend is {with_article(type(chosen).__name__)}")


def set_default_backend(backend: Any) -> None:
    """Let programs run on ``backend`` where ``run`` names no other; None: as if it was never set.

    It is a target of lmc, in words or as a ``Backend``, or an engine of lmc's that was made before. Raises
    ``InputError`` for anything else.
    """
    DEFAULT_BACKEND.chosen = None if backend is None else backend_of(backend)


def flush_cache(backend: Any = None, empty_cache: bool = True) -> bool:
    """Forget the prefixes that a backend has computed; whether there was anything that could forget."""
    if not empty_cache:
        raise InputError(
            "flush_cache(empty_cache=False) would do nothing",
            remedy="leave empty_cache out",
            location=user_location(),
        )
    return flush_cache_of(backend_of(backend).options())


def get_server_info(backend: Any = None) -> dict[str, Any]:
    """Return facts about a backend: its target, name, context length, size of the KV pool, and statistics."""
    return engine_info(backend_of(backend).options())


def Runtime(  # noqa: N802 - the name is sglang's
    model_path: str,
    *,
    dtype: str = "auto",
    max_total_tokens: int | None = None,
    device: str | None = None,
    random_seed: int = 0,
    chunked_prefill_size: int | None = None,
    tp_size: int = 1,
    dp_size: int = 1,
    **others: Any,
) -> Backend:
    """A model folder of this machine as a backend: ``sgl.Runtime(model_path="models/llama")``.

    Of the arguments of sglang's server there are those that mean something here. Raises ``InputError`` for the others.
    """
    if others:
        raise InputError(
            f"Runtime has no argument {next(iter(others))!r} here",
            remedy='leave it out, or name the target with its options: sgl.Backend("local:PATH", kv_tokens=…)',
            location=user_location(),
        )
    if (tp_size, dp_size) != (1, 1):
        raise InputError(
            f"tp_size is {tp_size} and dp_size {dp_size}: a model runs on one device",
            remedy="leave them out",
            location=user_location(),
        )
    if dtype not in _PRECISIONS:
        raise InputError(
            f"dtype is {dtype!r}", remedy=f"give one of {', '.join(_PRECISIONS)}", location=user_location()
        )
    precision: Any = _PRECISIONS[dtype]
    return Backend(
        f"local:{model_path}",
        dtype=precision,
        kv_tokens=max_total_tokens,
        device=device,
        prefill_tokens=chunked_prefill_size,
        seed=random_seed,
    )


Engine = Runtime


def RuntimeEndpoint(  # noqa: N802 - the name is sglang's
    base_url: str, api_key: str | None = None, **others: Any
) -> Backend:
    """A server that runs: sglang's, vLLM's or ``lmc serve``. ``base_url`` is its address."""
    _refuse_key(api_key)
    _refuse_others("RuntimeEndpoint", f"server:{base_url}", others)
    return Backend(f"server:{base_url}")


def OpenAI(  # noqa: N802 - the name is sglang's
    model_name: str, api_key: str | None = None, base_url: str | None = None, **others: Any
) -> Backend:
    """A model of OpenAI, or of the service at ``base_url``. The key is that of the environment (``OPENAI_API_KEY``)."""
    return _hosted("OpenAI", f"openai:{model_name}", api_key, base_url, others)


def Anthropic(  # noqa: N802 - the name is sglang's
    model_name: str, api_key: str | None = None, base_url: str | None = None, **others: Any
) -> Backend:
    """A model of Anthropic, perhaps at ``base_url``. The key is that of the environment (``ANTHROPIC_API_KEY``)."""
    return _hosted("Anthropic", f"anthropic:{model_name}", api_key, base_url, others)


def _hosted(name: str, spec: str, api_key: str | None, base_url: str | None, others: Mapping[str, Any]) -> Backend:
    _refuse_key(api_key)
    _refuse_others(name, spec, others)
    return Backend(spec if base_url is None else remote(spec, base_url=base_url))


def _refuse_others(name: str, spec: str, others: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for arguments of sglang, or of an SDK's client, that mean nothing here."""
    if others:
        raise InputError(
            f"{name} has no argument {next(iter(others))!r} here",
            remedy=f'leave it out, or name the target with its settings: sgl.Backend(lmc.remote("{spec}", …))',
            location=user_location(),
        )


def _refuse_key(api_key: str | None) -> None:
    if api_key is not None:
        raise InputError(
            "the program contains a key",
            remedy="take it out, and set OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment; for a server that "
            'needs one, name its variable: sgl.Backend(lmc.remote("server:URL", api_key_env="…"))',
            location=user_location(),
        )


def VertexAI(*_arguments: Any, **_keywords: Any) -> NoReturn:  # noqa: N802 - the name is sglang's
    """Refused: there is no such target."""
    raise _no_such("the API of Vertex AI")


def LiteLLM(*_arguments: Any, **_keywords: Any) -> NoReturn:  # noqa: N802 - the name is sglang's
    """Refused: there is no such target."""
    raise _no_such("the APIs that LiteLLM knows")


def _no_such(what: str) -> InputError:
    return InputError(
        f"{what} is no target of lmc",
        remedy=f"name one: sgl.set_default_backend(…) takes {TARGETS}",
        location=user_location(),
    )


def _wrong(cause: str) -> InputError:
    remedy = f"give a target of lmc: {TARGETS}; sgl.Backend(…) for its options; or an engine of lmc's"
    return InputError(cause, remedy=remedy, location=user_location())
