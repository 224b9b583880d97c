"""The files of the page: their types, and the bundle of the libraries."""

import subprocess
from pathlib import Path

from tests.report.browser.bundle import TOOLS, VENDOR, bundle


def test_types() -> None:
    found = subprocess.run(
        [TOOLS / ".bin" / "tsc", "--project", Path(__file__).parent / "tsconfig.json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stdout == ""
    assert found.returncode == 0


def test_the_bundle_is_that_of_the_script() -> None:
    assert VENDOR.read_text(encoding="ascii") == bundle(), "python -m tests.report.browser.bundle writes it"
