"""Functions and modules, and a module as ``.lmir`` text; ``parser.py`` reads it back. Immutable, as all of the IR."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from lmc.ir.core import Block, Constraint, HostFunction, Value
from lmc.ir.printer import INDENT, print_constraint, print_function, print_host, print_symbol
from lmc.ir.wording import with_count


@dataclass(frozen=True, eq=False)
class Function:
    """A named body. Its result types are those of its terminator's operands."""

    name: str
    body: Block

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The body's parameters."""
        return self.body.parameters


@dataclass(frozen=True, eq=False)
class Module:
    """One captured program: symbols and functions. The function named like the module is the program."""

    name: str
    functions: tuple[Function, ...]
    constraints: tuple[Constraint, ...] = ()
    hosts: tuple[HostFunction, ...] = ()

    def __repr__(self) -> str:
        return f"<Module {self.name}: {with_count(sum(len(function.body.ops) for function in self.functions), 'op')}>"

    def __str__(self) -> str:
        """The module as ``.lmir`` text."""
        return print_module(self)

    @property
    def main(self) -> Function:
        """The program's function."""
        return next(function for function in self.functions if function.name == self.name)

    def with_main(self, body: Block) -> Module:
        """The module with another body of ``main``."""
        return self.with_bodies({self.name: body})

    def with_bodies(self, bodies: Mapping[str, Block]) -> Module:
        """The module with other bodies of the functions named."""
        functions = tuple(
            Function(function.name, bodies[function.name]) if function.name in bodies else function
            for function in self.functions
        )
        return dataclasses.replace(self, functions=functions)


def print_module(module: Module) -> str:
    """The text of ``module``. Every module that ``verify`` accepts can be parsed back from it."""
    lines = [f"module {print_symbol(module.name)} {{"]
    lines.extend(INDENT + print_constraint(constraint) for constraint in module.constraints)
    lines.extend(INDENT + print_host(host) for host in module.hosts)
    for function in module.functions:
        lines.extend(print_function(function.name, function.body))
    lines.append("}\n")
    return "\n".join(lines)
