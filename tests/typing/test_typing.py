"""A type checker on a file of a user: what it knows of programs, and what it refuses."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.project.layers import REPOSITORY

FILE = Path(__file__).with_name("user_program.py")
_MARK = re.compile(r"# (type|error): (.*)$")
_REVEALED = re.compile(r'Type of ".*" is "(.*)"$', re.DOTALL)


def test_pyright_knows_results_and_refuses_wrong_arguments(tmp_path: Path):
    shutil.copy(FILE, tmp_path)
    config = {"extraPaths": [str(REPOSITORY)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=300)
    found: dict[int, tuple[str, str]] = {}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        revealed = _REVEALED.search(each["message"])
        said = ("type", revealed[1]) if revealed else ("error", each["message"])
        found.setdefault(each["range"]["start"]["line"] + 1, said)
    marks = {
        number: (mark[1], mark[2])
        for number, line in enumerate(FILE.read_text("utf-8").splitlines(), 1)
        if (mark := _MARK.search(line))
    }
    assert found.keys() == marks.keys(), found
    for number, (kind, text) in marks.items():
        assert found[number][0] == kind, number
        assert text == found[number][1] if kind == "type" else text in found[number][1], number
