"""Formats of the internet: mail addresses, host names, URIs. Contents of JSON strings, all ASCII."""

from __future__ import annotations

from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.notation import Notation
from lmc.grammar.schema.strings.addresses import ipv4, ipv6

_ALPHANUMERIC = "A-Za-z0-9"
_UNRESERVED = _ALPHANUMERIC + r"._~\-"
_SUB_DELIMITERS = "!$&'()*+,;="


def email(n: Notation) -> Node:
    """RFC 5321 `Mailbox` with a `Dot-string` before the @ and a name of two labels or more behind it.

    The last label is none of those that are reserved and so have no mail (RFC 6761, 6762, 7686). Each of the three ways
    to write the local part keeps to its 64 characters; the whole has at most 246 of 254.
    """
    atom = n.some(_ALPHANUMERIC + "!#$%&'*+/=?^_`{|}~-")
    dot = n.text(".")
    local = n.either(
        n.times(atom, 1, 64),
        n.sequence(n.times(atom, 1, 31), dot, n.times(atom, 1, 32)),
        n.sequence(n.times(atom, 1, 15), n.times(n.sequence(dot, n.times(atom, 1, 15)), 2, 3)),
    )
    top = _letters_but(n, ("arpa", "invalid", "local", "localhost", "onion", "test"))
    return n.sequence(local, n.text("@"), _label(n, 63), n.times(n.sequence(dot, _label(n, 30)), 0, 3), dot, top)


def _letters_but(n: Notation, words: tuple[str, ...], prefix: str = "") -> Node:
    """Return the rest after ``prefix`` of 2 to 24 letters other than these words, in lower or upper case."""
    letter, count = "abcdefghijklmnopqrstuvwxyz", len(prefix)
    following = sorted({word[count] for word in words if word.startswith(prefix) and len(word) > count})
    others = "".join(each for each in letter if each not in following)
    rest = n.times(n.some("A-Za-z"), 0 if count else 1, 23 - count)
    parts = [n.sequence(n.some(others + others.upper()), rest)]
    parts += [n.sequence(n.some(each + each.upper()), _letters_but(n, words, prefix + each)) for each in following]
    if count > 1 and prefix not in words:
        parts.append(n.nothing)
    return n.either(*parts)


def hostname(n: Notation) -> Node:
    """RFC 1123: up to 6 labels, the first of at most 63 characters, the others of 30, so 218 of 253 in all."""
    return n.sequence(_label(n, 63), n.times(n.sequence(n.text("."), _label(n, 30)), 0, 5))


def _label(n: Notation, longest: int) -> Node:
    """Letters and digits, with single hyphens between them: two in a row are reserved (RFC 5890)."""
    letter = n.some(_ALPHANUMERIC)
    more = n.either(letter, n.sequence(n.text("-"), letter))
    return n.either(n.times(letter, 1, longest), n.sequence(letter, n.times(more, 0, (longest - 1) // 2)))


def uri(n: Notation) -> Node:
    """RFC 3986 `URI`. After ``//`` comes a host name or an IP address, no user.

    As browsers have it (the URL standard of WHATWG), `file` has three slashes and no host, other schemes of the web a
    host.
    """
    return n.either(
        uri_with_host(n),
        n.sequence(
            n.either(
                n.sequence(n.text("file:///"), n.maybe(_relative(n, ":"))),
                n.sequence(_scheme_but(n, _OF_THE_WEB), n.maybe(n.text("/")), _relative(n, ":")),
            ),
            _query(n),
        ),
    )


def uri_with_host(n: Notation) -> Node:
    """The same with ``//`` and what follows it."""
    return n.sequence(_scheme_but(n, ("file",)), n.text("//"), _authority(n), _path(n), _query(n))


_OF_THE_WEB = ("file", "ftp", "http", "https", "ws", "wss")


def _scheme_but(n: Notation, words: tuple[str, ...], prefix: str = "") -> Node:
    """Return the rest after ``prefix`` of a scheme, with its colon, other than these words, in lower or upper case."""
    following = sorted({word[len(prefix)] for word in words if word.startswith(prefix) and word != prefix})
    letters = "".join(each for each in "abcdefghijklmnopqrstuvwxyz" if each not in following)
    others = letters + letters.upper() + ("0-9+.-" if prefix else "")
    rest = n.sequence(n.times(n.some(_ALPHANUMERIC + "+.-"), 0, None), n.text(":"))
    parts = [n.sequence(n.some(others), rest)]
    parts += [n.sequence(n.some(each + each.upper()), _scheme_but(n, words, prefix + each)) for each in following]
    if prefix and prefix not in words:
        parts.append(n.text(":"))
    return n.either(*parts)


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
