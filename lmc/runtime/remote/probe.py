"""The kind and the capabilities of a server, found by a few small requests.

The HTTP library loads with the first of them, so that ``Probe`` is a cheap import.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmc.ir.engine.target import Target
from lmc.ir.errors import EngineError, InputError
from lmc.ir.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 4 << 20
MOST_CHARACTERS = 4096
"""Of a name that a server gives."""
_CONNECT_SECONDS = 5.0
_SECONDS = 30.0
_IDS = (1, 2, 3)
"""A prompt: every vocabulary has them."""
_SAMPLE = "The quick brown fox jumps 1234 times; then it rests."
_FEWEST = 5
"""Tokens of the sample with equal texts, so that a folder counts that the server has named, not the user."""
_REFUSED = (401, 403)
_VLLM = "vllm"
_SERVER_INFO = {"lmc": ("/server_info",), "sglang": ("/server_info", "/get_server_info")}
_POOL_SECONDS = 5.0
_POOL = "vllm:cache_config_info{"
_POOL_PARTS = re.compile(r'[{,](num_gpu_blocks|block_size|kv_cache_size_tokens)="([1-9][0-9]{0,11})"')


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model in the list of a server.

    Attributes:
        owner: its ``owned_by``, which tells the kind of the server: ``lmc``, ``vllm``, ``sglang``, ``llamacpp`` …
        name: its name in requests.
        context_length: the most tokens of a prompt and its output; None: the server does not tell.
        root: where the server has it from: perhaps a folder.
    """

    owner: str
    name: str
    context_length: int | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The model of a server, and what ``/v1/completions`` takes.

    Attributes:
        model: the model.
        token_ids: prompts may be token ids, and the ids of outputs are given (``return_token_ids``).
        echo: log-probabilities of given texts.
        tokenizer: a folder on this machine that has the model's tokenizer, which was compared with the server's texts.
        priority: vLLM schedules by priority, and lower numbers go first (``--scheduling-policy priority``).
        kv_tokens: the size of its KV pool in tokens; None: the server does not tell.
        kv_page: tokens of a page of the pool.
    """

    model: ServedModel
    token_ids: bool
    echo: bool
    tokenizer: str | None = None
    priority: bool = False
    kv_tokens: int | None = None
    kv_page: int = 1


def served_model(target: Target) -> ServedModel:
    """Ask for the model of a ``server:`` target alone. Raises as ``probe`` does."""
    with _connected(target) as server:
        return server.model()


def probe(target: Target) -> Probe:
    """Ask a server what it is and can do: its list of models, a completion of one token, an echo of a prompt.

    Raises ``EngineError`` where it can't be reached or is no such server, ``InputError`` for a key that is not set,
    a model that it does not have and a ``tokenizer`` that is not the model's.
    """
    assert target.remote is not None
    with _connected(target) as server:
        model = server.model()
        is_scheduled = model.owner == _VLLM and server.takes_priority(model.name)
        found = Probe(model, token_ids=server.takes_ids(model.name), echo=False, priority=is_scheduled)
        if found.token_ids:
            tokens, page = server.pool(model.owner)
            found = replace(found, kv_tokens=tokens, kv_page=page)
        if not found.token_ids or server.echoed(model.name, _IDS) is None:
            return found
        named = target.remote.tokenizer
        folder = _folder_of(model.root if named is None else str(Path(named).expanduser().absolute()))
        if folder is None:
            return replace(found, echo=True)
        try:
            tokenizer = Tokenizer.from_folder(folder)
            ids = tokenizer.encode(_SAMPLE)  # parses it
        except InputError:
            if named is not None:
                raise
            return replace(found, echo=True)  # the server's folder may be anything
        texts = server.echoed(model.name, ids)
        equal = [_visible(given) == own for given, own in zip(texts or (), _texts(tokenizer, ids), strict=False) if own]
        if named is not None and (texts is None or not all(equal)):
            raise InputError(
                f"the tokenizer {named} is not that of {model.name!r} at {server.address}",
                remedy="name the folder of the model that the server has, or leave tokenizer out",
            )
        return replace(found, echo=True, tokenizer=str(folder) if len(equal) >= _FEWEST and all(equal) else None)


def _folder_of(place: str | None) -> Path | None:
    """Return the folder of a tokenizer on this machine; None where there is none."""
    if place is None or not (path := Path(place)).is_absolute():
        return None
    folder = path.parent if path.name == "tokenizer.json" else path
    return folder if os.access(folder / "tokenizer.json", os.R_OK) else None


def _texts(tokenizer: Tokenizer, ids: tuple[int, ...]) -> list[str]:
    """Return the texts of the tokens of the sample; empty for those that are no part of it, as special tokens."""
    texts = (_visible(tokenizer.decode((each,))) for each in ids)
    return [text if text in _visible(_SAMPLE) else "" for text in texts]


def _visible(text: str) -> str:
    """Return the characters of texts of single tokens: some servers lose the spaces at their beginnings."""
    return "".join(text.replace("\u2581", "").split())


@contextmanager
def _connected(target: Target) -> Generator[_Server]:
    import httpx2

    from lmc.runtime.remote.engine import address_of, key_of, model_named

    address, key = address_of(target), key_of(target)
    timeout = httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
    with httpx2.Client(headers={"authorization": f"Bearer {key}"}, timeout=timeout) as client:
        try:
            yield _Server(client, address, model_named(target), target.spec)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            cause = str(error) or type(error).__name__
            raise EngineError(
                f"{address} can't be reached: {cause}",
                remedy=f"start the server, or check the address; then try lmc targets {target.spec}",
            ) from None


@dataclass(frozen=True)
class _Server:
    """A server that is asked; ``wanted`` is the name of the model, empty for its first one."""

    client: httpx2.Client
    address: str
    wanted: str
    spec: str

    def model(self) -> ServedModel:
        """Return the entry of the model in the list of models."""
        status, body = self._ask("GET", "/models")
        if status in _REFUSED:
            raise EngineError(
                f"{self.address} refuses the key", remedy="name the environment variable of its key: api_key_env"
            )
        listed = body.get("data") if status == 200 and isinstance(body, Mapping) else None
        entries = [each for each in listed if _is_entry(each)] if isinstance(listed, list) else []
        if not entries:
            raise EngineError(
                f"{self.address} has no list of models (GET /models answers {status})",
                remedy="check the address; for a server without one, declare its kind in "
                '[tool.lmc.targets.NAME]: server = "other"',
            )
        found = [each for each in entries if self.wanted in ("", each["id"])]
        if not found:
            names = ", ".join(each["id"] for each in entries[:8])
            raise InputError(
                f"{self.address} has no model {self.wanted!r}", remedy=f"it has {names}: write server:URL#MODEL"
            )
        length, root = found[0].get("max_model_len"), found[0].get("root")
        return ServedModel(
            _text(found[0].get("owned_by")) or "other",
            found[0]["id"],
            length if type(length) is int and length > 0 else None,
            _text(root),
        )

    def pool(self, owner: str) -> tuple[int | None, int]:
        """Return the tokens of the KV pool of a server, all of its engines together, and those of a page of it.

        Nothing depends on the answer, so a server may have none. The key is that of ``/v1``: it goes to no other path.
        """
        import httpx2

        place = self.address.removesuffix("/v1")
        try:
            with httpx2.Client(timeout=_POOL_SECONDS) as client:
                if owner == _VLLM:
                    return _vllm_pool(_read(client, "GET", f"{place}/metrics")[1].decode("utf-8", "replace"))
                for path in _SERVER_INFO.get(owner, ()):
                    status, told = _parsed(_read(client, "GET", f"{place}{path}"))
                    if status == 200 and isinstance(told, Mapping):
                        tokens, page = (_count(told.get(name)) for name in ("max_total_num_tokens", "page_size"))
                        return tokens, page or 1
        except httpx2.HTTPError:
            pass
        return None, 1

    def takes_ids(self, model: str) -> bool:
        """Return True if a prompt may be token ids, and those of the output come back."""
        choice, usage = self._complete(
            {"model": model, "prompt": list(_IDS), "max_tokens": 1, "temperature": 0, "return_token_ids": True}
        )
        ids = choice.get("token_ids")
        is_list = isinstance(ids, list) and len(ids) <= 1 and all(type(each) is int for each in ids)
        return is_list and usage.get("prompt_tokens") == len(_IDS)

    def takes_priority(self, model: str) -> bool:
        """Return True if a request may have a priority: vLLM refuses it where it does not schedule by priority."""
        choice, _ = self._complete({"model": model, "prompt": list(_IDS), "max_tokens": 1, "priority": 1})
        return bool(choice)

    def echoed(self, model: str, ids: tuple[int, ...]) -> list[str] | None:
        """Return the texts of the tokens of a prompt, from an echo with log-probabilities; None: there is no echo."""
        choice, _ = self._complete(
            {"model": model, "prompt": list(ids), "max_tokens": 0, "temperature": 0, "echo": True, "logprobs": 0}
        )
        logprobs = choice.get("logprobs")
        if not isinstance(logprobs, Mapping):
            return None
        values, texts = logprobs.get("token_logprobs"), logprobs.get("tokens")
        if not isinstance(values, list) or not isinstance(texts, list) or not len(values) == len(texts) == len(ids):
            return None
        is_scored = all(isinstance(each, int | float) for each in values[1:])
        return texts if is_scored and all(isinstance(each, str) for each in texts) else None

    def _complete(self, body: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the choice and the usage of a completion; both are empty where the server refuses it."""
        status, answer = self._ask("POST", "/completions", body)
        if status != 200 or not isinstance(answer, Mapping):
            return {}, {}
        choices, usage = answer.get("choices"), answer.get("usage")
        first = choices[0] if isinstance(choices, list) and choices else None
        return first if isinstance(first, Mapping) else {}, usage if isinstance(usage, Mapping) else {}

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; None for one that is no JSON, or is too long."""
        return _parsed(_read(self.client, method, f"{self.address}{path}", body))


def _read(client: httpx2.Client, method: str, address: str, body: Any = None) -> tuple[int, bytes]:
    """Return the status and the bytes of an answer; none of one that is too long."""
    with client.stream(method, address, json=body) as answer:
        data = bytearray()
        for part in answer.iter_bytes():
            data += part
            if len(data) > MOST_BYTES:
                return answer.status_code, b""
    return answer.status_code, bytes(data)


def _parsed(answer: tuple[int, bytes]) -> tuple[int, Any]:
    status, data = answer
    try:
        return status, json.loads(data)
    except (ValueError, RecursionError):
        return status, None


def _vllm_pool(metrics: str) -> tuple[int | None, int]:
    """Return the size of the pool and of its pages from the metrics of vLLM: one line for each of its engines.

    ``kv_cache_size_tokens`` is that of models with several kinds of layers, too; older versions do not tell it.
    """
    tokens, pages = 0, [1]
    for line in metrics.splitlines():
        told = {name: int(value) for name, value in _POOL_PARTS.findall(line)} if line.startswith(_POOL) else {}
        if "block_size" in told and len(told) > 1:
            product = told["block_size"] * told.get("num_gpu_blocks", 0)
            tokens += told.get("kv_cache_size_tokens", product)
            pages.append(told["block_size"])
    return tokens or None, max(pages)


def _count(given: Any) -> int | None:
    return given if type(given) is int and given > 0 else None


def _is_entry(given: Any) -> bool:
    return isinstance(given, dict) and bool(_text(given.get("id")))


def _text(given: Any) -> str | None:
    return given if isinstance(given, str) and 0 < len(given) <= MOST_CHARACTERS and given.isprintable() else None
