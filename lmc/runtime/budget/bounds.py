"""Bounds for the tokens of a request, before it leaves."""

from __future__ import annotations

from typing import NamedTuple

from lmc.cost.ranges import CostRange
from lmc.cost.sending import sent_output, sent_prompt
from lmc.grammar.constraint import Constraint
from lmc.grammar.provider_schema import form_bytes
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Request, ScoreRequest


class TokenBound(NamedTuple):
    """The most tokens of one attempt of a request."""

    prompt: int
    output: int


class TokenBounds:
    """Bounds for requests to the model ``name``."""

    def __init__(self, name: str, capabilities: Capabilities) -> None:
        self._name = name
        self._capabilities = capabilities
        self._schemas: dict[str, int] = {}

    def most(self, request: Request | ScoreRequest) -> TokenBound:
        """Return a bound for one attempt."""
        if isinstance(request, ScoreRequest):  # each continuation is a prompt of its own
            length = len(request.prompt)
            return TokenBound(sum(length + len(each) for each in request.continuations), len(request.continuations))
        capabilities, schema = self._capabilities, 0
        if request.constraint is not None and capabilities.structured == "schema":
            schema = self._schema_bytes(request.constraint)
        prompt = sent_prompt(request.prompt, _counted, capabilities, schema).most
        assert prompt is not None, "its tokens are known"
        return TokenBound(prompt, sent_output(request.sampling.max_tokens, capabilities))

    def _schema_bytes(self, constraint: TokenConstraint) -> int:
        """Return the length of the schema that is sent for a constraint."""
        found = self._schemas.get(constraint.digest)
        if found is None:
            found = self._schemas[constraint.digest] = self._bytes_of(constraint)
        return found

    def _bytes_of(self, constraint: TokenConstraint) -> int:
        source = constraint.source if isinstance(constraint, Constraint) else None
        if source is None:
            return 0
        return form_bytes(source, self._capabilities.schema_keywords, self._name)


def _counted(ids: tuple[int, ...]) -> CostRange[int]:
    return CostRange.exactly(len(ids))


def largest(bounds: list[TokenBounds], request: Request | ScoreRequest) -> TokenBound:
    """Return a bound for one attempt at any of several models."""
    found = [each.most(request) for each in bounds]
    return TokenBound(max(each.prompt for each in found), max(each.output for each in found))
