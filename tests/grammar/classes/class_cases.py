"""Types of pydantic's that have a schema."""

import collections
import dataclasses
import datetime
import enum
import fractions
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

UTC = datetime.UTC


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"
    PAIR = (1, 2)


class Point(BaseModel):
    x: int
    y: int = 0


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    x: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    names: set[str]


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    when: datetime.date
    took: datetime.timedelta
    key: uuid.UUID
    price: Decimal
    data: bytes
    ids: set[int]
    pair: tuple[int, str]
    colour: Colour
    counts: dict[int, bool]


class Base64Data(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    data: bytes
    few: Annotated[bytes, Field(min_length=1, max_length=4)]


class HexData(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    data: Annotated[bytes, Field(min_length=1, max_length=4)]


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_min_length=2, str_max_length=5)
    name: str
    counts: dict[str, int]


class Named(BaseModel):
    first: int = Field(alias="First")
    second: int = Field(validation_alias=pydantic.AliasChoices("Second", "other", pydantic.AliasPath("a", 0)))


class Writing(BaseModel):
    """Its schema is asked for as that of what it writes, but what is generated is read."""

    model_config = ConfigDict(json_schema_mode_override="serialization")
    price: Decimal
    text: pydantic.Json[list[int]]


Item = TypeVar("Item")


class Box(BaseModel, Generic[Item]):
    held: Item


@dataclasses.dataclass
class Line:
    start: Point
    tags: frozenset[str] = dataclasses.field(default_factory=frozenset)


class Movie(TypedDict):
    title: str
    years: NotRequired[set[int]]


class Pair(NamedTuple):
    left: Decimal
    right: frozenset[int] = frozenset()


def bounded(kind: Any, **constraints: Any) -> Any:
    return Annotated[kind, Field(**constraints)]


_DAY, NOON = datetime.date, datetime.time(12, 30, 15)
_MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 250, tzinfo=UTC).replace(tzinfo=None)
AWARE = _MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
_HOURS = datetime.timedelta(hours=1)

ACCEPTED: dict[str, Any] = {
    "set": set[int],
    "frozenset": frozenset[float],
    "set of at least one": bounded(set[str], min_length=1, max_length=3),
    "set of at least two out of few": bounded(set[Literal["a", "b", "c"]], min_length=2),
    "set of at least two small numbers": bounded(set[Annotated[int, Field(ge=1, le=20)]], min_length=2),
    "set of tuples": set[tuple[int, frozenset[int]]],
    "set of frozen models": set[Frozen],
    "set of anything": set[Any],
    "set within": Box[list[set[datetime.date]]],
    "Decimal": Decimal,
    "Decimal with places": bounded(Decimal, max_digits=6, decimal_places=2),
    "Decimal with digits": bounded(Decimal, max_digits=4),
    "Decimal with more places than digits": bounded(Decimal, max_digits=2, decimal_places=4),
    "Decimal with many digits": bounded(Decimal, max_digits=40, decimal_places=20),
    "Decimal without places": bounded(Decimal, decimal_places=0, ge=-5),
    "Decimal between": bounded(Decimal, gt=Decimal("-1.5"), lt=Decimal("100.123456789012345678901")),
    "Decimal in steps": bounded(Decimal, multiple_of=Decimal("0.05")),
    "Decimal in large steps": bounded(Decimal, multiple_of=5, decimal_places=1, max_digits=5),
    "float in steps": bounded(float, multiple_of=0.01),
    "float in tenths": bounded(float, multiple_of=0.1, ge=-3, le=10**9),
    "float in halves": bounded(float, multiple_of=2.5),
    "int in steps": pydantic.conint(multiple_of=360, ge=-5),
    "finite float": pydantic.FiniteFloat,
    "Fraction": fractions.Fraction,
    "Fraction between": bounded(fractions.Fraction, ge=0, lt=fractions.Fraction(1, 3)),
    "complex": complex,
    "ByteSize": pydantic.ByteSize,
    "HttpUrl": pydantic.HttpUrl,
    "AnyUrl": pydantic.AnyUrl,
    "FileUrl": pydantic.FileUrl,
    "WebsocketUrl": pydantic.WebsocketUrl,
    "PostgresDsn": pydantic.PostgresDsn,
    "RedisDsn": pydantic.RedisDsn,
    "URL of a scheme": Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(max_length=30, allowed_schemes=["s3"])],
    "URL with a host": Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(host_required=True)],
    "date": datetime.date,
    "date from": bounded(datetime.date, ge=_DAY(2020, 1, 31)),
    "date between": bounded(datetime.date, gt=_DAY(2019, 12, 31), lt=_DAY(2020, 3, 1)),
    "PastDate": pydantic.PastDate,
    "datetime": datetime.datetime,
    "NaiveDatetime": pydantic.NaiveDatetime,
    "AwareDatetime": pydantic.AwareDatetime,
    "PastDatetime": pydantic.PastDatetime,
    "datetime from": bounded(datetime.datetime, ge=_MOMENT, lt=_MOMENT + _HOURS),
    "datetime up to": bounded(datetime.datetime, gt=_MOMENT, le=_MOMENT + _HOURS),
    "datetime of UTC from": bounded(datetime.datetime, gt=AWARE, le=AWARE + _HOURS),
    "naive datetime up to": bounded(pydantic.NaiveDatetime, lt=_MOMENT.replace(microsecond=0)),
    "aware datetime up to": bounded(pydantic.AwareDatetime, lt=AWARE),
    "datetime between mixed bounds": bounded(datetime.datetime, ge=_MOMENT, le=AWARE + 24 * _HOURS),
    "time": datetime.time,
    "time up to": bounded(datetime.time, le=NOON),
    "time of UTC": bounded(datetime.time, ge=NOON.replace(tzinfo=UTC), lt=datetime.time(13, tzinfo=UTC)),
    "timedelta": datetime.timedelta,
    "timedelta between": bounded(datetime.timedelta, ge=-_HOURS, le=30 * _HOURS),
    "timedelta from": bounded(datetime.timedelta, gt=datetime.timedelta(days=10)),
    "short timedelta": bounded(datetime.timedelta, gt=datetime.timedelta(seconds=1), lt=datetime.timedelta(seconds=9)),
    "keys that are whole": bounded(dict[int, str], max_length=2),
    "keys between": dict[Annotated[int, Field(ge=1, le=12)], int],
    "keys that are numbers": bounded(dict[float, int], min_length=1),
    "keys that are decimals": dict[Annotated[Decimal, Field(decimal_places=1)], int],
    "keys that are true or false": dict[bool, int],
    "keys that are dates": dict[datetime.date, int],
    "keys of an enumeration": dict[Colour, int],
    "keys of an enumeration of numbers": bounded(dict[Level, int], min_length=1),
    "keys of a mixed enumeration": dict[Mixed, int],
    "keys of a Literal": dict[Literal["a", 1], int],
    "keys of a union": dict[int | Literal["x"], int],
    "keys that are identifiers": dict[uuid.UUID, int],
    "keys with a pattern": dict[pydantic.constr(pattern=r"^k\d$", strip_whitespace=True), int],
    "two keys": bounded(dict[str, int], min_length=2, max_length=3),
    "two keys that are whole": bounded(dict[int, int], min_length=2),
    "two keys of a few": bounded(dict[Colour, int], min_length=2),
    "Mapping": Mapping[int, set[int]],
    "defaultdict": collections.defaultdict[int, list[int]],
    "OrderedDict": collections.OrderedDict[int, str],
    "Counter": collections.Counter[int],
    "Base64Str": pydantic.Base64Str,
    "Base64Bytes": pydantic.Base64Bytes,
    "Base64UrlStr": pydantic.Base64UrlStr,
    "Base64UrlBytes": pydantic.Base64UrlBytes,
    "Base64Str of some length": bounded(pydantic.Base64Str, min_length=2, max_length=4),
    "Base64Bytes of some length": bounded(pydantic.Base64Bytes, min_length=5, max_length=7),
    "bytes": bytes,
    "bytes of some length": bounded(bytes, min_length=2, max_length=3),
    "bytes as base64": Base64Data,
    "bytes as digits": HexData,
    "SecretStr": bounded(pydantic.SecretStr, min_length=3),
    "SecretBytes": bounded(pydantic.SecretBytes, min_length=1, max_length=3),
    "Secret": pydantic.Secret[Decimal],
    "Json": pydantic.Json[Point],
    "Json of Json": pydantic.Json[list[pydantic.Json[set[int]]]],
    "IPv4Network": ipaddress.IPv4Network,
    "IPv6Network": ipaddress.IPv6Network,
    "IPv6Interface": ipaddress.IPv6Interface,
    "IPvAnyAddress": pydantic.IPvAnyAddress,
    "IPvAnyNetwork": pydantic.IPvAnyNetwork,
    "UUID": uuid.UUID,
    "UUID4": pydantic.UUID4,
    "UUID7": pydantic.UUID7,
    "ZoneInfo": zoneinfo.ZoneInfo,
    "Path": pathlib.Path,
    "an enumeration": Mixed,
    "a Literal": Literal["a", 1, True, None],
    "a Literal of members": Literal[Word.YES, Level.LOW, Colour.RED],
    "stripped": pydantic.constr(strip_whitespace=True, min_length=2, max_length=3),
    "stripped with a pattern": pydantic.constr(strip_whitespace=True, pattern=r"^[^a]+$"),
    "upper": pydantic.constr(to_upper=True, max_length=2, pattern="^[a-zß]*$"),
    "a pattern of no words": bounded(str, pattern=r"^\W+$"),
    "a pattern of no digits": bounded(str, pattern=r"^[^\d]+$"),
    "a pattern of no k": bounded(str, pattern=re.compile(r"^[^k]+$", re.IGNORECASE)),
    "a pattern of spaces": bounded(str, pattern=r"^\s\S$"),
    "a compiled pattern": bounded(str, pattern=re.compile(r"^a.b\d$", re.IGNORECASE)),
    "hashable": Hashable,
    "sequence": Sequence[set[int]],
    "a bound on a union": bounded(int | str, ge=1),
    "a bound beside None": bounded(int | None, ge=1),
    "a choice left out": int | Callable[[], int] | pydantic.FilePath,
    "fail fast": Annotated[list[set[int]], pydantic.FailFast()],
    "strict": Strict,
    "stripped by its class": Stripped,
    "aliases": Named,
    "discriminated": Owner,
    "generic": Box[set[Decimal]],
    "dataclass": Line,
    "TypedDict": Movie,
    "NamedTuple": Pair,
    "written": Writing,
}
