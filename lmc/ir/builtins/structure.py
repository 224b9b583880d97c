"""The nesting of what a program returns: canonical JSON beside the leaves in ``lm.return``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmc.ir.errors import InputError

_MAX_DEPTH = 64


def canonical(nesting: Any) -> str:
    """A nesting, as this module describes it, as text."""
    return json.dumps(nesting, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def build(structure: str, leaves: Sequence[Any]) -> Any:
    """The value that ``structure`` describes over ``leaves``."""
    return _build(json.loads(structure), leaves, 0)


class _Indices(Sequence[Any]):
    """Leaves that only note the highest index that is asked for."""

    def __init__(self) -> None:
        self.highest = -1

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int) or index < 0:
            raise InputError(f"leaf index {index!r} is no index")
        self.highest = max(self.highest, index)


def leaf_count(structure: str) -> int:
    """One more than the highest leaf index. Raises ``InputError`` where the text is no structure."""
    indices = _Indices()
    try:
        _build(json.loads(structure), indices, 0)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"not a structure: {error}") from error
    return indices.highest + 1


def _build(node: Any, leaves: Sequence[Any], depth: int) -> Any:
    _check_depth(depth)
    if not isinstance(node, dict) or len(node) != 1:
        raise InputError(f"not a structure: {node!r}")
    ((kind, content),) = node.items()
    if kind == "leaf":
        return leaves[content]
    if kind == "literal":
        return content
    if kind == "list" and isinstance(content, list):
        return [_build(part, leaves, depth + 1) for part in content]
    if kind == "tuple" and isinstance(content, list):
        return tuple(_build(part, leaves, depth + 1) for part in content)
    if kind == "dict" and isinstance(content, list):
        return {_build(key, leaves, depth + 1): _build(part, leaves, depth + 1) for key, part in content}
    raise InputError(f"not a structure: {kind!r}")


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InputError(f"a result is nested deeper than {_MAX_DEPTH} levels", remedy="return a flatter value")
