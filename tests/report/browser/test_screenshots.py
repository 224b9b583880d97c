"""The script that takes the pictures of the documentation."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project.layers import REPOSITORY
from tests.report.browser.screenshots import HEIGHT, WIDTH, names, take

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_script_takes_the_pictures_of_an_example(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    taken = dict(take(browser, "judge", tmp_path))
    assert sorted(taken) == sorted(names("judge"))
    assert len(set(taken.values())) == len(taken)
    shown = browser.new_page()
    for name, data in taken.items():
        file = tmp_path / name
        file.write_bytes(data)
        shown.goto(file.as_uri())
        size = shown.evaluate("(({naturalWidth, naturalHeight}) => [naturalWidth, naturalHeight])(document.images[0])")
        assert size == [WIDTH, HEIGHT]
    shown.close()
