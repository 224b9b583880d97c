"""``lmc grammar``: facts and costs of a constraint, or its error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.output import print_error, print_note, prints_to_stderr, target_spec, to_json, write_out
from lmc.ir.wording import with_count

FAILURE = 1


class Whitespace(StrEnum):
    """The whitespace allowed between JSON tokens."""

    COMPACT = "compact"
    FLEXIBLE = "flexible"


def grammar_command(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Schema or choices (.json), grammar (.lark), pattern (.txt), program (.py)."
        ),
    ] = None,
    *,
    regex: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="A pattern that the whole output matches.")
    ] = None,
    schema: Annotated[str | None, typer.Option(metavar="JSON|FILE", help="A JSON Schema, or a file with one.")] = None,
    choices: Annotated[
        str | None, typer.Option(metavar="a,b|JSON", help="The allowed outputs, or a JSON list of them.")
    ] = None,
    lark: Annotated[
        str | None, typer.Option("--grammar", metavar="TEXT|FILE", help="A grammar in Lark's notation, or its file.")
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(metavar="FOLDER|builtin", help="Whose tokens: a model folder, builtin or toy.")
    ] = "builtin",
    whitespace: Annotated[
        Whitespace, typer.Option(help="Of a schema's JSON: none, or as printers write it.")
    ] = Whitespace.COMPACT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list with one object per constraint.")] = False,
) -> None:
    """Print the size of a constraint, its output lengths and an example; or its error (exit code 1).

    For a program (PROGRAM.py or PROGRAM.py:name), print every constraint of its generations. Loads no model.
    """
    options = {"regex": regex, "schema": schema, "choices": choices, "grammar": lark}
    texts = {kind: text for kind, text in options.items() if text is not None}
    if len(texts) + (file is not None) != 1:
        raise driver.UsageError("give one constraint: a file or one of the options", remedy="see lmc grammar --help")
    with prints_to_stderr():
        if file is not None:
            given = driver.grammar.given_file(file, whitespace.value)
        else:
            given = [driver.grammar.given_text(kind, text, whitespace.value) for kind, text in texts.items()]
        vocabulary = driver.grammar.vocabulary_of(target_spec(tokenizer) or driver.grammar.BUILTIN)
        found = [driver.grammar.explain(each, vocabulary) for each in given]
    if as_json:
        write_out(to_json([each.to_json() for each in found], indent=1) + "\n")
    else:
        for number, each in enumerate(found):
            if number:
                write_out("\n")
            _show(each, titled=len(found) > 1)
    if any(each.refused is not None for each in found):
        raise typer.Exit(FAILURE)


def _show(found: driver.grammar.Explanation, *, titled: bool) -> None:
    if titled:
        where = f"  ({found.given.location})" if found.given.location is not None else ""
        write_out(f"{found.given.name}{where}\n")
    if found.refused is not None:
        found.refused.location = found.refused.location or found.given.location
        print_error(found.refused)
        excerpt = driver.grammar.excerpt(found.given, found.refused)
        if excerpt is not None:
            print_note(excerpt)
        return
    write_out("".join(f"{name:<17}{value}\n" for name, value in _rows(found)))


def _rows(found: driver.grammar.Explanation) -> list[tuple[str, str]]:
    facts = found.facts
    assert facts is not None
    rows = [("constraint", f"{found.given.source.kind}, {facts.kind}"), ("digest", facts.digest)]
    if facts.states is not None:
        rows += [
            ("states", f"{facts.states:,}"),
            ("token classes", f"{facts.token_classes:,}"),
            ("masks", f"{facts.masks:,}"),
            ("table", f"{facts.table_bytes:,} bytes"),
        ]
    rows.append(("compiled in", _seconds(found.compile_seconds)))
    rows.append(("index built in", found.unbuilt or _seconds(found.build_seconds)))
    shortest = "not known" if facts.shortest_tokens is None else with_count(facts.shortest_tokens, "token")
    longest = "no bound is known" if facts.longest_tokens is None else with_count(facts.longest_tokens, "token")
    rows += [("shortest output", shortest), ("longest output", longest)]
    if facts.only is not None:
        rows.append(("only output", repr(facts.only)))
    elif facts.example is not None:
        rows.append(("example", repr(facts.example)))
    if facts.forced_share is not None:
        rows.append(("forced", f"{facts.forced_share:.0%} of its tokens"))
    if found.remark is not None:
        rows.append(("remark", found.remark))
    return rows


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.1f} ms"
