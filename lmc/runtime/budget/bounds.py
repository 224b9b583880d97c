"""Bounds for the tokens of a request, before it leaves."""

from __future__ import annotations

import json
from typing import NamedTuple

from lmc.grammar.constraint import Constraint
from lmc.grammar.provider_schema import form_of
from lmc.ir.engine.capabilities import Capabilities
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import Request, ScoreRequest
from lmc.ir.errors import ConstraintError
from lmc.ir.tokens.messages import conversation_of

_TOKENS_PER_REQUEST = 1024
"""A bound for what a provider adds to a prompt: instructions, the message that asks the model to continue.

What its template adds to a message has fewer tokens than the marks and the name of the role here, of a byte each.
"""


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
        length = len(request.prompt)
        if isinstance(request, ScoreRequest):  # each continuation is a prompt of its own
            return TokenBound(sum(length + len(each) for each in request.continuations), len(request.continuations))
        capabilities = self._capabilities
        if capabilities.contexts != "tokens":
            length += _TOKENS_PER_REQUEST
            if capabilities.continuation == "turns":
                length += _quoted_bytes(request)
            if request.constraint is not None and capabilities.structured == "schema":
                length += self._schema_bytes(request.constraint)
        return TokenBound(length, request.sampling.max_tokens + capabilities.reasoning_tokens)

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
        try:
            form = form_of(source, self._capabilities.schema_keywords, self._name)
        except ConstraintError:
            return 0  # the engine refuses it
        return len(json.dumps(form.schema).encode())


def _quoted_bytes(request: Request) -> int:
    """Return the length of the open turn: a message of the user quotes it."""
    turn = conversation_of(request.prompt).open
    return 0 if turn is None else len(turn.text.encode())


def largest(bounds: list[TokenBounds], request: Request | ScoreRequest) -> TokenBound:
    """Return a bound for one attempt at any of several models."""
    found = [each.most(request) for each in bounds]
    return TokenBound(max(each.prompt for each in found), max(each.output for each in found))
