"""Small modules with regions, written as text."""

from __future__ import annotations

from lmc.ir.core import Op
from lmc.ir.module import Module
from lmc.ir.text.parser import parse_verified

TEMPLATE = """
module @m {
  constraint @yes = choices "[\\"yes\\"]"
  host @get = "p:get" sha256 "" reads
  host @write = "p:write" sha256 "" writes
  func @m(%f: !bool, %n: !int, %x: !text, %a: !any, %xs: !list<!text>, %c: !ctx, %cs: !list<!ctx>) {
    BODY
    lm.return %c
  }
}
"""
GEN = '%{0}, %{0}.t = lm.gen %c {{id = "{1}"}} : !ctx, !text '
"""An op that asks a model, by the names of its results and its id."""


def module(body: str) -> Module:
    """``TEMPLATE`` with these ops, verified."""
    return parse_verified(TEMPLATE.replace("BODY", body))


def first(body: str) -> Op:
    """The first of these ops."""
    return module(body).main.body.ops[0]
