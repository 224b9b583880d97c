"""``lm.break`` in the text of modules."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lmc.frontend.continuation.stopping import BEGIN


def break_text(cause: str = "") -> str:
    """Return an ``lm.break`` after which the program runs from its beginning."""
    return f"lm.break {{cause = {json.dumps(cause)}, record = {json.dumps(BEGIN)}}}"


def live_text(names: Sequence[str], cause: str = "") -> str:
    """Return an ``lm.break`` where the variables ``names`` are live, which hold the values of these names."""
    held = [[name, {"leaf": index}] for index, name in enumerate(names)]
    record = json.dumps({"cells": [], "frames": [{"names": held}]})
    values = ", ".join(f"%{name}" for name in names)
    return f"lm.break ({values}) {{cause = {json.dumps(cause)}, record = {json.dumps(record)}}}"


BREAK = break_text()
