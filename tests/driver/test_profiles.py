from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.driver import ProfileFile, UsageError, read_profile
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.dialects.region_ops import CondOp
from lmc.ir.errors import InputError
from lmc.ir.profile import BranchProfile, OpProfile, Profile, length_bins
from lmc.ir.usage import Usage


@lmc.jit(target="toy")
def answer(s, topic: str):
    s += topic
    if s.gen("first", max_tokens=4, temperature=1.0) > "M":
        s.gen("long", max_tokens=20, temperature=1.0)
    else:
        s.gen("short", max_tokens=6, temperature=1.0)
    return s["first"]


@lmc.jit(target="toy")
def other(s, topic: str):
    s += topic
    return s.gen("first", max_tokens=4)


@lmc.jit(target="toy")
def breaks(s, topic: str):
    s += topic
    if s.gen("a", max_tokens=2) == "x":
        s += "!"
    s.gen("b", max_tokens=2)
    eval("0")
    return s.gen("c", max_tokens=2)


ROWS = [{"topic": str(number)} for number in range(8)]


def measured() -> Profile:
    return Profile.merge("answer", [result.profile for result in answer.batch(ROWS)])


def hints(compiled: lmc.Compiled) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for op in walk([compiled.module.main.body]):
        if isinstance(op, SamplingOp):
            found[op.id] = op.expected_tokens
        elif isinstance(op, CondOp):
            found[op.id or ""] = op.probability
    return found


def test_a_batch_measures_what_its_compilation_then_expects():
    profile = measured()
    [branch] = profile.branches.values()
    assert branch.then + branch.otherwise == len(ROWS)
    assert profile.ops["answer/first"].outputs == len(ROWS)
    profiled = answer.on(profile=profile)
    found = hints(profiled.compile())
    assert found["answer/@cf.cond.1"] == round(branch.then / len(ROWS), 4)
    assert set(found) == {"answer/first", "answer/@cf.cond.1", "answer/long", "answer/short"}
    means = {op_id: entry.mean_length for op_id, entry in profile.ops.items() if entry.outputs}
    assert {op_id: found[op_id] for op_id in means} == {op_id: int(mean + 0.5) for op_id, mean in means.items() if mean}
    assert [result.value for result in profiled.batch(ROWS)] == [result.value for result in answer.batch(ROWS)]


def test_the_interpreted_and_the_eager_run_measure_the_same_lengths():
    result, eager = answer.run(topic="3"), answer.eager(topic="3")
    lengths = {op_id: entry.lengths for op_id, entry in result.profile.ops.items() if entry.outputs}
    assert lengths == {op_id: entry.lengths for op_id, entry in eager.profile.ops.items()}
    assert eager.profile.branches == {}  # plain Python tells nobody which way it takes
    assert sum(entry.then + entry.otherwise for entry in result.profile.branches.values()) == 1


def test_what_runs_after_a_break_is_measured_too():
    profile = breaks.run(topic="t").profile
    assert {op_id for op_id, entry in profile.ops.items() if entry.outputs == 1} == {"breaks/a", "breaks/b", "breaks/c"}
    assert list(profile.branches.values()) == [BranchProfile(0, 1)]


def test_profiles_are_part_of_what_tells_compiled_forms_apart():
    short = Profile("answer", {"answer/first": OpProfile(Usage(0, 0, 2, 1), lengths=length_bins([2]))})
    long = Profile("answer", {"answer/first": OpProfile(Usage(0, 0, 4, 1), lengths=length_bins([4]))})
    programs = [answer, answer.on(profile=short), answer.on(profile=long), answer.on(profile=short)]
    found = [program.compile(topic="t") for program in programs]
    assert [hints(compiled)["answer/first"] for compiled in found] == [None, 2, 4, 2]
    assert found[1] is found[3]
    assert hints(programs[1].on(seed=3).compile())["answer/first"] == 2  # it stays


def test_a_decorated_program_reads_its_file(tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text(Profile("answer", branches={"answer/@cf.cond.1": BranchProfile(1, 3)}).to_json())
    for given in (path, str(path)):
        again = lmc.jit(target="toy", profile=given)(answer.definition)
        assert hints(again.compile())["answer/@cf.cond.1"] == 0.25


@pytest.mark.parametrize(
    ("option", "cause"),
    [
        ("nowhere.json", "nowhere.json can't be read: No such file"),
        (3, "profile is 3"),
        (Profile("answer"), "the profile is of the program 'answer', not of 'other'"),
    ],
)
def test_what_is_no_profile_of_the_program_is_refused_at_the_users_line(option: Any, cause: str):
    with pytest.raises(InputError, match=cause) as caught:
        other.on(profile=option)
    assert caught.value.remedy is not None
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_a_level_without_the_pass_ignores_it():
    profile = measured()
    assert set(hints(answer.on(profile=profile, level="O0").compile()).values()) == {None}


def test_files_are_read_as_far_as_they_hold_a_profile(tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text("{}")
    with pytest.raises(InputError, match=r"p\.json: not a profile"):
        read_profile(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"p\.json is no text"):
        read_profile(path)
    with pytest.raises(UsageError, match="can't be read: Is a directory"):
        read_profile(tmp_path)


def test_a_file_is_replaced_or_added_to(tmp_path: Path):
    path = tmp_path / "p.json"
    one = Profile("answer", branches={"c": BranchProfile(1, 0)})
    for merge, expected in ((False, 1), (True, 2), (True, 3), (False, 1)):
        file = ProfileFile(str(path), "answer", merge=merge)
        file.add(one)
        file.write()
        assert read_profile(path).branches == {"c": BranchProfile(expected, 0)}
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize("merge", [False, True])
def test_a_file_stays_as_it_was_where_nothing_was_counted(tmp_path: Path, merge: bool):
    path = tmp_path / "p.json"
    file = ProfileFile(str(path), "answer", merge=merge)
    assert not file.write()
    assert not path.exists()
    path.write_text(Profile("answer", branches={"c": BranchProfile(1, 0)}).to_json())
    before = path.stat().st_mtime_ns
    file = ProfileFile(str(path), "answer", merge=merge)
    file.add(Profile("answer"))
    assert not file.write()
    assert path.stat().st_mtime_ns == before
    file.add(Profile("answer", ops={"answer/first": OpProfile(Usage(calls=1))}))
    assert file.write()
    assert read_profile(path).ops.keys() == {"answer/first"}


def test_a_link_stays_one(tmp_path: Path):
    target, link = tmp_path / "p.json", tmp_path / "link.json"
    link.symlink_to(target)
    file = ProfileFile(str(link), "answer", merge=True)
    one = Profile("answer", branches={"c": BranchProfile(1, 0)})
    file.add(one)
    file.write()
    assert link.is_symlink()
    assert read_profile(target) == one


def test_what_can_not_be_written_is_known_before_anything_runs(tmp_path: Path):
    path = tmp_path / "p.json"
    with pytest.raises(UsageError, match="is no file"):
        ProfileFile(str(tmp_path), "answer", merge=False)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe is no file"):
        ProfileFile(str(tmp_path / "pipe"), "answer", merge=False)
    with pytest.raises(UsageError, match="--profile-generate - is no file"):
        ProfileFile("-", "answer", merge=False)
    with pytest.raises(UsageError, match="can't be written: its folder is not there"):
        ProfileFile(str(tmp_path / "no" / "p.json"), "answer", merge=False)
    path.write_text(Profile("other").to_json())
    with pytest.raises(InputError, match=r"p\.json: the profile is of the program 'other', not of 'answer'"):
        ProfileFile(str(path), "answer", merge=True)
    path.write_text("[]")
    with pytest.raises(InputError, match="not a profile"):
        ProfileFile(str(path), "answer", merge=True)
    assert path.read_text() == "[]"


def test_a_file_that_can_not_be_written_in_the_end_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "p.json"
    path.write_text("before")
    file = ProfileFile(str(path), "answer", merge=False)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file.add(Profile("answer", branches={"c": BranchProfile(1, 0)}))
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(UsageError, match="can't be written: No space left on device"):
        file.write()
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]
    assert path.read_text() == "before"
