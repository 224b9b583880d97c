"""Formats of the internet: mail addresses, host names, IP addresses, URIs. Contents of JSON strings, all ASCII."""

from __future__ import annotations

from lmc.grammar.nodes import Node
from lmc.grammar.schema.notation import Notation

_ALPHANUMERIC = "A-Za-z0-9"
_UNRESERVED = _ALPHANUMERIC + r"._~\-"
_SUB_DELIMITERS = "!$&'()*+,;="


def email(n: Notation) -> Node:
    """RFC 5321 `Mailbox` with a `Dot-string` before the @ and a name of two labels or more behind it.

    Each of the three ways to write the local part keeps to its 64 characters; the whole has at most 246 of 254.
    """
    atom = n.some(_ALPHANUMERIC + "!#$%&'*+/=?^_`{|}~-")
    dot = n.text(".")
    local = n.either(
        n.times(atom, 1, 64),
        n.sequence(n.times(atom, 1, 31), dot, n.times(atom, 1, 32)),
        n.sequence(n.times(atom, 1, 15), n.times(n.sequence(dot, n.times(atom, 1, 15)), 2, 3)),
    )
    top = n.times(n.some("A-Za-z"), 2, 24)
    return n.sequence(local, n.text("@"), _label(n, 63), n.times(n.sequence(dot, _label(n, 30)), 0, 3), dot, top)


def hostname(n: Notation) -> Node:
    """RFC 1123: up to 6 labels, the first of at most 63 characters, the others of 30, so 218 of 253 in all."""
    return n.sequence(_label(n, 63), n.times(n.sequence(n.text("."), _label(n, 30)), 0, 5))


def _label(n: Notation, longest: int) -> Node:
    """Letters and digits, with single hyphens between them: two in a row are reserved (RFC 5890)."""
    letter = n.some(_ALPHANUMERIC)
    more = n.either(letter, n.sequence(n.text("-"), letter))
    return n.either(n.times(letter, 1, longest), n.sequence(letter, n.times(more, 0, (longest - 1) // 2)))


def ipv4(n: Notation) -> Node:
    """RFC 2673 `dotted-quad`, without leading zeros."""
    digit = n.digit
    octet = n.either(
        digit,
        n.sequence(n.some("1-9"), digit),
        n.sequence(n.text("1"), digit, digit),
        n.sequence(n.text("2"), n.some("0-4"), digit),
        n.sequence(n.text("25"), n.some("0-5")),
    )
    return n.sequence(octet, n.times(n.sequence(n.text("."), octet), 3, 3))


def ipv6(n: Notation) -> Node:
    """RFC 4291, section 2.2, in the form of RFC 3986 `IPv6address`; no zone."""
    group = n.times(n.some("0-9a-fA-F"), 1, 4)
    colon = n.text(":")
    before, behind = n.sequence(group, colon), n.sequence(colon, group)
    last = n.either(n.sequence(group, colon, group), ipv4(n))
    ways = [n.sequence(n.times(before, 6, 6), last)]
    for count in range(6):
        start = n.maybe(n.sequence(group, n.times(behind, 0, count - 1))) if count else n.nothing
        ways.append(n.sequence(start, n.text("::"), n.times(before, 5 - count, 5 - count), last))
    for count, end in ((6, group), (7, n.nothing)):
        ways.append(n.sequence(n.maybe(n.sequence(group, n.times(behind, 0, count - 1))), n.text("::"), end))
    return n.either(*ways)


def ip(n: Notation) -> Node:
    """Either kind of address."""
    return n.either(ipv4(n), ipv6(n))


def uri(n: Notation) -> Node:
    """RFC 3986 `URI`. After ``//`` comes a host name or an IP address, no user; only `file` may leave it out."""
    scheme = n.sequence(n.some("A-Za-z"), n.times(n.some(_ALPHANUMERIC + "+.-"), 0, None), n.text(":"))
    return n.sequence(
        n.either(
            n.sequence(scheme, n.text("//"), _authority(n), _path(n)),
            n.sequence(n.text("file:///"), n.maybe(_relative(n, ":"))),
            n.sequence(scheme, n.maybe(n.text("/")), _relative(n, ":")),
        ),
        _query(n),
    )


def uri_reference(n: Notation) -> Node:
    """RFC 3986 `URI-reference`, with the same restrictions."""
    relative = n.either(
        n.nothing,
        n.sequence(n.text("//"), _authority(n), _path(n)),
        n.sequence(n.text("/"), n.maybe(_relative(n, ":"))),
        _relative(n, ""),
    )
    return n.either(uri(n), n.sequence(relative, _query(n)))


def _authority(n: Notation) -> Node:
    letter = n.some(_ALPHANUMERIC)
    more = n.times(n.either(letter, n.sequence(n.text("-"), letter)), 0, None)
    last = n.sequence(n.some("A-Za-z"), more)
    name = n.sequence(n.times(n.sequence(letter, more, n.text(".")), 0, None), last)
    digit = n.digit
    port = n.either(
        n.sequence(n.some("1-9"), n.digits(0, 3)),
        n.sequence(n.some("1-5"), n.digits(4)),
        n.sequence(n.text("6"), n.some("0-4"), n.digits(3)),
        n.sequence(n.text("65"), n.some("0-4"), digit, digit),
        n.sequence(n.text("655"), n.some("0-2"), digit),
        n.sequence(n.text("6553"), n.some("0-5")),
    )
    host = n.either(name, ipv4(n), n.sequence(n.text("["), ipv6(n), n.text("]")))
    return n.sequence(host, n.maybe(n.sequence(n.text(":"), port)))


def _character(n: Notation, others: str) -> Node:
    hexadecimal = n.some("0-9a-fA-F")
    plain = n.some(_UNRESERVED + _SUB_DELIMITERS + "@" + others)
    return n.either(plain, n.sequence(n.text("%"), hexadecimal, hexadecimal))


def _path(n: Notation) -> Node:
    return n.times(n.sequence(n.text("/"), n.times(_character(n, ":"), 0, None)), 0, None)


def _relative(n: Notation, others: str) -> Node:
    """A path that begins with a segment that is not empty."""
    return n.sequence(n.times(_character(n, others), 1, None), _path(n))


def _query(n: Notation) -> Node:
    characters = n.times(_character(n, ":/?"), 0, None)
    return n.sequence(n.maybe(n.sequence(n.text("?"), characters)), n.maybe(n.sequence(n.text("#"), characters)))
