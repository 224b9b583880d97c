"""What follows from the arguments alone and is needed in a capture: worked out, and assumed in the module."""

from __future__ import annotations

from typing import Any

from lmc.frontend import sizes
from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.emitting import SCALARS
from lmc.frontend.guards import ValueGuard
from lmc.frontend.handing import Handing
from lmc.frontend.locations import user_location
from lmc.frontend.proxy import Expression, MissingInputError, OutsizedError, Proxy, evaluate, symbol
from lmc.frontend.session import NEEDED
from lmc.ir import builtins
from lmc.ir.core import Value
from lmc.ir.ops import AssumeOp, PyCallOp
from lmc.ir.types import type_of
from lmc.ir.wording import with_article


class Specialising(Handing):
    """The part of ``Recorder`` that makes plain values of symbolic ones."""

    def is_known(self, proxy: Proxy) -> bool:
        """Whether ``specialise`` would give a value, or what the program raises: it follows from given arguments."""
        expression = symbol(proxy).expression
        if expression is None or self.outside.parts:  # no function that is called narrows what the graph holds for
            return False
        try:
            evaluate(expression, self.inputs, self._evaluated)
        except MissingInputError:
            return False
        except Exception:
            return True
        return True

    def unknown(self, proxy: Proxy, use: str) -> CaptureBreak:
        """The break where ``use`` needs a value that does not follow from the arguments."""
        return self.stop(
            f"{symbol(proxy).origin} is known only when the program runs, but {use}",
            "nothing has to change: the rest runs eagerly; what should be compiled, do before it",
        )

    def specialise(self, proxy: Proxy, use: str = NEEDED) -> Any:
        """The plain value of a scalar that follows from the arguments; the module then holds for that value only.

        Raises ``CaptureBreak`` where it does not follow from them, or none were given.
        """
        found = symbol(proxy)
        if found.expression is None:
            raise self.unknown(proxy, use)
        if self.outside.parts:
            raise self.stop(f"a function that the program calls needs {found.origin} now", "nothing has to change")
        value = self.value_of(proxy)
        if value in self._specialised:
            return self._specialised[value]
        try:
            result = evaluate(found.expression, self.inputs, self._evaluated)
        except MissingInputError:
            raise self.stop(
                f"{found.origin} is not given, but {use}",
                "compile with example inputs, which the program specialises for",
            ) from None
        except OutsizedError:
            raise self.stop(sizes.CAUSE, sizes.REMEDY) from None
        except Exception as error:
            raise self.stop(
                f"this raises {type(error).__name__} for these arguments: {error}", "check the arguments before"
            ) from error
        if type(result) not in SCALARS or result != result:  # noqa: PLR0124 - NaN
            raise self.stop(
                f"{found.origin} is {with_article(type(result).__name__)}, and {use}",
                "use its items, its length or a comparison, which can be checked",
            )
        if sizes.is_too_large(result):
            raise self.stop(sizes.CAUSE, sizes.REMEDY)
        if self.regions.depth:
            self._assume_first(found.expression, result)
        else:
            self.emit(AssumeOp, value=value, expected=result, total=True)
        self.value_guards.append(ValueGuard(found.expression, result))
        self._specialised[value] = result
        return result

    def _assume_first(self, root: Expression, expected: Any) -> None:
        """Assume what ``root`` gives before the open regions: the module holds for it whichever way is taken."""
        block = self.regions.root
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self._rooted:
                stack.pop()
                continue
            if not node.function:
                named = (parameter for parameter in block.parameters if parameter.name == node.operands[0])
                self._rooted[node] = next(named)
                continue
            missing = [part for part in node.operands if isinstance(part, Expression) and part not in self._rooted]
            if missing:
                stack.extend(missing)
                continue
            builtin = builtins.lookup(node.function)
            assert builtin is not None, node.function
            ir = tuple(self._rooted[part] if isinstance(part, Expression) else part for part in node.operands)
            types = [part.type if isinstance(part, Value) else type_of(part) for part in ir]
            kind = builtin.result_type(types[: len(types) - len(node.keywords)])
            given: dict[str, Any] = {"function": node.function, "arguments": ir, "keywords": node.keywords}
            (self._rooted[node],) = block.emit(PyCallOp, (kind,), location=user_location(), **given)
        block.emit(AssumeOp, location=user_location(), value=self._rooted[root], expected=expected)
