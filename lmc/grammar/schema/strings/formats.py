"""Automata of `format`, as contents of JSON strings between the quotes.

Every output is valid by the format's own document and by the validators that parse it (pydantic, Python's ``datetime``,
``ipaddress`` and ``uuid``); where these allow more spellings than one needs, not all of them are produced; see the
table in README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.notation import Notation
from lmc.grammar.schema.strings import addresses, internet
from lmc.grammar.schema.strings.alphabet import JSON, shared

_Make = Callable[[Notation], Node]


@cache
def format_node(name: str) -> Node:
    """The contents of strings of a format, one of ``KNOWN - UNRESTRICTED``; made once for all constraints."""
    arena = Arena()
    return shared(arena, _FORMATS[name](Notation(arena)))


def _date(n: Notation) -> Node:
    """RFC 3339 `full-date`, every day that there is from 0001-01-01 on."""
    digit = n.digit
    year = n.either(
        n.sequence(n.some("1-9"), n.digits(3)),
        n.sequence(n.text("0"), n.some("1-9"), n.digits(2)),
        n.sequence(n.text("00"), n.some("1-9"), digit),
        n.sequence(n.text("000"), n.some("1-9")),
    )
    to_28 = n.either(
        n.sequence(n.text("0"), n.some("1-9")), n.sequence(n.text("1"), digit), n.sequence(n.text("2"), n.some("0-8"))
    )
    to_30 = n.either(to_28, n.text("29"), n.text("30"))
    month_and_day = n.either(
        n.sequence(
            n.either(n.sequence(n.text("0"), n.some("13578")), n.sequence(n.text("1"), n.some("02"))),
            n.text("-"),
            n.either(to_30, n.text("31")),
        ),
        n.sequence(n.either(n.sequence(n.text("0"), n.some("469")), n.text("11")), n.text("-"), to_30),
        n.sequence(n.text("02-"), to_28),
    )
    fours = n.either(
        n.sequence(n.text("0"), n.some("48")),
        n.sequence(n.some("2468"), n.some("048")),
        n.sequence(n.some("13579"), n.some("26")),
    )
    leap = n.either(n.sequence(n.digits(2), fours), n.sequence(fours, n.text("00")))
    return n.either(n.sequence(year, n.text("-"), month_and_day), n.sequence(leap, n.text("-02-29")))


def _hours_and_minutes(n: Notation) -> Node:
    hours = n.either(n.sequence(n.some("01"), n.digit), n.sequence(n.text("2"), n.some("0-3")))
    return n.sequence(hours, n.text(":"), n.some("0-5"), n.digit)


def _local_time(n: Notation) -> Node:
    """RFC 3339 `partial-time` without leap seconds, with at most 6 digits of a second."""
    fraction = n.maybe(n.sequence(n.text("."), n.digits(1, 6)))
    return n.sequence(_hours_and_minutes(n), n.text(":"), n.some("0-5"), n.digit, fraction)


def _time(n: Notation) -> Node:
    """RFC 3339 `full-time`, with the same restrictions."""
    offset = n.either(n.text("Z"), n.sequence(n.some("+-"), _hours_and_minutes(n)))
    return n.sequence(_local_time(n), offset)


def _date_time(n: Notation) -> Node:
    return n.sequence(_date(n), n.text("T"), _time(n))


def _local_date_time(n: Notation) -> Node:
    return n.sequence(_date(n), n.text("T"), _local_time(n))


def _fraction(n: Notation) -> Node:
    """Return the texts of Python's ``fractions.Fraction``, with at most 18 digits above and below."""
    positive = n.sequence(n.some("1-9"), n.digits(0, 17))
    return n.either(n.text("0"), n.sequence(n.maybe(n.text("-")), positive, n.maybe(n.sequence(n.text("/"), positive))))


def _duration(n: Notation) -> Node:
    """RFC 3339, appendix A; at most 4 digits of years and 6 of anything else."""

    def units(names: str) -> Node:
        """Each unit may follow the one before it, and nothing else: `1Y2M3D`, but no `1Y3D`."""
        following = n.nothing
        starts: list[Node] = []
        for name in reversed(names):
            digits = n.digits(1, 4 if name == "Y" else 6)
            own = n.sequence(digits, n.text(name), following)
            following = n.maybe(own)
            starts.append(own)
        return n.either(*starts)

    clock = n.sequence(n.text("T"), units("HMS"))
    weeks = n.sequence(n.digits(1, 6), n.text("W"))
    return n.sequence(n.text("P"), n.either(n.sequence(units("YMD"), n.maybe(clock)), clock, weeks))


def _uuid(n: Notation, version: str = "0-9a-fA-F", variant: str = "0-9a-fA-F") -> Node:
    """RFC 9562; digits of either case."""
    hexadecimal, dash = n.some("0-9a-fA-F"), n.text("-")
    three = n.times(hexadecimal, 3, 3)
    return n.sequence(
        n.times(hexadecimal, 8, 8),
        dash,
        n.times(hexadecimal, 4, 4),
        dash,
        n.some(version),
        three,
        dash,
        n.some(variant),
        three,
        dash,
        n.times(hexadecimal, 12, 12),
    )


def _uuid_of(version: str) -> _Make:
    return lambda n: _uuid(n, version, "89abAB")


def _json_pointer(n: Notation) -> Node:
    """RFC 6901."""
    plain = JSON.encode(n.arena, ANY - CharSet.of("/~"))
    escape = n.sequence(n.text("~"), n.some("01"))
    return n.times(n.sequence(n.text("/"), n.times(n.either(plain, escape), 0, None)), 0, None)


def _relative_json_pointer(n: Notation) -> Node:
    up = n.either(n.text("0"), n.sequence(n.some("1-9"), n.digits(0, None)))
    return n.sequence(up, n.either(n.text("#"), _json_pointer(n)))


def _base64(last_two: str) -> _Make:
    """RFC 4648 with padding; the bits that are left over are 0, as decoders may ask (section 3.5)."""

    def make(n: Notation) -> Node:
        letter = n.some("A-Za-z0-9" + last_two)
        rest = n.either(
            n.nothing,
            n.sequence(letter, n.some("AQgw"), n.text("==")),
            n.sequence(letter, letter, n.some("AEIMQUYcgkosw048"), n.text("=")),
        )
        return n.sequence(n.times(n.times(letter, 4, 4), 0, None), rest)

    return make


def _regex(n: Notation) -> Node:
    """Regular expressions of ECMA-262 that Python takes, too, with groups that hold no group."""
    backslash = n.text(r"\\")
    times = n.maybe(n.either(n.some("*+?"), n.sequence(n.text("{"), n.some("1-9"), n.text("}"))))
    plain = n.some("A-Za-z0-9 _:;,@%=!'<>~&`.-")
    escape = n.sequence(backslash, n.either(n.some(r"dDwWsS.^$*+?()|/\[\]{}"), backslash))
    member = n.either(n.text("a-z"), n.text("A-Z"), n.text("0-9"), n.some("A-Za-z0-9 _:;,."))
    chosen = n.sequence(n.text("["), n.maybe(n.text("^")), n.times(member, 1, None), n.text("]"))
    boundary = n.sequence(backslash, n.some("bB"))

    def branches(part: Node) -> Node:
        branch = n.times(part, 1, None)
        return n.sequence(branch, n.times(n.sequence(n.text("|"), branch), 0, None))

    simple = n.either(n.sequence(n.either(plain, escape, chosen), times), boundary)
    group = n.sequence(n.text("("), n.maybe(n.text("?:")), branches(simple), n.text(")"), times)
    return n.sequence(n.maybe(n.text("^")), branches(n.either(simple, group)), n.maybe(n.text("$")))


_FORMATS: dict[str, _Make] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "local-time": _local_time,
    "local-date-time": _local_date_time,
    "duration": _duration,
    "uuid": _uuid,
    **{f"uuid{version}": _uuid_of(version) for version in "1345678"},
    "email": internet.email,
    "name-email": internet.email,
    "hostname": internet.hostname,
    "ipv4": addresses.ipv4,
    "ipv6": addresses.ipv6,
    "ipvanyaddress": addresses.ip,
    "ipv4network": addresses.ipv4_network,
    "ipv6network": addresses.ipv6_network,
    "ipvanynetwork": addresses.ip_network,
    "ipv4interface": addresses.ipv4_interface,
    "ipv6interface": addresses.ipv6_interface,
    "ipvanyinterface": addresses.ip_interface,
    "uri": internet.uri,
    "uri-reference": internet.uri_reference,
    "multi-host-uri": internet.uri_with_host,
    "fraction": _fraction,
    "regex": _regex,
    "json-pointer": _json_pointer,
    "relative-json-pointer": _relative_json_pointer,
    "byte": _base64("+/"),
    "base64": _base64("+/"),
    "base64url": _base64("_-"),
    # Of these, the ASCII ones are produced.
    "idn-email": internet.email,
    "idn-hostname": internet.hostname,
    "iri": internet.uri,
    "iri-reference": internet.uri_reference,
    "uri-template": internet.uri_reference,
}

UNRESTRICTED = frozenset({"binary", "decimal", "double", "float", "password", "path"})
"""Formats that any string meets: they describe its purpose."""
BOUNDS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)
}
"""Formats of numbers: the least and the greatest one."""
KNOWN = frozenset(_FORMATS) | UNRESTRICTED
"""Formats of strings. One that is neither here nor in ``BOUNDS`` is unknown."""
