from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lmc.grammar import Vocabulary, sharing
from lmc.grammar.compiling import Source
from lmc.grammar.index.store import IndexFolder
from lmc.grammar.sharing import DTYPES, ConstraintCache, checked_digest, source_of
from lmc.ir.errors import ConstraintError, InputError

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], special_ids=[256], eos_id=256)
WORDS = Vocabulary([*(bytes([byte]) for byte in range(256)), b"", b"ab"], special_ids=[256], eos_id=256)
WORD = source_of("regex", "[a-z]{1,9}")


def test_equal_definitions_are_compiled_once_for_each_vocabulary():
    cache = ConstraintCache()
    first = cache.compiled(WORD, BYTES)
    again = Vocabulary(BYTES.tokens, special_ids=[256], eos_id=256)
    assert cache.compiled(source_of("regex", "[a-z]{1,9}"), again) is first
    assert cache.compiled(WORD, WORDS) is not first
    assert cache.built(WORD, BYTES).constraint is first
    assert len(cache) == 2


def test_the_last_used_ones_stay():
    cache = ConstraintCache(limit=2)
    sources = [source_of("regex", pattern) for pattern in "abc"]
    first = cache.compiled(sources[0], BYTES)
    second = cache.compiled(sources[1], BYTES)
    assert cache.compiled(sources[0], BYTES) is first
    cache.compiled(sources[2], BYTES)
    assert len(cache) == 2
    assert cache.compiled(sources[0], BYTES) is first
    assert cache.compiled(sources[1], BYTES) is not second


def test_threads_that_ask_at_once_get_one(monkeypatch: pytest.MonkeyPatch):
    compile_source = sharing.compile_source
    calls: list[str] = []
    entered = threading.Barrier(4)

    def slowly(source: Source, *args: object, **kwargs: object) -> object:
        calls.append(source.digest)
        return compile_source(source, *args, **kwargs)

    monkeypatch.setattr(sharing, "compile_source", slowly)
    cache = ConstraintCache()
    found: list[object] = []

    def ask() -> None:
        entered.wait()
        found.append(cache.built(WORD, BYTES).constraint)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len({id(constraint) for constraint in found}) == 1


def test_what_is_refused_is_not_kept_and_each_gets_an_error_of_its_own():
    cache = ConstraintCache()
    errors: list[ConstraintError] = []
    for _ in range(2):
        with pytest.raises(ConstraintError, match="closing parenthesis") as caught:
            cache.built(source_of("regex", "("), BYTES)
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert (errors[0].position, errors[1].position) == (0, 0)
    assert len(cache) == 0


def test_those_that_wait_for_one_that_is_refused_get_its_error(monkeypatch: pytest.MonkeyPatch):
    waiting, go_on = threading.Event(), threading.Event()

    def refuse(*_: object, **__: object) -> object:
        waiting.set()
        go_on.wait(10)
        raise ConstraintError("it is bad", remedy="make it good", pointer="/a", position=3)

    monkeypatch.setattr(sharing, "compile_source", refuse)
    cache = ConstraintCache()
    errors: list[ConstraintError] = []

    def ask() -> None:
        try:
            cache.compiled(WORD, BYTES)
        except ConstraintError as error:
            errors.append(error)

    first = threading.Thread(target=ask)
    first.start()
    assert waiting.wait(10)
    second = threading.Thread(target=ask)
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert [(error.cause, error.remedy, error.pointer, error.position) for error in errors] == [
        ("it is bad", "make it good", "/a", 3)
    ] * 2
    assert errors[0] is not errors[1]


def test_what_is_started_is_there_when_it_is_asked_for():
    cache = ConstraintCache()
    sources = [source_of("regex", pattern) for pattern in ("a+", "(", "b+", "a+")]
    cache.start(sources, BYTES)
    assert cache.built(sources[2], BYTES).facts.states == 2
    with pytest.raises(ConstraintError):
        cache.built(sources[1], BYTES)


def test_indexes_are_kept_in_the_folder(tmp_path: Path):
    ConstraintCache(folder=tmp_path).built(WORD, BYTES)
    (file,) = tmp_path.iterdir()
    before = file.stat().st_ino
    assert ConstraintCache(folder=IndexFolder(tmp_path)).built(WORD, BYTES).facts.states == 10
    assert file.stat().st_ino == before
    assert ConstraintCache(folder=IndexFolder(tmp_path / "small", 10)).built(WORD, BYTES).facts.states == 10
    assert list((tmp_path / "small").iterdir()) == []


def test_a_folder_that_can_not_be_used_is_done_without(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "shared").mkdir(mode=0o777)
    (tmp_path / "shared").chmod(0o777)
    for folder in ("file", "file/below", "shared"):
        assert ConstraintCache(folder=tmp_path / folder).built(WORD, BYTES).facts.states == 10
    assert list((tmp_path / "shared").iterdir()) == []


def test_what_has_no_complete_index_says_why():
    cache = ConstraintCache()
    assert cache.built(WORD, BYTES).unbuilt is None
    nested = [
        cache.built(source_of("grammar", 'start: "(" start ")" | "x"'), BYTES),
        cache.built(source_of("schema", '{"type": "array", "items": {"$ref": "#"}}'), BYTES),
    ]
    for built in nested:
        assert built.unbuilt == "values or rules nest without bound, so there is no end of states"
        assert built.facts.kind == "context-free"
    assert nested[1].constraint.matches("[[],[[]]]")
    large = cache.built(source_of("regex", "(a|b)*a(a|b){40}"), BYTES)
    assert large.unbuilt
    assert large.constraint.matches("a" * 41)


def test_equal_languages_have_one_name_whatever_they_were_written_as():
    cache = ConstraintCache()
    names = [
        cache.built(source_of("regex", pattern), BYTES).language for pattern in ("[ab]c?", "(?:a|b)(?:c|)", "[ab]c")
    ]
    assert names[0] == names[1] != names[2]
    assert (
        cache.built(source_of("choices", '["a"]'), BYTES).language
        == cache.built(source_of("regex", "a"), BYTES).language
    )


@pytest.mark.parametrize(
    ("name", "accepts", "refuses"),
    [
        ("int", ["0", "-7", "12345678901234567890"], ["", "-", "01", "+1", "1.0", " 1"]),
        ("float", ["0", "-7.50", "3.0"], ["", ".5", "5.", "01.5", "1e5", "nan"]),
        ("bool", ["true", "True", "false", "False"], ["TRUE", "1", ""]),
        ("str", ["", "a\nb", "日本"], []),
    ],
)
def test_the_texts_of_python_types(name: str, accepts: list[str], refuses: list[str]):
    assert name in DTYPES
    constraint = ConstraintCache().compiled(source_of("dtype", name), BYTES)
    assert [constraint.matches(text) for text in accepts] == [True] * len(accepts)
    assert [constraint.matches(text) for text in refuses] == [False] * len(refuses)


def test_symbols_become_sources():
    assert source_of("schema", "{}", "flexible") == Source("schema", "{}", "flexible")
    assert source_of("choices", '["a"]').digest == Source.of(choices=["a"]).digest
    with pytest.raises(ConstraintError, match="unknown kind of constraint 'glob'"):
        source_of("glob", "*")


def test_the_digest_of_a_symbol_names_definition_and_vocabulary():
    digest = checked_digest(WORD, BYTES)
    assert len(digest) == 64
    assert checked_digest(WORD, BYTES, digest) == digest
    assert len({digest, checked_digest(WORD, WORDS), checked_digest(source_of("regex", "a"), BYTES)}) == 3
    with pytest.raises(
        InputError, match=r"a constraint \(regex\) was compiled for the tokens of another model"
    ) as caught:
        checked_digest(WORD, WORDS, digest)
    assert caught.value.remedy == "compile the program again for this target"
