"""Modules for tests, from text: only the body has to be written."""

from __future__ import annotations

from lmc.ir.core import Op
from lmc.ir.module import Module, print_module
from lmc.ir.printer import print_op
from lmc.ir.text.parser import parse_verified
from lmc.passes import PassContext, PassManager, Remark, parse_pipeline

HOSTS = """
  host @pure = "m:pure" sha256 "00" pure
  host @read = "m:read" sha256 "00" reads
  host @write = "m:write" sha256 "00" writes
"""


def module_of(body: str, parameters: str = "%x: !text, %n: !int, %l: !list<!text>") -> Module:
    """The module whose function ``f`` has ``body``; the hosts of ``HOSTS`` are declared."""
    return parse_verified(f"module @f {{{HOSTS}  func @f({parameters}) {{\n{body}\n  }}\n}}\n")


def run(spec: str, body: str, context: PassContext | None = None) -> tuple[list[str], tuple[Remark, ...]]:
    """The ops after the passes of ``spec``, one line each, and what the passes remarked."""
    result = PassManager(parse_pipeline(spec)).run(module_of(body), context)
    return [print_op(op) for op in result.module.main.body.ops], result.remarks


def ops(spec: str, body: str) -> list[str]:
    """The ops after the passes of ``spec``, one line each."""
    return run(spec, body)[0]


def text_of(module: Module) -> str:
    """The module as text."""
    return print_module(module)


def ops_of(module: Module) -> tuple[Op, ...]:
    """The ops of the main function."""
    return module.main.body.ops
