"""lit settings: a `.lmir` file is a test whose `// RUN:` lines pipe `lmc opt` into `filecheck`.

lit puts `config` and `lit_config` in scope.
"""

import os
import sys
from pathlib import Path
from typing import Any

import lit.formats

config: Any = globals()["config"]
repository = Path(__file__).resolve().parents[2]

config.name = "lmc"
config.suffixes = [".lmir"]
config.excludes = ["inputs"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(repository / "build" / "filecheck")
# `lmc` and `filecheck` are those beside the interpreter that runs lit, not whatever else is installed.
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# Diagnostics wrap at the width of the terminal; a test sees the same lines everywhere.
config.environment.update(COLUMNS="200", NO_COLOR="1", PYTHONPATH=str(repository))
