"""From a model folder to a running engine. Only safetensors are read, and no code of the folder is ever run."""

import contextlib
import json
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers.utils import logging as transformers_logging

from lmc.ir.engine.forks import claim_process
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.errors import EngineError, InputError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.local.architectures import check_name, check_supported
from lmc.runtime.local.engine import DEFAULT_MAX_RUNNING, DEFAULT_PREFILL_TOKENS, LocalEngine
from lmc.runtime.local.free_memory import free_memory, return_free_memory
from lmc.runtime.local.model import PagedModel, bytes_per_token
from lmc.runtime.local.modules.fusion import fuse
from lmc.runtime.local.modules.rotary import context_length

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
AUTO_MEMORY_SHARE = {"cpu": 0.25, "cuda": 0.8}  # of what is free once the weights are loaded
AUTO_KV_TOKENS_LIMIT = 2**20
# Entries of generation_config.json about which tokens may come; what only shapes sampling is the program's to say.
_IGNORED = (
    "bad_words_ids",
    "begin_suppress_tokens",
    "constraints",
    "force_words_ids",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "no_repeat_ngram_size",
    "sequence_bias",
    "stop_strings",
    "suppress_tokens",
)


def load_local_engine(
    path: str | Path,
    *,
    dtype: Literal["float32", "bfloat16"] = "float32",
    kv_tokens: int | Literal["auto"] = "auto",
    device: str = "auto",
    prefill_tokens: int = DEFAULT_PREFILL_TOKENS,
    max_running: int = DEFAULT_MAX_RUNNING,
    prefix_cache: bool = True,
    deterministic: bool = False,
    policy: str = "lmc",
) -> LocalEngine:
    """Load a model folder as transformers saves it (config.json, tokenizer.json, *.safetensors) and start an engine.

    Args:
        path: the folder.
        dtype: precision of weights, activations and the KV pool.
        kv_tokens: size of the KV pool in tokens; "auto" takes a share of the free memory.
        device: "cpu", "cuda", "cuda:1" …; "auto" is CUDA where there is one.
        prefill_tokens: see `LocalEngine`.
        max_running: see `LocalEngine`.
        prefix_cache: see `LocalEngine`.
        deterministic: whether a request gets the same bits, and so the same text, in any batch, whatever is cached; on
            this machine with this number of threads. Prompts take several times longer, decoding shares no reads of a
            common prefix. CPU only.
        policy: see `LocalEngine`.

    Raises:
        InputError: the folder, its files or an argument are no good.
        EngineError: the model is one that this engine does not run, memory is short, or this process was forked from
            one that runs a model.
    """
    claim_process()
    folder = Path(path)
    torch_dtype = _check_dtype(dtype)
    torch_device = _choose_device(device)
    config = _read_config(folder)
    check_supported(config)
    length = _check_context_length(folder, config)
    tokenizer = Tokenizer.from_folder(folder)
    _warn_of_ignored(folder)
    model = _load_weights(folder, config, torch_dtype, torch_device)
    _copy_into_memory(model)
    fuse(model)
    return_free_memory()
    pool = _pool_size(kv_tokens, bytes_per_token(config, torch_dtype), torch_device)
    info = EngineInfo(f"local:{folder.resolve().name}", length, pool)
    return LocalEngine(
        PagedModel(model, pool, deterministic=deterministic),
        tokenizer,
        info,
        prefill_tokens=prefill_tokens,
        max_running=max_running,
        prefix_cache=prefix_cache,
        policy=policy,
    )


def _check_dtype(dtype: str) -> torch.dtype:
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}", remedy=f"give one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def _choose_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"device is {device!r}", remedy='give "auto", "cpu" or "cuda"') from error
    if chosen.type not in AUTO_MEMORY_SHARE:
        raise InputError(f"the engine does not run on {chosen.type}", remedy='give "auto", "cpu" or "cuda"')
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise InputError(f"there is no device {device!r} here", remedy='give "cpu" or "auto"')
    return chosen


def _read_config(folder: Path) -> Any:
    if not folder.is_dir():
        raise InputError(
            f"there is no model folder {folder}", remedy="name a folder with config.json and *.safetensors"
        )
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} has no config.json", remedy="name a folder that transformers saved")
    if not any(folder.glob("*.safetensors")):
        raise InputError(
            f"{folder} has no *.safetensors file; other formats can run code when they are read and are not loaded",
            remedy="save the model again with save_pretrained",
        )
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds here
        _check_name(folder)
        raise InputError(
            f"{folder / 'config.json'} can't be used: {error}", remedy="save the model folder again"
        ) from error
    return config


def _check_name(folder: Path) -> None:
    """Refuse a model by name where transformers does not know its type: it advises to update transformers."""
    try:
        entries = json.loads((folder / "config.json").read_bytes())
    except (ValueError, OSError, RecursionError):
        return
    if isinstance(entries, dict) and "architectures" in entries:
        check_name(entries["architectures"])


def _warn_of_ignored(folder: Path) -> None:
    """Warn of entries of generation_config.json that forbid, force or favour tokens and have no effect here."""
    path = folder / "generation_config.json"
    entries = json.loads(path.read_bytes()) if path.is_file() else {}
    ignored = [name for name in _IGNORED if entries.get(name)]
    if ignored:
        warnings.warn(
            f"{path} sets {', '.join(ignored)}, which this engine does not apply; where a program needs it, "
            "give its generations logit_bias or stop",
            UserWarning,
            stacklevel=3,
        )


def _check_context_length(folder: Path, config: Any) -> int:
    length = context_length(config)
    if not isinstance(length, int) or length < 1:
        raise InputError(
            f"{folder / 'config.json'} can't be used: max_position_embeddings is {length!r}",
            remedy="write the model's context length there, in tokens",
        )
    return length


def _load_weights(folder: Path, config: Any, dtype: torch.dtype, device: torch.device) -> Any:
    model_class = getattr(transformers, config.architectures[0])
    try:
        with _quiet_transformers():
            model, report = model_class.from_pretrained(
                folder,
                config=config,
                dtype=dtype,
                local_files_only=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they come in the report, by name
                output_loading_info=True,
            )
    except torch.OutOfMemoryError as error:
        raise EngineError(f"{folder.name} does not fit in memory", remedy="use a smaller model or dtype") from error
    except Exception as error:  # transformers raises many kinds here
        broken = _broken_file(folder)
        if broken is not None:
            raise InputError(f"{broken[0]} can't be read: {broken[1]}", remedy="copy that file again") from error
        raise InputError(
            f"the model in {folder} can't be made of its config.json and weights: {type(error).__name__}: {error}",
            remedy="copy the folder again; what config.json names must be known to transformers",
        ) from error
    _check_complete(folder, report)
    return model.to(device).eval().requires_grad_(requires_grad=False)


def _copy_into_memory(model: Any) -> None:
    """Replace weights that are mappings of the files: truncating such a file would kill the process (SIGBUS).

    safetensors maps what needs no conversion. Copies are made one by one, so that memory holds little twice.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def _broken_file(folder: Path) -> tuple[Path, str] | None:
    """The first file of weights that can't be read, and why; the exception that loading ends with names none."""
    index = folder / "model.safetensors.index.json"
    paths = set(folder.glob("*.safetensors"))
    try:
        if index.is_file():
            paths.update(folder / name for name in json.loads(index.read_bytes())["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return index, f"{type(error).__name__}: {error}"
    for path in sorted(paths):
        try:
            with safe_open(path, framework="pt"):
                continue
        except (SafetensorError, OSError) as error:
            return path, str(error)
    return None


def _check_complete(folder: Path, report: dict[str, Any]) -> None:
    """Refuse weights that do not match: transformers would fill what is missing with random numbers and go on."""
    for kind in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        names = sorted(map(_described, report.get(kind, ())))
        if names:
            raise InputError(
                f"the weights in {folder} don't match config.json: {len(names)} {kind.replace('_', ' ')}, "
                f"first {names[0]}",
                remedy="copy the folder again, or use the config.json that belongs to these weights",
            )


def _described(entry: Any) -> str:
    """The name of a tensor; a mismatched one comes with the shape in the file and that of the model."""
    if isinstance(entry, str):
        return entry
    name, found, expected = entry
    return f"{name} ({list(found)} where config.json says {list(expected)})"


@contextlib.contextmanager
def _quiet_transformers() -> Generator[None]:
    """No progress bars or load reports on the user's terminal; failures are raised instead."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


def _pool_size(kv_tokens: int | str, token_bytes: int, device: torch.device) -> int:
    if kv_tokens == "auto":
        tokens = int(free_memory(device) * AUTO_MEMORY_SHARE[device.type]) // token_bytes
        return max(1, min(tokens, AUTO_KV_TOKENS_LIMIT))
    if not isinstance(kv_tokens, int) or isinstance(kv_tokens, bool) or kv_tokens < 1:
        raise InputError(f"kv_tokens is {kv_tokens!r}", remedy='give a number of tokens from 1 on, or "auto"')
    return kv_tokens
