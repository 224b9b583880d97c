"""Errors for types without a schema."""

from __future__ import annotations

from pydantic.errors import PydanticInvalidForJsonSchema


class UnsupportedTypeError(PydanticInvalidForJsonSchema):
    """A type whose values no schema describes, so that pydantic would refuse some that a schema allows.

    Pydantic leaves it out where it is one choice of a union. ``remedy`` names a replacement.
    """

    def __init__(self, cause: str, remedy: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"field {'.'.join(path)}: {cause}" if path else cause)
        self.cause = cause
        self.remedy = remedy
        self.path = path

    def within(self, name: str) -> UnsupportedTypeError:
        """The same of a type one of whose fields it is about."""
        return UnsupportedTypeError(self.cause, self.remedy, (name, *self.path))
