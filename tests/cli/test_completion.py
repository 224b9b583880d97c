"""Completion in shells: the scripts, and the words that they ask for."""

from pathlib import Path

import pytest

ENVIRONMENTS = {
    "bash": lambda words: {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
    "zsh": lambda words: {"_TYPER_COMPLETE_ARGS": words},
    "fish": lambda words: {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", sorted(ENVIRONMENTS))
@pytest.mark.parametrize(
    ("words", "expected"),
    [("lmc sch", "schedule"), ("lmc run --res", "--resume"), ("lmc opt --list-p", "--list-passes")],
)
def test_commands_and_options_are_completed(
    lmc, monkeypatch: pytest.MonkeyPatch, shell: str, words: str, expected: str
):
    monkeypatch.setenv("_LMC_COMPLETE", f"complete_{shell}")
    for name, value in ENVIRONMENTS[shell](words).items():
        monkeypatch.setenv(name, value)
    said = lmc()
    assert said.code == 0
    assert expected in said.out
    assert "compile" not in said.out


def test_the_script_is_installed_for_the_user(lmc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the tests may run under none
    shown = lmc("--show-completion", "bash")
    assert "complete -o default -F _lmc_completion lmc" in shown.out
    assert lmc("--install-completion", "bash").code == 0
    assert (tmp_path / ".bash_completions" / "lmc.sh").read_text().strip() == shown.out.strip()
    assert ".bash_completions/lmc.sh" in (tmp_path / ".bashrc").read_text()
