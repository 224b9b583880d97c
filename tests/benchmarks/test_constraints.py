"""The parts of the constraints' benchmark that run without the peers; masks of its cases beside their definition."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import constraints
from benchmarks.constraining import byte_bpe, checks, measuring, patterns, peers, tables, timing
from benchmarks.constraining.cases import CASES, Case
from benchmarks.constraining.meaning import Meaning, code_points, cut, unpack
from lmc import grammar
from lmc.grammar.constraint import RegularConstraint
from lmc.ir.errors import ConstraintError


@pytest.fixture(scope="module")
def tokenizer():
    """Of 1,500 tokens, for the texts of the cases."""
    texts = [*byte_bpe.json_records(150), *itertools.chain(*(case.examples for case in CASES))]
    return byte_bpe.trained(1500, iter(texts * 2 + [*byte_bpe.prose("greek", 40)]))


@pytest.fixture(scope="module")
def tokens(tokenizer):
    return byte_bpe.token_bytes(tokenizer)


@pytest.fixture(scope="module")
def vocabulary(tokens):
    return grammar.Vocabulary(tokens, range(len(byte_bpe.SPECIAL)), 0)


def test_tokens_hold_the_bytes_of_the_text(tokenizer, tokens):
    for case in CASES:
        for text in case.examples:
            assert b"".join(tokens[token] for token in tokenizer.encode(text).ids) == text.encode()
    assert tokens[: len(byte_bpe.SPECIAL)] == [b""] * len(byte_bpe.SPECIAL)
    assert {token for token in tokens if len(token) == 1} == {bytes([byte]) for byte in range(256)}
    assert any(cut(token)[1] for token in tokens if len(token) > 1), "no token ends within a character"


def test_tokenizers_are_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(byte_bpe, "SIZES", {"tiny": 400})
    monkeypatch.setattr(byte_bpe, "corpus", lambda: byte_bpe.json_records(40))
    first = byte_bpe.tokenizer("tiny", tmp_path / "one").to_str()
    assert byte_bpe.tokenizer("tiny", tmp_path / "two").to_str() == first
    monkeypatch.setattr(byte_bpe, "corpus", lambda: pytest.fail("it is kept"))
    assert byte_bpe.tokenizer("tiny", tmp_path / "one").to_str() == first


def test_the_corpus_has_every_script_and_no_more_sources_than_asked_for():
    texts = [*byte_bpe.corpus(characters=10_000, sentences=2, records=3)]
    whole = "".join(texts)
    assert all(any(character in whole for character in script[0]) for script in byte_bpe._SCRIPTS.values())
    assert sum(map(len, byte_bpe.sources(10_000))) == 10_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_examples_mean_what_the_case_says(case: Case, tokens):
    meaning = Meaning(case.meaning, tokens, 0)
    for text in case.examples:
        data = text.encode()
        assert meaning.accepts(data)
        assert all(meaning.goes_on(data[:at]) for at in range(0, len(data) + 1, 11))
        assert not meaning.goes_on(data[:-1] + b"\xff")
    assert len(case.given()) == 1


def test_some_choices_begin_with_another_one():
    assert len(set(patterns.CHOICES)) == 1000
    assert patterns.LONGER_CHOICE.rpartition(" ")[0] in patterns.CHOICES


SMALL = [b"", b"a", b"b", b"ab", b"aab", b"\xc3", b"\xa9", b"\xc3\xa9", b"\xe2\x82", b"\xac", b"a\xc3", b"\xff", b"0"]


@pytest.mark.parametrize(
    "pattern", ["(a|ab)b?", "[ab]{1,3}", r"a[\xe0-\xff]{0,2}b*", r"[\xe90]a?", r"(?:ab|[\u20a0-\u20b0])+"]
)
def test_the_definition_is_what_enumeration_finds(pattern: str):
    """Against every text of up to five of the characters that these tokens can write."""
    texts = ["".join(each) for length in range(6) for each in itertools.product("ab0éì€₩", repeat=length)]
    language = [text.encode() for text in texts if re.fullmatch(pattern, text)]
    meaning = Meaning(pattern, SMALL, 0)
    for before in {data[:at] for data in language for at in range(len(data) + 1) if at < 4}:
        allowed = [any(data.startswith(before + token) for data in language) for token in SMALL]
        allowed[0] = before in language
        found = unpack(meaning.mask(before))[: len(SMALL)].astype(bool).tolist()
        assert found == allowed, before


def test_parts_of_characters_are_cut_off_and_stand_for_code_points():
    assert cut("aé".encode()[:-1]) == ("a", b"\xc3")
    assert cut("a€".encode()) == ("a€", b"")
    assert cut(b"a\xffb") == (None, b"")
    for first, last in [(0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]:
        for code in (first, (first + last) // 2, last):
            data = chr(code).encode()
            for length in range(1, len(data)):
                codes = code_points(data[:length])
                assert codes == range(codes.start, codes.stop)
                assert {codes.start, codes.stop - 1, code} <= {*codes}
                assert all(chr(each).encode().startswith(data[:length]) for each in (codes.start, codes.stop - 1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_masks_are_the_definition(case: Case, vocabulary, tokenizer, tokens, monkeypatch):
    monkeypatch.setattr(checks, "POSITIONS", 5)
    constraint = grammar.compile(**case.given(), tokenizer=vocabulary)
    found = checks.outputs(case, tokenizer, tokens)[:1]
    masks = checks.our_masks(case, constraint, found)
    assert checks.check_definition(case, Meaning(case.meaning, tokens, 0), found, masks, tokens) == 5


SHORT = Case("short", regex="[ab]{1,3}", meaning="[ab]{1,3}", examples=("aba",))


def test_wrong_masks_end_the_script(vocabulary, tokenizer, tokens):
    found = checks.outputs(SHORT, tokenizer, tokens)
    other = replace(SHORT, regex="[abc]{1,3}")
    masks = checks.our_masks(other, grammar.compile(**other.given(), tokenizer=vocabulary), found)
    with pytest.raises(
        checks.WrongError, match=r"short: after b'' the mask allows \d+ tokens that it must not \(.*b'c'"
    ):
        checks.check_definition(SHORT, Meaning(SHORT.meaning, tokens, 0), found, masks, tokens)
    for pattern, message in (("[b]{1,3}", "is not allowed after b''"), ("[ab]{4}", "b'aba' is not accepted")):
        other = replace(SHORT, regex=pattern)
        with pytest.raises(checks.WrongError, match=message):
            checks.our_masks(other, grammar.compile(**other.given(), tokenizer=vocabulary), found)


class OwnPeer:
    """Our masks behind the interface of the peers, for another pattern."""

    def __init__(self, vocabulary, pattern: str | None) -> None:
        self._vocabulary, self._pattern = vocabulary, pattern
        self.words = np.zeros(-(-vocabulary.size // 32), dtype=np.uint32)

    def compile(self, case: Case):
        if self._pattern is None:
            raise peers.RefusedError("too hard")
        self._constraint = grammar.compile(regex=self._pattern, tokenizer=self._vocabulary)
        return self

    def start(self):
        self._state = self._constraint.start()
        return self

    def fill(self) -> None:
        self.words[:] = self._state.mask()

    def accept(self, token: int) -> bool:
        if not checks._allows(self._state.mask(), token):
            return False
        self._state = self._state.advance(token)
        return True


def test_peers_are_compared_position_by_position(vocabulary, tokenizer, tokens):
    found = checks.outputs(SHORT, tokenizer, tokens)
    masks = checks.our_masks(SHORT, grammar.compile(**SHORT.given(), tokenizer=vocabulary), found)
    meaning = Meaning(SHORT.meaning, tokens, 0)

    def compared(pattern: str | None) -> checks.Agreement:
        peer = OwnPeer(vocabulary, pattern)
        compiled = measuring._unless_refused(peer.compile, SHORT)
        return checks.compare(SHORT, peer, compiled, found, masks, meaning, tokens)

    positions = len(found[0].tokens) + 1
    assert compared("[ab]{1,3}") == checks.Agreement(positions, positions)
    assert compared("[ab]{1,3}").complete
    assert compared(None).refused
    more = compared("[ab]{1,3}c?")
    assert (more.positions, more.less) == (positions, 0)
    assert more.more > 0
    assert not more.complete
    assert compared("b").equal == 0


@pytest.fixture
def setting(vocabulary, tokenizer):
    made = {name: OwnPeer(vocabulary, SHORT.meaning) for name in peers.PINS}
    return measuring.Setting(tokenizer, vocabulary, made)


def test_a_case_is_measured_and_shown(setting, tokenizer, monkeypatch):
    monkeypatch.setattr(timing, "RUNS", 2)
    right = measuring.checked(SHORT, setting)
    figures = measuring.timed(right, setting)
    built = figures.built
    assert isinstance(built, timing.Built)
    assert built.states >= 4
    assert built.table_bytes > 0
    assert built.file_bytes > 0
    assert min(built.build, built.load, built.read, figures.handed.mean, figures.handed.advance) > 0
    assert [*figures.first] == ["lmc", "llguidance", "xgrammar"]
    assert all(figures.first.values())
    assert figures.handed.p99 >= figures.handed.mean / 2
    text = tables.text_of("tiny", 1500, [figures])
    positions = len(tokenizer.encode("aba").ids) + 1
    assert f"| short | {positions} | {right.definition} = {right.definition} | = | = | = |" in text
    assert f"| {built.states:,} | {built.classes:,} | {built.masks:,} |" in text


def test_a_peer_that_should_agree_must(setting, vocabulary):
    other = replace(setting, peers={**setting.peers, "xgrammar": OwnPeer(vocabulary, "[ab]{1,4}")})
    with pytest.raises(checks.WrongError, match="short: xgrammar should have the same masks"):
        measuring.checked(SHORT, other)


def test_an_index_that_is_refused_is_shown(setting, monkeypatch):
    monkeypatch.setattr(timing, "RUNS", 2)

    def refuse(self, **_):
        raise ConstraintError("too many states", remedy="use less")

    monkeypatch.setattr(RegularConstraint, "build", refuse)
    figures = measuring.timed(measuring.checked(SHORT, setting), setting)
    assert "too many states" in str(figures.built)
    assert "| short | refused |" in tables.text_of("tiny", 1500, [figures])


def test_an_index_with_other_masks_ends_the_script(vocabulary, tokenizer, tokens):
    found = checks.outputs(SHORT, tokenizer, tokens)
    masks = checks.our_masks(SHORT, grammar.compile(**SHORT.given(), tokenizer=vocabulary), found)
    checks.check_index(SHORT, vocabulary, found, masks)
    masks[0][1] = masks[0][0]
    with pytest.raises(checks.WrongError, match=r"short: built, the mask after b'.*' is another one"):
        checks.check_index(SHORT, vocabulary, found, masks)


BUILT = timing.Built(0.6, 0.005, 0.004, 10, 5, 3, 900_000, 900_000)
KEPT = measuring.Figures(
    checked=measuring.Checked(SHORT, (), 4, dict.fromkeys(peers.PINS, checks.Agreement(4, 4)), {}),
    built=BUILT,
    outlines_index=13.0,
    first={"lmc": 0.001, "llguidance": 0.002, "xgrammar": 0.1},
    handed=timing.Handed(0.2e-6, 1e-6, 1e-6, 0.2e-6),
    fills=dict.fromkeys(peers.PINS, 1e-4),
)


def test_what_keeps_its_limits_is_not_listed():
    assert tables.missed(KEPT) == []
    assert "Every limit is kept." in tables.text_of("tiny", 1500, [KEPT])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"outlines_index": 6.0}, "index 10.0 times faster"),
        ({"built": replace(BUILT, load=0.06)}, "loads 10 times faster than it builds"),
        ({"built": replace(BUILT, table_bytes=2_500_000)}, "table of 2.50 MB"),
        ({"built": "too many states"}, "no index: too many states"),
        ({"first": KEPT.first | {"lmc": 0.003}}, "first mask after 3.00 ms, llguidance 2.00 ms"),
        ({"handed": timing.Handed(2e-6, 3e-6, 2e-6, 1e-6)}, "a mask in 2.00 µs"),
        ({"handed": timing.Handed(0.1e-6, 3e-6, 2e-6, 1e-6)}, "p99 of a mask 30 times the mean"),
    ],
)
def test_each_limit_that_is_missed_is_listed(change, line: str):
    assert tables.missed(replace(KEPT, **change)) == [line]
    assert f"- short: {line}\n" in tables.text_of("tiny", 1500, [replace(KEPT, **change)])


def test_what_peers_refuse_stands_in_the_tables():
    agreements = {
        "llguidance": checks.Agreement(4, 4),
        "xgrammar": checks.Agreement(4, 0, refused=True),
        "outlines-core": checks.Agreement(4, 3, 2, 1),
    }
    refused = replace(
        KEPT,
        checked=replace(KEPT.checked, agreements=agreements),
        outlines_index=None,
        first={"lmc": 0.1, "llguidance": None, "xgrammar": None},
        fills=dict.fromkeys(peers.PINS),
    )
    text = tables.text_of("tiny", 1500, [refused])
    assert "| short | 4 | 4 = 4 | refused | = | 3 (+2 −1) |" in text
    assert tables.missed(refused) == []


def test_the_peers_patterns_are_escaped():
    assert re.fullmatch(peers._escaped(r"a.b\(c|d)*[e]{1}^$+?"), r"a.b\(c|d)*[e]{1}^$+?")


def test_the_script_says_how_it_is_used():
    path = Path(constraints.__file__)
    done = subprocess.run([sys.executable, str(path), "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "python benchmarks/constraints.py" in done.stdout
    done = subprocess.run([sys.executable, str(path), "--write", "--case", "city"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--write keeps all tables" in done.stderr


def test_without_peers_the_script_goes_where_they_are(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "PINS", {"no-such-peer": "1.0"})
    monkeypatch.setattr(constraints, "ENVIRONMENT", tmp_path)
    with pytest.raises(SystemExit, match=r"lacks no-such-peer==1.0; run python benchmarks/constraints.py --setup"):
        constraints.go_where_the_peers_are()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "say.py").write_text("import sys; sys.exit(len(sys.argv))", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "say.py"), "--case", "city"])
    with pytest.raises(SystemExit) as ended:
        constraints.go_where_the_peers_are()
    assert ended.value.code == 3
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SystemExit, match="lacks no-such-peer"):
        constraints.go_where_the_peers_are()


def test_cases_and_tokenizers_are_found_by_name():
    assert [case.name for case in measuring.chosen(["city"])] == ["city"]
    assert measuring.chosen(None) == [*CASES]
    with pytest.raises(SystemExit, match="there is no case 'town'; there are character, "):
        measuring.chosen(["town"])
    with pytest.raises(SystemExit, match="there is no such tokenizer; there are 32k, 128k"):
        constraints.run(["64k"], ["city"])
