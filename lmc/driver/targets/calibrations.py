"""The cache of calibrations: one JSON file of the user's, which ``lmc calibrate`` writes and predictions read."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pydantic

from lmc.cache.simulation.report import REFERENCE, CostModel
from lmc.driver.targets.registry import model_folder
from lmc.ir.engine.target import WITH_WEIGHTS, Target
from lmc.ir.errors import InputError
from lmc.toolchain import ForeignFolderError, replace_own_file, user_cache

PLACE = "LMC_CALIBRATIONS"
"""The variable that names the file; ``off``: there are no calibrations."""
OFF = "off"
MOST_ENTRIES = 256
MOST_BYTES = 1 << 20
_VERSION = 1


@dataclass(frozen=True)
class Calibration:
    """The constants of a model on a machine, measured on a day, and the mean relative error of the steps behind them.

    ``machine`` is the processor and its threads, or the GPU.
    """

    date: datetime.date
    machine: str
    cost: CostModel
    mean_error: float


_ENTRY = pydantic.TypeAdapter(Calibration)


def calibration_of(target: Target) -> Calibration | None:
    """Return the calibration of a target on this machine; None where there is none, or the target is not local."""
    try:
        folder = model_folder(target)
    except InputError:  # a model that is not here
        return None
    return None if folder is None else _stored().get(_key(target, folder))


def cost_model_of(target: Target | None) -> tuple[CostModel, str | None]:
    """Return the constants for predictions, and a note for the user where they are not those of the target here."""
    found = None if target is None else calibration_of(target)
    if found is not None:
        return found.cost, None
    if target is not None and target.kind not in WITH_WEIGHTS:
        return REFERENCE, None
    note = "seconds are not calibrated: they are those of an 8B model on one A100"
    if target is not None:
        note += f"; lmc calibrate --model {target.spec} measures this machine"
    return REFERENCE, note


def keep_calibration(target: Target, found: Calibration) -> Path | None:
    """Write a calibration to the user's file, which is replaced as a whole. Return the file; None: it can't be kept."""
    file, folder = _file(), model_folder(target)
    if file is None or folder is None:
        return None
    key = _key(target, folder)
    kept = {**_stored(), key: found}
    newest = sorted(kept, key=lambda name: (name == key, kept[name].date))[-MOST_ENTRIES:]
    entries = {name: {**asdict(kept[name]), "date": kept[name].date.isoformat()} for name in newest}
    text = json.dumps({"version": _VERSION, "calibrations": entries}, indent=1)
    with suppress(OSError, ForeignFolderError):
        replace_own_file(file, text)
        return file
    return None


def machine_of(target: Target) -> str:
    """Return the processor and its threads, and the GPUs where the target may use one. Loads no torch."""
    gpus = [] if target.device == "cpu" else _gpus()
    return ", ".join([_processor(), f"{_threads()} threads", *gpus])


def _key(target: Target, folder: Path) -> str:
    """The settings that steps depend on. Weights change no time, so the model's configuration is its fingerprint."""
    try:
        config = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    except OSError:
        config = ""
    settings = [target.dtype, target.device, target.deterministic, target.prefill_tokens, machine_of(target)]
    return hashlib.sha256(json.dumps([config, *settings]).encode()).hexdigest()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _threads() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gpus() -> list[str]:
    """The names of NVIDIA's GPUs, as its driver lists them."""
    found: list[str] = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with suppress(OSError):
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return found


def _file() -> Path | None:
    named = os.environ.get(PLACE)
    if named:
        return None if named == OFF else Path(named).expanduser()
    try:
        return user_cache() / "calibrations.json"
    except RuntimeError:  # a user without a home
        return None


def _stored() -> Mapping[str, Calibration]:
    """Return the entries of the file. Warns of a wrong one."""
    path = _file()
    if path is None or not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        content = json.loads(data)
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise ValueError(f"it is not of version {_VERSION}")
        return {name: _checked(entry) for name, entry in dict(content["calibrations"]).items()}
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:  # pydantic's errors are ValueErrors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"{path} is no file of calibrations ({reason}): run lmc calibrate again", stacklevel=3)
        return {}


def _checked(entry: object) -> Calibration:
    found = _ENTRY.validate_python(entry)
    if not all(0 <= value < 1e6 for value in (*asdict(found.cost).values(), found.mean_error)):
        raise ValueError("an entry is out of bounds")
    return found
