"""IP addresses, networks and interfaces, as Python's ``ipaddress`` takes them. Contents of JSON strings, all ASCII."""

from __future__ import annotations

from collections.abc import Callable

from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.notation import Notation


def ipv4(n: Notation) -> Node:
    """RFC 2673 `dotted-quad`, without leading zeros."""
    octet = _up_to(n, 255)
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


def ipv4_interface(n: Notation) -> Node:
    """An address, with or without the length of the network's prefix."""
    return n.sequence(ipv4(n), n.maybe(_length(n, 32)))


def ipv6_interface(n: Notation) -> Node:
    """An address, with or without the length of the network's prefix."""
    return n.sequence(ipv6(n), n.maybe(_length(n, 128)))


def ipv4_network(n: Notation) -> Node:
    """An address and the length of its prefix, behind which all bits are 0. Without the length: one address."""
    dot, zero = n.text("."), n.text("0")
    octet = _up_to(n, 255)
    found = [ipv4(n)]
    for length in range(33):
        free, bits = divmod(length, 8)
        octets = [octet] * free
        if bits:
            octets.append(n.either(*(n.text(str(value)) for value in range(0, 256, 1 << (8 - bits)))))
        octets += [zero] * (4 - len(octets))
        first, *others = octets
        rest = [part for each in others for part in (dot, each)]
        found.append(n.sequence(first, *rest, n.text(f"/{length}")))
    return n.either(*found)


def ipv6_network(n: Notation) -> Node:
    """The same, the zeros as `::`; lengths that are a multiple of 4 only."""
    digit, colon = n.some("0-9a-fA-F"), n.text(":")
    group = n.times(digit, 1, 4)
    found = [n.sequence(ipv6(n), n.maybe(n.text("/128"))), n.text("::/0")]
    for length in range(4, 113, 4):
        free, digits = divmod(length, 16)
        groups = [group] * free
        if digits:
            groups.append(n.sequence(n.times(digit, digits // 4, digits // 4), n.text("0" * (4 - digits // 4))))
        first, *others = groups
        rest = [part for each in others for part in (colon, each)]
        found.append(n.sequence(first, *rest, n.text(f"::/{length}")))
    return n.either(*found)


def _either(*kinds: Callable[[Notation], Node]) -> Callable[[Notation], Node]:
    return lambda n: n.either(*(kind(n) for kind in kinds))


ip = _either(ipv4, ipv6)
ip_interface = _either(ipv4_interface, ipv6_interface)
ip_network = _either(ipv4_network, ipv6_network)


def _length(n: Notation, most: int) -> Node:
    return n.sequence(n.text("/"), _up_to(n, most))


def _up_to(n: Notation, most: int) -> Node:
    """A number without leading zeros."""
    return n.either(*(n.text(str(number)) for number in range(most + 1)))
