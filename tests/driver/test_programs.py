import sys
from pathlib import Path

import pytest

from lmc.driver.programs import ProgramImportError, UsageError, load_program

ONE = "import lmc\n@lmc.jit\ndef one(s, x: str):\n    return s.gen('a')\n"
TWO = ONE + "@lmc.jit\ndef two(s):\n    return 2\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    def write(text: str, name: str = "some_program.py") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_the_only_program_needs_no_name(write):
    program = load_program(write(ONE))
    assert program.name == "one"
    assert load_program(write(ONE, "other.py") + ":one").name == "one"


METHOD = """import lmc

class Agent:
    name = "n"

    @lmc.jit
    def run(self, s, q: str):
        s += self.name + q

    @lmc.jit
    @classmethod
    def make(cls, s, q: str):
        s += q
"""
OBJECT = f"{METHOD}\nclass Other(Agent):\n    @lmc.jit\n    def run(self, s): ...\n\nagent = Other()\n"


def test_methods_are_named_by_their_object(write):
    bound = METHOD + "\nrun = Agent().run\nagent = Agent()\n"
    assert load_program(write(bound)).name == "run"
    assert list(load_program(write(bound) + ":agent.run").signature.parameters) == ["q"]
    assert load_program(write(METHOD) + ":Agent.make").name == "make"


def test_a_program_under_two_names_is_one(write):
    assert load_program(write(ONE + "alias = one\n")).name == "one"


def test_the_file_finds_its_neighbours(write):
    write("WORD = 'there'\n", "neighbour_module.py")
    assert load_program(write("import neighbour_module\n" + ONE)).name == "one"


def test_a_file_called_like_a_module_replaces_none(write):
    import json

    assert load_program(write(ONE, "json.py")).name == "one"
    assert sys.modules["json"] is json


def test_locations_show_the_path_as_it_was_named(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(ONE)
    monkeypatch.chdir(tmp_path)
    program = load_program("some_program.py")
    assert program.location is not None
    assert str(program.location) == "some_program.py:2"


@pytest.mark.parametrize(
    ("text", "name", "cause", "remedy"),
    [
        (None, "", "there is no file", "PROGRAM.py:name"),
        ("x = 1\n", "", "has no program", "@lmc.jit"),
        (TWO, "", "has several programs: one, two", ":one"),
        (TWO, ":twoo", "has no program 'twoo'", "did you mean 'two'"),
        (TWO, ":zebra", "has no program 'zebra'", "it has one, two"),
        ("x = 1\n", ":one", "has no program 'one'", "it has none"),
        (METHOD, "", "Agent.run of", "run = Agent(…).run"),
        (METHOD, ":Agent.run", "is a method, and runs on an object", "bind it in the file, run = Agent(…).run"),
        (METHOD, ":Agent.runn", "has no 'runn'", "did you mean 'run'"),
        (METHOD, ":Agentt.run", "has no 'Agentt'", "did you mean 'Agent'"),
        (METHOD, ":Agent.name", "is no program", "@lmc.jit"),
        (OBJECT, "", "has programs of objects: agent.run, agent.make", ":agent.run"),
        (OBJECT, ":agent", "agent of", "name one of its programs"),
        (OBJECT, ":agent.zebra", "has no 'zebra'", "are agent.run, agent.make"),
        (OBJECT, ":zebra", "has no program 'zebra'", "it has agent.run, agent.make"),
        (OBJECT + TWO, "", "has several programs: one, two, agent.run, agent.make", "name one"),
    ],
)
def test_programs_that_are_not_there(write, tmp_path: Path, text: str | None, name: str, cause: str, remedy: str):
    path = str(tmp_path / "none.py") if text is None else write(text)
    with pytest.raises(UsageError, match=cause) as caught:
        load_program(path + name)
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy


def test_a_file_that_raises_shows_the_users_frames_only(write):
    path = write("import lmc\n\ndef inner():\n    return 1 / 0\n\ninner()\n")
    with pytest.raises(ProgramImportError, match="can't be imported: ZeroDivisionError: division by zero") as caught:
        load_program(path)
    assert str(caught.value.location) == f"{path}:4"
    assert caught.value.remedy is not None
    assert "python" in caught.value.remedy
    assert "return 1 / 0" in caught.value.traceback
    assert "lmc/driver" not in caught.value.traceback
    assert "some_program" not in sys.modules


@pytest.mark.parametrize(
    ("text", "cause", "line"),
    [
        ("import lmc\ndef f(:\n", "SyntaxError", 2),
        ("import lmc\nraise SystemExit(3)\n", "SystemExit: 3", 2),
        ("import lmc\nimport not_there_at_all\n", "ModuleNotFoundError", 2),
        ("import lmc\n@lmc.jit\ndef f():\n    pass\n", "no parameter for the state", 2),
    ],
)
def test_files_that_can_not_be_imported(write, text: str, cause: str, line: int):
    with pytest.raises(ProgramImportError, match=cause) as caught:
        load_program(write(text))
    assert caught.value.location is not None
    assert caught.value.location.line == line


def test_a_file_that_is_no_text(tmp_path: Path):
    path = tmp_path / "binary.py"
    path.write_bytes(b"\x00\xff\x00")
    with pytest.raises(ProgramImportError, match="can't be imported"):
        load_program(str(path))


@pytest.mark.parametrize(
    ("data", "cause", "remedy", "line"),
    [
        (b"import lmc\n# caf\xe9\n", "it is not UTF-8: byte 0xe9", "coding: latin-1", 2),
        (b"\x80\x04", "it is not UTF-8: byte 0x80", "save the file as UTF-8", 1),
        (b"# coding: ascii\n\n# \xc3\xa9\n", "it is not ASCII: byte 0xc3", "save the file as UTF-8", 3),
        (b"\n# coding: none\n", "it declares the unknown encoding: none", "save the file as UTF-8", 2),
        (ONE.encode("utf-16"), "it is UTF-16", "save the file as UTF-8", 1),
        (b"x = 1\n\x00", "it is no text: it holds a NUL byte", "Python source file", 2),
    ],
)
def test_files_that_are_not_text_that_python_reads(tmp_path: Path, data: bytes, cause: str, remedy: str, line: int):
    path = tmp_path / "no_text.py"
    path.write_bytes(data)
    with pytest.raises(ProgramImportError, match=f"can't be imported: {cause}") as caught:
        load_program(str(path))
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy
    assert str(caught.value.location) == f"{path}:{line}"
    assert "no_text" not in sys.modules


def test_a_declared_encoding_and_a_byte_order_mark_are_read(tmp_path: Path, write):
    path = Path(write("", "declared.py"))
    path.write_bytes(b"# coding: latin-1\n# \xe9\n" + ONE.encode())
    assert load_program(str(path)).name == "one"
    path.write_bytes(ONE.encode("utf-8-sig"))
    assert load_program(str(path)).name == "one"


def test_a_folder_and_an_empty_file_are_no_program(tmp_path: Path, write):
    with pytest.raises(UsageError, match="is a folder"):
        load_program(str(tmp_path))
    with pytest.raises(UsageError, match="is empty"):
        load_program(write(""))
