import json
import os
import time
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.index import store as module
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.indexing import build_index
from lmc.grammar.index.store import IndexStore
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import automata, byte_tokens, vocabularies

VOCABULARY = Vocabulary([*byte_tokens([b"ab"]), b"<end>", b"<special>"], [258], 257)


@cache
def sample() -> TokenIndex:
    return build_index(Automaton.of_strings([b"abc", b"abd", b"xy"]), VOCABULARY)


@pytest.fixture
def store(tmp_path: Path) -> IndexStore:
    return IndexStore(tmp_path / "indexes")


@pytest.fixture
def file(store: IndexStore) -> Path:
    assert store.save("digest", VOCABULARY, sample())
    return store.path("digest", VOCABULARY)


def equal(one: TokenIndex, other: TokenIndex) -> bool:
    return all(
        array.dtype == other.arrays()[name].dtype and np.array_equal(array, other.arrays()[name])
        for name, array in one.arrays().items()
    )


@given(automata(), vocabularies())
def test_what_was_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, automaton: Automaton, vocabulary: Vocabulary
) -> None:
    try:
        index = build_index(automaton, vocabulary)
    except ConstraintError:
        return
    store = IndexStore(tmp_path_factory.mktemp("indexes"))
    assert store.load("digest", vocabulary) is None
    assert store.save("digest", vocabulary, index)
    loaded = store.load("digest", vocabulary)
    assert loaded is not None
    assert equal(loaded, index)
    assert len(list(store.folder.iterdir())) == 1


def test_a_folder_of_no_bytes_is_only_read(store: IndexStore, file: Path) -> None:
    os.utime(file, (1000, 1000))
    reading = IndexStore(store.folder, 0)
    found = reading.load("digest", VOCABULARY)
    assert found is not None
    assert equal(found, sample())
    assert not reading.save("other", VOCABULARY, sample())
    assert list(store.folder.iterdir()) == [file]
    assert file.stat().st_mtime == 1000
    with pytest.raises(ConstraintError, match="is not there"):
        IndexStore(store.folder / "new", 0)
    assert not (store.folder / "new").exists()


def test_the_same_index_is_the_same_bytes(store: IndexStore, file: Path) -> None:
    before = file.read_bytes()
    assert store.save("digest", VOCABULARY, sample())
    assert file.read_bytes() == before
    header = json.loads(before.split(b"\n")[0])
    assert (header["format"], header["constraint"]) == ("lmc token index", "digest")


def test_other_constraints_and_vocabularies_have_files_of_their_own(store: IndexStore, file: Path) -> None:
    other = Vocabulary(VOCABULARY.tokens, [257], 258)
    assert store.load("other", VOCABULARY) is None
    assert store.load("digest", other) is None
    # Nor is a file taken for what its name says.
    for path in (store.path("other", VOCABULARY), store.path("digest", other)):
        path.write_bytes(file.read_bytes())
    assert store.load("other", VOCABULARY) is None
    assert store.load("digest", other) is None


@given(st.data())
def test_a_file_that_was_changed_is_not_trusted(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = IndexStore(tmp_path_factory.mktemp("indexes"))
    store.save("digest", VOCABULARY, sample())
    path = store.path("digest", VOCABULARY)
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(at, min(at + 9, len(content))))
    changed = content[:at] + data.draw(st.binary(max_size=8)) + content[end:]
    path.write_bytes(changed)
    loaded = store.load("digest", VOCABULARY)
    assert loaded is None or changed == content


def signed(header: dict, payload: bytes) -> bytes:
    """A file whose sum is right, whatever it holds."""
    header.pop("content", None)
    lines = json.dumps(header, separators=(",", ":")).encode() + b"\n"
    header["content"] = f"{zlib.crc32(lines + payload):08x}"
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + payload


@given(st.data())
def test_a_file_with_a_right_sum_and_wrong_numbers_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = IndexStore(tmp_path_factory.mktemp("indexes"))
    store.save("digest", VOCABULARY, sample())
    path = store.path("digest", VOCABULARY)
    line, _, payload = path.read_bytes().partition(b"\n")
    header = json.loads(line)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload = payload[:at] + data.draw(st.binary(min_size=1, max_size=8)) + payload[at:]
        payload = payload[: data.draw(st.sampled_from([len(payload), len(line) - 1]))]
    else:
        entry = data.draw(st.sampled_from(header["arrays"]))
        junk = [None, True, -1, 1 << 70, 1.5, "", "O", "<f8", "|V8", [], {}, 0, 3, "|u1", "<i4"]
        entry[data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(junk))
    path.write_bytes(signed(header, payload))
    loaded = store.load("digest", VOCABULARY)
    if loaded is None:
        return
    for state in range(len(loaded)):
        loaded.words(loaded.mask_of(state))
        loaded.forced_bytes(state)
        for token in range(VOCABULARY.size):
            assert -1 <= loaded.step(state, token) < len(loaded)
    assert not loaded.class_of_token[258]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: [],
        lambda header: {**header, "version": 99},
        lambda header: {**header, "more": 1},
        lambda header: {**header, "arrays": header["arrays"][:-1]},
        lambda header: {**header, "arrays": header["arrays"][::-1]},
        lambda header: {**header, "arrays": "arrays"},
        lambda header: {**header, "arrays": [[1]] * 13},
        lambda header: {**header, "arrays": [[name, [], 1] for name, *_ in header["arrays"]]},
        lambda header: {**header, "arrays": [[name, "|u1", -1] for name, *_ in header["arrays"]]},
    ],
)
def test_a_header_of_another_form_is_not_read(store: IndexStore, file: Path, change) -> None:
    line, _, payload = file.read_bytes().partition(b"\n")
    changed = change(json.loads(line))
    file.write_bytes(signed(changed, payload) if isinstance(changed, dict) else b"[]\n" + payload)
    assert store.load("digest", VOCABULARY) is None


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[" * 20_000 + b"\n", b"{" * 100, b"\xff\n"])
def test_what_is_no_index_is_not_read(store: IndexStore, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert store.load("digest", VOCABULARY) is None


def test_a_class_for_a_special_token_is_not_believed(store: IndexStore, file: Path) -> None:
    line, _, payload = file.read_bytes().partition(b"\n")
    header = json.loads(line)
    assert header["arrays"][0][:2] == ["class_of_token", "|u1"]
    file.write_bytes(signed(header, payload[:258] + b"\x02" + payload[259:]))
    assert store.load("digest", VOCABULARY) is None


def test_only_regular_files_are_read(store: IndexStore, file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert store.load("digest", VOCABULARY) is None
    file.unlink()
    os.mkfifo(file)
    assert store.load("digest", VOCABULARY) is None
    file.unlink()
    file.mkdir()
    assert store.load("digest", VOCABULARY) is None
    assert not store.save("digest", VOCABULARY, sample())
    assert list(store.folder.iterdir()) == [file]


def test_a_file_that_is_too_large_is_not_read(store: IndexStore, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 100)
    assert store.load("digest", VOCABULARY) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_not_read(store: IndexStore, file: Path) -> None:
    os.chown(file, 12345, 12345)
    assert store.load("digest", VOCABULARY) is None


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConstraintError, match=r"others may write to it\n  remedy: take away others' rights"):
        IndexStore(tmp_path)


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConstraintError, match=r"can't hold token indexes: .*\n  remedy: name another folder"):
        IndexStore(tmp_path / "file" / "indexes")


def test_a_full_disk_loses_nothing(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    assert not store.save("digest", VOCABULARY, sample())
    assert list(store.folder.iterdir()) == []
    assert store.load("digest", VOCABULARY) is None


def test_the_default_folder_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert IndexStore.default_folder() == tmp_path / "lmc" / "grammar"


def used(path: Path, age: float) -> Path:
    """As if it was used so many seconds ago."""
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_what_was_not_used_for_longest_goes(tmp_path: Path, file: Path) -> None:
    size = file.stat().st_size
    store = IndexStore(tmp_path / "kept", 3 * size)
    paths = [store.path(name, VOCABULARY) for name in "abcd"]
    for at, name in enumerate("abc"):
        assert store.save(name, VOCABULARY, sample())
        used(paths[at], 100 - at)
    assert store.load("a", VOCABULARY) is not None
    (other := store.folder / "notes.txt").write_bytes(bytes(9 * size))
    assert store.save("d", VOCABULARY, sample())
    assert [path.exists() for path in (*paths, other)] == [True, False, True, True, True]
    assert store.save("a", VOCABULARY, sample())
    assert [path.exists() for path in paths] == [True, False, True, True]


def test_what_does_not_fit_is_not_kept(tmp_path: Path, file: Path) -> None:
    store = IndexStore(tmp_path / "kept", file.stat().st_size)
    assert store.save("a", VOCABULARY, sample())
    (kept,) = store.folder.iterdir()
    assert not IndexStore(store.folder, kept.stat().st_size - 1).save("b", VOCABULARY, sample())
    assert [*store.folder.iterdir()] == [kept]


def test_files_that_nobody_goes_on_to_write_are_removed(store: IndexStore, file: Path) -> None:
    begun, old = store.folder / "a.partial", store.folder / "b.partial"
    for path, age in ((begun, 60), (old, 100_000)):
        path.touch()
        used(path, age)
    store.save("other", VOCABULARY, sample())
    assert (file.exists(), begun.exists(), old.exists()) == (True, True, False)


def test_several_processes_may_make_room_at_once(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = IndexStore(tmp_path / "kept", 2 * file.stat().st_size)
    for at, name in enumerate("abc"):
        store.save(name, VOCABULARY, sample())
        used(store.path(name, VOCABULARY), 100 - at)
    unlink = Path.unlink

    def taken_before(path: Path) -> None:
        unlink(path)
        unlink(path)

    monkeypatch.setattr(Path, "unlink", taken_before)
    assert store.save("d", VOCABULARY, sample())
    assert {*store.folder.iterdir()} == {store.path(name, VOCABULARY) for name in "cd"}


def test_a_folder_that_can_only_be_read_serves(store: IndexStore, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    assert store.load("digest", VOCABULARY) is not None
