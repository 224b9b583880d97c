"""Models by their name on the Hugging Face Hub: ``hf:ORG/NAME[@REVISION]``.

Files come from the cache of ``huggingface_hub`` (``HF_HOME``, ``HF_HUB_CACHE``), which downloads those that are
missing: config, tokenizer and safetensors, nothing that runs code and no pickle. A name is resolved once per process,
so that all engines of a process have the same revision.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmc.ir.errors import InputError
from lmc.ir.wording import with_count

if TYPE_CHECKING:
    from huggingface_hub.file_download import DryRunFileInfo

DESCRIPTION = (
    "config.json",
    "tokenizer.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""The files of a model but for its weights; the first two must be there."""
_INDEX = "model.safetensors.index.json"
_MEGABYTE = 1 << 20


@lru_cache(maxsize=64)
def model_snapshot(name: str, *, weights: bool) -> Path:
    """Return the folder in the cache that holds the model ``ORG/NAME[@REVISION]``, downloading what is missing.

    Without ``weights`` only its description: what a tokenizer needs. Prints the size of a download to standard error,
    where ``huggingface_hub`` shows its progress.

    Raises:
        InputError: there is no such model or revision, it may not be read, it has no safetensors, or files are missing
            from the cache and the hub can't be reached.
    """
    repository, at, revision = name.partition("@")
    if at and not revision:
        raise InputError(f"hf:{name} names no revision", remedy=f"write hf:{repository}, or the revision behind the @")
    folder = _snapshot(repository, revision, [*DESCRIPTION, _INDEX] if weights else DESCRIPTION, DESCRIPTION[:2])
    for required in DESCRIPTION[:2]:
        if not (folder / required).is_file():
            raise InputError(
                f"hf:{name} has no {required}",
                remedy="use a model saved by transformers with a fast tokenizer, or convert it to a folder yourself",
            )
    if not weights:
        return folder
    # By commit, so that the weights are those of the files beside them.
    shards = _shards(folder)
    folder = _snapshot(repository, folder.name, shards, shards)
    if not all((folder / shard).is_file() for shard in shards):
        raise InputError(
            f"hf:{name} has no {', '.join(shards[:3])}",
            remedy="lmc loads no pickled weights; use a revision or a copy of the model with *.safetensors",
        )
    return folder


def _shards(folder: Path) -> list[str]:
    """Return the names of the files of the weights: those in the index, else the one that transformers writes."""
    index = folder / _INDEX
    if not index.is_file():
        return ["model.safetensors"]
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(
            f"{index} is not an index of weights", remedy="remove it from the cache, and try again"
        ) from error
    if not all(isinstance(name, str) and name.endswith(".safetensors") and Path(name).name == name for name in names):
        raise InputError(f"{index} names files that are no safetensors", remedy="use another revision of the model")
    return sorted(names)


def _snapshot(repository: str, revision: str, patterns: Sequence[str], needed: Sequence[str]) -> Path:
    """Return the folder of a revision in the cache, with the files that match ``patterns`` where the hub has them.

    Where the hub can't be reached, the cache must hold those of ``needed``.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import DryRunError, HFValidationError
    from huggingface_hub.utils import tqdm

    shown = f"hf:{repository}" + (f"@{revision}" if revision else "")
    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": list(patterns)}
    try:
        silent: Any = partial(tqdm, disable=True)
        plan = snapshot_download(repository, dry_run=True, tqdm_class=silent, **options)
        missing = [file for file in plan if file.will_download]
        if plan and not missing:
            return Path(plan[0].local_path).parent
        _announce(shown, missing)
        return Path(cast("str", snapshot_download(repository, **options)))
    except HFValidationError as error:
        raise InputError(
            f"{shown} is no name of a model", remedy="write hf:ORG/NAME or hf:ORG/NAME@REVISION"
        ) from error
    except Exception as error:  # whatever the network raises
        cause = error.__cause__ if isinstance(error, DryRunError) and error.__cause__ is not None else error
        refused = _refusal(shown, repository, revision, cause)
        if refused is not None:
            raise refused from error
        return _cached(shown, repository, options, needed, cause)


def _refusal(shown: str, repository: str, revision: str, error: BaseException) -> InputError | None:
    """Return the error for an answer of the hub that the cache can't replace."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        remedy = "accept its conditions on the page of the model, then run `hf auth login`"
        return InputError(f"{shown} is gated: you may not read it", remedy=remedy)
    if isinstance(error, RepositoryNotFoundError):
        remedy = "check the name; for a private model, run `hf auth login`"
        return InputError(f"there is no model {shown}, or you may not read it", remedy=remedy)
    if isinstance(error, RevisionNotFoundError):
        remedy = "name a branch, a tag or a commit of it"
        return InputError(f"the model hf:{repository} has no revision {revision!r}", remedy=remedy)
    return None


def _cached(
    shown: str, repository: str, options: Mapping[str, Any], needed: Sequence[str], error: BaseException
) -> Path:
    """Return the folder in the cache, where the hub can't be reached."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import IncompleteSnapshotError, LocalEntryNotFoundError

    try:
        folder = Path(cast("str", snapshot_download(repository, local_files_only=True, **options)))
        absent = [name for name in needed if not (folder / name).is_file()]
        if not absent:
            return folder
        missing = f"{absent[0]} of it"
    except (IncompleteSnapshotError, LocalEntryNotFoundError):
        missing = "it"
    chosen = f" --revision {options['revision']}" if options["revision"] else ""
    raise InputError(
        f"{shown} can't be downloaded ({_first_line(error)}), and {constants.HF_HUB_CACHE} does not have {missing}",
        remedy=f"run `hf download {repository}{chosen}` where there is a network, or set HF_HOME to a cache with it",
    ) from error


def _announce(shown: str, files: Sequence[DryRunFileInfo]) -> None:
    """Print the size of a download, which huggingface_hub then shows the progress of."""
    if files:
        size = sum(file.file_size or 0 for file in files)
        text = f"{size / _MEGABYTE:,.1f} MB" if size < 1024 * _MEGABYTE else f"{size / 1024 / _MEGABYTE:,.1f} GB"
        sys.stderr.write(f"Downloading {shown}: {with_count(len(files), 'file')}, {text}\n")


def _first_line(error: BaseException) -> str:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set"
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
