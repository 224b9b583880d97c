"""The languages of `format`, as regular expressions for the contents of JSON strings.

Every output is valid by the format's own document and by the validators that parse it (pydantic, Python's ``datetime``,
``ipaddress`` and ``uuid``); where these allow more spellings than one needs, not all of them are produced:
`docs/json-schema.md` has a table.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import cache

from lmc.grammar import regex
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.alphabet import JSON, shared


@cache
def format_node(name: str) -> Node:
    """The contents of strings of a format, one of ``KNOWN - UNRESTRICTED``; made once for all constraints."""
    arena = Arena()
    return shared(arena, regex.to_node(_FORMATS[name](), arena, JSON))


def _either(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_HEX = "[0-9a-fA-F]"

# Dates and times: RFC 3339, from year 1 on, without leap seconds and with at most 6 digits of a second.
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_TO_28 = "0[1-9]|1[0-9]|2[0-8]"
_TO_30 = f"{_TO_28}|29|30"
_FOURS = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = f"(?:[0-9]{{2}}{_FOURS}|{_FOURS}00)"
_MONTH_AND_DAY = f"(?:(?:0[13578]|1[02])-(?:{_TO_30}|31)|(?:0[469]|11)-(?:{_TO_30})|02-(?:{_TO_28}))"
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOURS_AND_MINUTES = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_LOCAL_TIME = rf"{_HOURS_AND_MINUTES}:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_TIME = f"{_LOCAL_TIME}(?:Z|[+-]{_HOURS_AND_MINUTES})"


def _duration() -> str:
    """RFC 3339, appendix A; at most 4 digits of years and 6 of anything else."""
    clock = f"T{_units('HMS')}"
    return f"P(?:{_units('YMD')}(?:{clock})?|{clock}|[0-9]{{1,6}}W)"


def _units(names: str) -> str:
    """Each unit may follow the one before it, and nothing else: `1Y2M3D`, but no `1Y3D`."""
    following = ""
    starts: list[str] = []
    for name in reversed(names):
        starts.append(f"[0-9]{{1,{4 if name == 'Y' else 6}}}{name}{following}")
        following = f"(?:{starts[-1]})?"
    return _either(*starts)


def _uuid(version: str = _HEX, variant: str = _HEX) -> str:
    """RFC 9562; digits of either case."""
    return f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-{variant}{_HEX}{{3}}-{_HEX}{{12}}"


_POINTER = "(?:/(?:[^/~]|~[01])*)*"  # RFC 6901


def _base64(last_two: str) -> str:
    """RFC 4648 with padding; the bits that are left over are 0, as decoders may ask (section 3.5)."""
    letter = f"[A-Za-z0-9{last_two}]"
    return f"(?:{letter}{{4}})*(?:|{letter}[AQgw]==|{letter}{letter}[AEIMQUYcgkosw048]=)"


def _regex() -> str:
    """Regular expressions of ECMA-262 that Python takes, too, with groups that hold no group."""
    times = r"(?:[*+?]|\{[1-9]\})?"
    escape = r"\\(?:[dDwWsS.^$*+?()|/\[\]{}]|\\)"
    chosen = r"\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9 _:;,.])+\]"
    simple = rf"(?:[A-Za-z0-9 _:;,@%=!'<>~&`.-]|{escape}|{chosen}){times}|\\[bB]"

    def branches(part: str) -> str:
        return rf"(?:{part})+(?:\|(?:{part})+)*"

    group = rf"\((?:\?:)?{branches(simple)}\){times}"
    return rf"\^?{branches(f'{simple}|{group}')}\$?"


# IP addresses, networks and interfaces, as Python's ``ipaddress`` takes them.


_OCTET = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"


def _ipv4() -> str:
    """RFC 2673 `dotted-quad`, without leading zeros."""
    return rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6() -> str:
    """RFC 4291, section 2.2, in the form of RFC 3986 `IPv6address`; no zone."""
    group = f"{_HEX}{{1,4}}"

    def start(count: int) -> str:
        return f"(?:{group}(?::{group}){{0,{count - 1}}})?" if count else ""

    last = _either(f"{group}:{group}", _ipv4())
    ways = [f"(?:{group}:){{6}}{last}"]
    ways += [f"{start(count)}::(?:{group}:){{{5 - count}}}{last}" for count in range(6)]
    return _either(*ways, f"{start(6)}::{group}", f"{start(7)}::")


def _ipv4_network() -> str:
    """An address and the length of its prefix, behind which all bits are 0. Without the length: one address."""
    rest = ""
    for octet in (3, 2, 1, 0):
        zeros = r"\.0" * (3 - octet)
        ways = [f"0{zeros}/{8 * octet}", rf"{_OCTET}\.{rest}" if rest else f"{_OCTET}(?:/32)?"]
        for bits in range(1, 8):
            values = _either(*map(str, range(0, 256, 1 << (8 - bits))))
            ways.append(f"{values}{zeros}/{8 * octet + bits}")
        rest = _either(*ways)
    return rest


def _ipv6_network() -> str:
    """The same, the zeros as `::`; lengths that are a multiple of 4 only."""
    rest = "::/112"
    for group in range(6, -1, -1):
        ways = [f"{_HEX}{{{count}}}{'0' * (4 - count)}::/{16 * group + 4 * count}" for count in (1, 2, 3)]
        rest = f"(?:::/{16 * group}|{':' if group else ''}{_either(f'{_HEX}{{1,4}}{rest}', *ways)})"
    return _either(f"{_ipv6()}(?:/128)?", rest)


def _ipv4_interface() -> str:
    """An address, with or without the length of the network's prefix."""
    return f"{_ipv4()}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?"


def _ipv6_interface() -> str:
    return f"{_ipv6()}(?:/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?"


# The internet: mail addresses, host names, URIs; all ASCII.


def _other_than(
    words: tuple[str, ...],
    rest: Callable[[int], str],
    *,
    more: str = "",
    end: str = "",
    least: int = 1,
    prefix: str = "",
) -> str:
    """The pattern of what follows a prefix, where letters other than these words do, in lower or upper case.

    Args:
        words: in lower case.
        rest: the pattern behind so many letters of a word and a letter that is in none.
        more: other characters that may stand where a letter does, but for the first one.
        end: what follows the letters.
        least: how many letters there are at least.
        prefix: the first letters of a word.
    """
    following = sorted({word[len(prefix)] for word in words if word.startswith(prefix) and word != prefix})
    letters = "".join(letter for letter in string.ascii_lowercase if letter not in following)
    parts = [f"[{letters}{letters.upper()}{more if prefix else ''}]{rest(len(prefix))}"]
    for letter in following:
        longer = _other_than(words, rest, more=more, end=end, least=least, prefix=prefix + letter)
        parts.append(f"[{letter}{letter.upper()}]{longer}")
    if len(prefix) >= least and prefix not in words:
        parts.append(end)
    return _either(*parts)


def _label(longest: int) -> str:
    """Letters and digits, with single hyphens between them: two in a row are reserved (RFC 5890)."""
    letter = "[A-Za-z0-9]"
    return f"(?:{letter}{{1,{longest}}}|{letter}(?:{letter}|-{letter}){{0,{(longest - 1) // 2}}})"


def _email() -> str:
    """RFC 5321 `Mailbox` with a `Dot-string` before the @ and a name of two labels or more behind it.

    The last label is none of those that are reserved and so have no mail (RFC 6761, 6762, 7686). Each of the three ways
    to write the local part keeps to its 64 characters; the whole has at most 246 of 254.
    """
    atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
    local = rf"(?:{atom}{{1,64}}|{atom}{{1,31}}\.{atom}{{1,32}}|{atom}{{1,15}}(?:\.{atom}{{1,15}}){{2,3}})"
    reserved = ("arpa", "invalid", "local", "localhost", "onion", "test")
    top = _other_than(reserved, lambda count: f"[A-Za-z]{{{0 if count else 1},{23 - count}}}", least=2)
    return rf"{local}@{_label(63)}(?:\.{_label(30)}){{0,3}}\.{top}"


def _hostname() -> str:
    """RFC 1123: up to 6 labels, the first of at most 63 characters, the others of 30, so 218 of 253 in all."""
    return rf"{_label(63)}(?:\.{_label(30)}){{0,5}}"


def _character(others: str) -> str:
    return rf"(?:[A-Za-z0-9._~\-!$&'()*+,;=@{others}]|%{_HEX}{_HEX})"


_PATH = f"(?:/{_character(':')}*)*"
_QUERY = rf"(?:\?{_character(':/?')}*)?(?:#{_character(':/?')}*)?"


def _relative(others: str) -> str:
    """A path that begins with a segment that is not empty."""
    return f"{_character(others)}+{_PATH}"


def _authority() -> str:
    more = "(?:[A-Za-z0-9]|-[A-Za-z0-9])*"
    port = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9][0-9]|655[0-2][0-9]|6553[0-5]"
    host = _either(rf"(?:[A-Za-z0-9]{more}\.)*[A-Za-z]{more}", _ipv4(), rf"\[{_ipv6()}\]")
    return f"{host}(?::(?:{port}))?"


def _scheme_but(*words: str) -> str:
    """A scheme other than these words, with its colon."""
    return _other_than(words, lambda _: "[A-Za-z0-9+.-]*:", more="0-9+.-", end=":")


def _uri_with_host() -> str:
    return f"{_scheme_but('file')}//{_authority()}{_PATH}{_QUERY}"


def _uri() -> str:
    """RFC 3986 `URI`. After ``//`` comes a host name or an IP address, no user.

    As browsers have it (the URL standard of WHATWG), `file` has three slashes and no host, other schemes of the web a
    host.
    """
    other = f"{_scheme_but('file', 'ftp', 'http', 'https', 'ws', 'wss')}/?{_relative(':')}"
    return _either(_uri_with_host(), f"(?:file:///(?:{_relative(':')})?|{other}){_QUERY}")


def _uri_reference() -> str:
    """RFC 3986 `URI-reference`, with the same restrictions."""
    relative = _either("", f"//{_authority()}{_PATH}", f"/(?:{_relative(':')})?", _relative(""))
    return _either(_uri(), f"{relative}{_QUERY}")


_FORMATS: dict[str, Callable[[], str]] = {
    "date": lambda: _DATE,
    "time": lambda: _TIME,
    "date-time": lambda: f"{_DATE}T{_TIME}",
    "local-time": lambda: _LOCAL_TIME,
    "local-date-time": lambda: f"{_DATE}T{_LOCAL_TIME}",
    "duration": _duration,
    "uuid": _uuid,
    **{f"uuid{version}": lambda version=version: _uuid(version, "[89abAB]") for version in "1345678"},
    "email": _email,
    "name-email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "ipvanyaddress": lambda: _either(_ipv4(), _ipv6()),
    "ipv4network": _ipv4_network,
    "ipv6network": _ipv6_network,
    "ipvanynetwork": lambda: _either(_ipv4_network(), _ipv6_network()),
    "ipv4interface": _ipv4_interface,
    "ipv6interface": _ipv6_interface,
    "ipvanyinterface": lambda: _either(_ipv4_interface(), _ipv6_interface()),
    "uri": _uri,
    "uri-reference": _uri_reference,
    "multi-host-uri": _uri_with_host,
    # Python's ``fractions.Fraction``, with at most 18 digits above and below.
    "fraction": lambda: "0|-?[1-9][0-9]{0,17}(?:/[1-9][0-9]{0,17})?",
    "regex": _regex,
    "json-pointer": lambda: _POINTER,
    "relative-json-pointer": lambda: f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
    "byte": lambda: _base64("+/"),
    "base64": lambda: _base64("+/"),
    "base64url": lambda: _base64("_-"),
    # Of these, the ASCII ones are produced.
    "idn-email": _email,
    "idn-hostname": _hostname,
    "iri": _uri,
    "iri-reference": _uri_reference,
    "uri-template": _uri_reference,
}

UNRESTRICTED = frozenset({"binary", "decimal", "double", "float", "password", "path"})
"""Formats that any string meets: they describe its purpose."""
BOUNDS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)
}
"""Formats of numbers: the least and the greatest one."""
KNOWN = frozenset(_FORMATS) | UNRESTRICTED
"""Formats of strings. One that is neither here nor in ``BOUNDS`` is unknown."""
