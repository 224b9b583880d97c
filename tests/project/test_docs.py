"""The structure of docs/: the glossary, the navigation, and the generated reference."""

from tests.project.layers import REPOSITORY

DOCS = REPOSITORY / "docs"


def test_the_glossary_is_short_and_names_files_that_exist() -> None:
    lines = (DOCS / "GLOSSARY.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert len(lines) <= 60
    assert [row for row in rows[1:] if not (REPOSITORY / row[-1].strip("`")).is_file()] == []
    terms = [row[0] for row in rows[1:]]
    assert len(set(terms)) == len(terms) >= 40
