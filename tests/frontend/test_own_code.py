"""Which classes run code of the user's when their values are made from JSON, or used."""

import dataclasses
import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest
from pydantic import AfterValidator, BaseModel, Field, RootModel, field_validator, model_validator
from typing_extensions import TypedDict

from lmc.frontend.schemas.user_hooks import has_own_code


class Plain(BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)
    a: int = Field(ge=0, description="x")
    b: list[str] = []
    c: dict[str, "Plain | None"] = Field(default_factory=dict)
    d: Literal["x", "y"] = "x"
    e: datetime.datetime | None = None
    f: decimal.Decimal | uuid.UUID = decimal.Decimal(1)

    def method(self) -> int:
        return self.a

    @property
    def twice(self) -> int:
        return 2 * self.a


class Child(Plain):
    g: tuple[int, str] = (1, "a")


@dataclasses.dataclass(frozen=True, order=True)
class Data:
    a: int
    b: list[int] = dataclasses.field(default_factory=list)


class Typed(TypedDict):
    a: int


class Colour(enum.StrEnum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Root(RootModel[list[int]]):
    pass


@pytest.mark.parametrize(
    "kind",
    [
        Plain,
        Child,
        Data,
        Typed,
        Colour,
        Root,
        int,
        list[Plain],
        Annotated[Cat | Dog, Field(discriminator="kind")],
        Annotated[str, Field(min_length=3, pattern="a")],
        set[int],
        Any,
    ],
)
def test_classes_that_only_hold_their_fields(kind: Any):
    assert not has_own_code(pydantic.TypeAdapter(kind).core_schema)


class Checks(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def check(cls, value: int) -> int:
        return value


class ChecksAll(BaseModel):
    a: int

    @model_validator(mode="before")
    @classmethod
    def check(cls, value: Any) -> Any:
        return value


class Inits(BaseModel):
    a: int

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)


class Starts(BaseModel):
    a: int

    def model_post_init(self, context: Any) -> None:
        pass


class Prints(BaseModel):
    a: int

    def __str__(self) -> str:
        return "a"


class Looks(BaseModel):
    a: int

    def __getattr__(self, name: str) -> Any:
        return name


class PrintsBelow(Prints):
    b: int


class Holds(BaseModel):
    held: Prints


class Computes(BaseModel):
    a: int

    @pydantic.computed_field
    @property
    def b(self) -> int:
        return self.a


class Makes(BaseModel):
    a: list[int] = Field(default_factory=lambda: [])


@dataclasses.dataclass
class Posts:
    a: int

    def __post_init__(self) -> None:
        pass


@dataclasses.dataclass(eq=False)
class Compares:
    a: int

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Loud(enum.Enum):
    RED = "red"

    def __str__(self) -> str:
        return "RED!"


class Guesses(enum.Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.RED


class Pair(NamedTuple):
    a: int


def tag(value: Any) -> str:
    return value["kind"]


@pytest.mark.parametrize(
    "kind",
    [
        Checks,
        ChecksAll,
        Inits,
        Starts,
        Prints,
        PrintsBelow,
        Looks,
        Holds,
        list[Holds],
        Computes,
        Makes,
        Posts,
        Compares,
        Loud,
        Guesses,
        Pair,
        Annotated[int, AfterValidator(lambda value: value)],
        pydantic.HttpUrl,
        Annotated[
            Annotated[Cat, pydantic.Tag("cat")] | Annotated[Dog, pydantic.Tag("dog")], pydantic.Discriminator(tag)
        ],
    ],
)
def test_classes_that_run_code_of_their_own(kind: Any):
    assert has_own_code(pydantic.TypeAdapter(kind).core_schema)
