"""What commands print, where it can't be written."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
NO_ROOM = "can't be written any further: No space left on device\n  remedy: make room"


@pytest.mark.parametrize(
    "command",
    [
        "simulate trace.jsonl --kv-tokens 10",
        "simulate trace.jsonl --kv-tokens 10 --json",
        "schedule {} --input rows.jsonl --model toy",
        "compile {} --breaks --model toy",
        "cost {} topic=a --model toy",
        "run {} topic=a --model toy",
        "run {} --input rows.jsonl --json --model toy",
        "run {} --input rows.jsonl -o - --model toy",
        "opt --list-passes",
        "grammar --regex a+ --tokenizer toy",
        "grammar --regex a+ --tokenizer toy --json",
        "targets",
        "targets openai:gpt-5.6",
    ],
)
def test_output_that_is_full_is_told(lmc, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str):
    (tmp_path / "trace.jsonl").write_text('{"id": 1, "tokens": [1, 2, 3], "output": 2}\n')
    (tmp_path / "rows.jsonl").write_text('{"topic": "a"}\n')
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        said = lmc(*command.format(f"{program}:quiet").split())
    assert said.code == 1
    counted = command.startswith("run {} --input")
    expected = NO_ROOM.replace("device", "device; 0 rows were written") if counted else NO_ROOM
    assert f"error: /dev/full {expected}" in said.err


def test_the_process_ends_without_a_word_more():
    """What a stream still holds is written once more as Python ends."""
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "--version"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: standard output {NO_ROOM}")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_that_finds_no_room_is_told(arguments: list[str]):
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n  remedy: make room\n"


def test_another_error_of_the_system_is_no_lack_of_room(lmc, monkeypatch: pytest.MonkeyPatch):
    def fails(_text: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("lmc.cli.app.write_out", fails)
    with pytest.raises(OSError, match="Input/output error"):
        lmc("--version")
