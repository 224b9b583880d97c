"""Formats: what they take, what they leave out, and that other parsers take whatever comes out."""

import base64
import calendar
import ipaddress
import json
import random
import re
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import urlsplit

import pydantic
import pydantic_core
import pytest

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.schema.formats import KNOWN, UNRESTRICTED, format_node
from tests.grammar.schema.sampling import accepts, automaton_of, compact, draw, is_valid

# Texts between bars: those that are outputs, and those that are none.
CASES = {
    "date": (
        "2024-02-29|2000-02-29|0001-01-01|9999-12-31|0400-02-29|2023-06-30",
        "2023-02-29|1900-02-29|2023-04-31|2023-13-01|2023-00-10|0000-01-01|23-01-01|2023-1-1|",
    ),
    "time": (
        "00:00:00Z|23:59:59.123456Z|12:30:00+05:30|12:30:00.5-23:59",
        "24:00:00Z|12:60:00Z|12:00:60Z|12:00:00|12:00Z|12:00:00+24:00|12:00:00.Z",
    ),
    "date-time": (
        "2024-02-29T12:00:00Z|1985-04-12T23:20:50.52Z|1996-12-19T16:39:57-08:00",
        "2023-02-29T12:00:00Z|2024-02-29 12:00:00Z|2024-02-29T12:00:00|2024-02-29|2024-02-29T25:00:00Z",
    ),
    "local-time": ("00:00:00|23:59:59.123456", "24:00:00|12:00|12:00:00Z|12:00:00+01:00|12:00:00."),
    "local-date-time": (
        "2024-02-29T12:00:00|1985-04-12T23:20:50.52",
        "2023-02-29T12:00:00|2024-02-29T12:00:00Z|2024-02-29T12:00:00+00:00|2024-02-29",
    ),
    "fraction": ("0|1|-3/4|12/5", "|-0|1/0|01|1/|/2|1.5|1/-2"),
    "duration": (
        "P1D|PT1H|P1Y2M3DT4H5M6S|P2W|PT0S|P1M|PT5M|P10DT12H",
        "P|PT|1D|P1S|P1DT|P1YW|P1Y3D|PT1H3S|P-1D|P1.5D|P1W2D",
    ),
    "uuid": (
        "123e4567-e89b-12d3-a456-426614174000|00000000-0000-0000-0000-000000000000|"
        "ABCDEF01-2345-6789-ABCD-EF0123456789",
        "123e4567e89b12d3a456426614174000|123e4567-e89b-12d3-a456-42661417400|g23e4567-e89b-12d3-a456-426614174000",
    ),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "uuid7": ("123e4567-e89b-72d3-9456-426614174000", "123e4567-e89b-72d3-c456-426614174000"),
    "email": (
        "a@b.co|john.doe+tag@mail.example.com|x_y-z@sub-1.example.org|a.b.c.d@e.io|a@b.tests|a@b.loc|a@test.de|a@b.TES",
        "|a|a@|@b.co|a@b|a b@c.de|a@b..co|.a@b.co|a.@b.co|a..b@c.de|a@-b.co|a@b.c0|a@@b.co|a@b.test|a@b.Local|a@b.c",
    ),
    "hostname": (
        "localhost|example.com|a-b.c-d.e|xn-a.example|1and1.com|"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "|.|-a|a-|a..b|a_b|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|a.|é.com|a--b",
    ),
    "ipv4": ("0.0.0.0|255.255.255.255|192.168.1.10", "256.1.1.1|1.2.3|01.2.3.4|1.2.3.4.5|"),
    "ipv6": (
        "::|::1|2001:db8::8a2e:370:7334|1:2:3:4:5:6:7:8|::ffff:1.2.3.4|1::8|1:2:3:4:5:6:7::|FE80::1",
        "|:|:::|1:2:3:4:5:6:7|1::2::3|12345::|1:2:3:4:5:6:7:8:9|::1.2.3|fe80::1%eth0|1:2:3:4:5:6:7:8::",
    ),
    "ipvanyaddress": ("1.2.3.4|::1", "a|1.2.3"),
    "ipv4network": (
        "10.0.0.0/8|192.168.0.0/16|10.32.0.0/11|0.0.0.0/0|1.2.3.4|1.2.3.4/32|1.2.3.128/25",
        "10.0.0.1/8|10.32.0.0/10|1.2.3.4/33|1.2.3.4/031|10.0.0.0/|10.0.0/8|::/0",
    ),
    "ipv6network": (
        "2001:db8::/32|::/0|2001:d000::/20|::1|::1/128|fe80::/16",
        "2001:db8::1/32|2001:d00::/20|::/129|1.2.3.4",
    ),
    "ipvanynetwork": ("10.0.0.0/8|2001:db8::/32", "10.0.0.1/8|a"),
    "ipv4interface": ("10.0.0.1/8|1.2.3.4|1.2.3.4/0", "1.2.3.4/33|1.2.3.4/|1.2.3.4/08"),
    "ipv6interface": ("2001:db8::1/32|::1|::/128", "::1/129|::1/|1.2.3.4"),
    "ipvanyinterface": ("10.0.0.1/8|::1/64", "a/8|1.2.3.4/64"),
    "uri": (
        "https://example.com|http://a.b/c?d=e#f|ftp://h:21/x%20y|urn:isbn:0451450523|mailto:a@b.co|"
        "http://[::1]:8080/|file:///etc/hosts|http://localhost:65535/a//b|http://1.2.3.4/",
        "|example.com|//a/b|http://|http://a b|http://a:65536/|http://a/%2|1a:b|http://a/é|:a|http:a|FILE://a/b",
    ),
    "uri-reference": ("|a/b|/a?b#c|#x|../x|//h/p|https://example.com/a:b", "a b|%|é|1:x"),
    "multi-host-uri": ("postgres://a.b/c|redis://localhost:6379/0|http://[::1]", "a:b|urn:x|//a|mailto:a@b.co|http://"),
    "regex": (r"a|\.|^[^a-z_]+$|(?:\d{2}x)*|(a)?b*|\\|\b", "|(|[|a**|*|(?=a)|a{|((a))|[z-a]"),
    "json-pointer": ("|/|/a/b~1c~0/é/0", "a|/~|/~2"),
    "relative-json-pointer": ("0|1/a|12#|0#", "|/a|01|-1|1#/"),
    "base64": ("|YQ==|YWI=|YWJj|+/+/", "YQ|YQ=|YWJ|_-_-|YQ==YQ==|YR==|YWJ="),
    "base64url": ("|YQ==|_-_-", "YQ|+/+/"),
    "byte": ("YQ==", "YQ"),
    "idn-email": ("a@b.co", "a"),
    "name-email": ("a@b.co", "a|Ada <a@b.co>"),
    "idn-hostname": ("example.com", "-"),
    "iri": ("https://example.com/a", "a b"),
    "iri-reference": ("a/b", "a b"),
    "uri-template": ("https://example.com/a", "{"),
}


@pytest.mark.parametrize("name", CASES)
def test_format(name: str):
    automaton = automaton_of({"type": "string", "format": name})
    for text in CASES[name][0].split("|"):
        assert is_valid({"format": name}, text), text
        assert automaton.matches(compact(text)), text
    for text in CASES[name][1].split("|"):
        assert not automaton.matches(compact(text)), text


def test_every_enforced_format_has_its_cases():
    versions = {f"uuid{version}" for version in "13568"}
    assert set(CASES) | versions >= KNOWN - UNRESTRICTED


def test_every_day_and_no_other():
    automaton = automaton_of({"format": "date", "minLength": 10})
    for year in (1, 4, 96, 100, 400, 1900, 1999, 2000, 2024, 9999):
        for month in range(14):
            last = calendar.monthrange(year, month)[1] if 1 <= month <= 12 else 0
            for day in (0, 1, 9, 10, 28, 29, 30, 31, 32):
                text = f"{year:04}-{month:02}-{day:02}"
                assert automaton.matches(compact(text)) == (1 <= day <= last), text


def _adapter(kind: Any) -> Callable[[str], Any]:
    return pydantic.TypeAdapter(kind).validate_python


def _email(text: str) -> None:
    local, domain = text.split("@")
    assert len(local) <= 64
    assert len(text) <= 254
    assert all(len(label) <= 63 for label in domain.split("."))
    assert re.fullmatch(r"[^@.\s]+(\.[^@.\s]+)*@([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}", text, re.IGNORECASE)


def _hostname(text: str) -> None:
    assert len(text) <= 253
    assert all(re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", label) for label in text.split("."))


def _uri(text: str) -> None:
    parts = urlsplit(text)
    assert parts.scheme
    assert parts.port is None or parts.port <= 65535
    assert text.isascii()


PARSERS: dict[str, list[Callable[[str], Any]]] = {
    "date": [date.fromisoformat, _adapter(date)],
    "time": [time.fromisoformat, _adapter(time)],
    "date-time": [datetime.fromisoformat, _adapter(pydantic.AwareDatetime)],
    "local-time": [time.fromisoformat, _adapter(time)],
    "local-date-time": [datetime.fromisoformat, _adapter(pydantic.NaiveDatetime)],
    "fraction": [Fraction],
    "duration": [_adapter(timedelta)],
    "uuid": [uuid.UUID, _adapter(uuid.UUID)],
    "uuid1": [_adapter(pydantic.UUID1)],
    "uuid3": [_adapter(pydantic.UUID3)],
    "uuid4": [_adapter(pydantic.UUID4)],
    "uuid5": [_adapter(pydantic.UUID5)],
    "uuid6": [_adapter(pydantic.UUID6)],
    "uuid7": [_adapter(pydantic.UUID7)],
    "uuid8": [_adapter(pydantic.UUID8)],
    "email": [_email],
    "hostname": [_hostname],
    "ipv4": [ipaddress.IPv4Address],
    "ipv6": [ipaddress.IPv6Address],
    "ipvanyaddress": [ipaddress.ip_address, _adapter(pydantic.IPvAnyAddress)],
    "ipv4network": [ipaddress.IPv4Network],
    "ipv6network": [ipaddress.IPv6Network],
    "ipvanynetwork": [ipaddress.ip_network, _adapter(pydantic.IPvAnyNetwork)],
    "ipv4interface": [ipaddress.IPv4Interface],
    "ipv6interface": [ipaddress.IPv6Interface],
    "ipvanyinterface": [ipaddress.ip_interface, _adapter(pydantic.IPvAnyInterface)],
    "uri": [_uri],
    "multi-host-uri": [
        _uri,
        _adapter(Annotated[pydantic_core.MultiHostUrl, pydantic.UrlConstraints(host_required=True)]),
    ],
    "base64": [lambda text: base64.b64decode(text, validate=True), _adapter(pydantic.Base64Bytes)],
    "base64url": [base64.urlsafe_b64decode, _adapter(pydantic.Base64UrlBytes)],
}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_whatever_comes_out_is_parsed(name: str):
    schema = {"type": "string", "format": name}
    automaton = automaton_of(schema)
    source = random.Random(7)
    for index in range(60):
        text = json.loads(draw(automaton, source, steps=index * 3 if index % 2 else 40))
        assert is_valid(schema, text), text
        for parse in PARSERS.get(name, []):
            parse(text)


@pytest.mark.parametrize("name", ["http", "https"])
def test_addresses_of_the_web_are_parsed_by_pydantic(name: str):
    schema = {"type": "string", "format": "uri", "pattern": f"^{name}://", "maxLength": 2083}
    automaton = automaton_of(schema)
    source = random.Random(3)
    for _ in range(60):
        _adapter(pydantic.HttpUrl)(json.loads(draw(automaton, source, steps=80)))


def test_formats_go_with_lengths_patterns_and_each_other():
    schema = {"type": "string", "format": "date", "pattern": "^2024", "maxLength": 10, "not": {"const": "2024-01-01"}}
    assert accepts(schema, "2024-01-02")
    assert not accepts(schema, "2024-01-01")
    assert not accepts(schema, "2023-01-02")
    assert accepts({"allOf": [{"format": "uri"}, {"format": "uri-reference"}], "type": "string"}, "a:b")
    assert accepts({"format": "ipv4", "type": ["string", "null"]}, None)


def test_a_format_says_nothing_of_other_types():
    assert accepts({"type": "integer", "format": "date"}, 3)
    assert accepts({"type": "number", "format": "double"}, 1.5)
    assert accepts({"type": "integer", "format": "anything"}, 3)


@pytest.mark.parametrize("name", sorted(UNRESTRICTED))
def test_formats_without_restriction(name: str):
    assert accepts({"type": "string", "format": name}, "any\n text")
    assert accepts({"type": "integer", "not": {"type": "string", "format": name}}, 1)


@pytest.mark.parametrize("name", sorted(KNOWN - UNRESTRICTED))
def test_what_constraints_share_holds_nothing_of_any_of_them(name: str):
    node = format_node(name)
    assert node is format_node(name)
    arena = Arena()
    before = len(arena)
    Automaton(node, arena).expand_all()
    assert len(arena) == before, "all arcs were known"
    assert node.certain
