"""Hints of costs: each where it belongs, with its figures, and none for programs that cost what they have to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

import lmc
from benchmarks import programs
from benchmarks.peers import shapes
from lmc.cost.caching import CacheRule, SharedPrefixes
from lmc.cost.estimate import estimate_rows
from lmc.cost.hints import CODES, FoundHint, HintFinder
from lmc.cost.prices import Price, Rate
from lmc.cost.ranges import CostRange
from lmc.cost.requests import RowRequests
from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.service import service
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.module import Module
from lmc.ir.profile import OpProfile, Profile, length_bin
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.usage import Usage
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY

_OPENAI, _LOCAL, _NONE = CacheRule(1024, 128), CacheRule(1), CacheRule(0)
_PRICE = Price("big", "test", Rate(Decimal(3)), Rate(Decimal(15)), Rate(Decimal("0.3")), Rate(Decimal(3)))
_SMALL = Price("small", "test", Rate(Decimal("0.1")), Rate(Decimal("0.4")), Rate(Decimal("0.01")), Rate(Decimal("0.1")))
_RULES = " Judge by the rules of the house." * 60
"""About 2,000 bytes, each of which is a token here."""


def _hints(
    program: JittedFunction,
    rows: Sequence[dict[str, Any]],
    *,
    rule: CacheRule = _OPENAI,
    profile: Profile | None = None,
    cheaper: Sequence[tuple[str, Price]] = (),
) -> tuple[FoundHint, ...]:
    return _hints_of(*_walked(program, rows, profile), rule=rule, cheaper=cheaper)


def _walked(
    program: JittedFunction, rows: Sequence[dict[str, Any]], profile: Profile | None
) -> tuple[WalkFacts, list[tuple[Module, RowRequests]]]:
    runner = Runner(program, Options("toy"))
    target = runner.target()
    tokenizer = counting(service().engines.tokenizer(target))
    walked: list[tuple[Module, RowRequests]] = []
    info = EngineInfo(target.spec, 1 << 20, capabilities=target.capabilities)
    facts = WalkFacts(tokenizer, info, profile=profile)
    modules: dict[int, Module] = {}
    for row in rows:
        plan, values = runner.place(((), row))
        inputs = {parameter.value.name: values[parameter.name] for parameter in plan.parameters}
        module = modules.setdefault(id(plan), plan.module)
        facts = WalkFacts(tokenizer, info, Constraints.of(module.constraints, None), profile=profile)
        walked.append((module, walk_row(module, inputs, facts)))
    return facts, walked


def _hints_of(
    facts: WalkFacts,
    walked: list[tuple[Module, RowRequests]],
    *,
    rule: CacheRule,
    cheaper: Sequence[tuple[str, Price]] = (),
) -> tuple[FoundHint, ...]:
    finder = HintFinder(facts, rule, "openai:big", _PRICE, lambda: cheaper)
    return estimate_rows(walked, _PRICE, SharedPrefixes(rule, facts.tokenizer), finder).hints


def _codes(hints: Sequence[FoundHint]) -> list[str]:
    return [each.code for each in hints]


def _line(text: str) -> int:
    source = (REPOSITORY / "tests" / "cost" / "test_hints.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(source, 1) if line.strip().startswith(text))


def _essays(count: int, length: int = 20) -> list[dict[str, Any]]:
    return [{"essay": f"{number} essays are enough. " * length} for number in range(count)]


@lmc.jit
def rules_last(s: Any, essay: str) -> Any:
    s += f"{essay}"
    s += _RULES + _RULES + _RULES
    return s.gen("verdict", max_tokens=8)


@lmc.jit
def rules_first(s: Any, essay: str) -> Any:
    s += _RULES + _RULES + _RULES
    s += f"{essay}\nVerdict:"
    return s.gen("verdict", max_tokens=8)


def test_constant_text_behind_varying_text() -> None:
    (hint,) = _hints(rules_last, _essays(5))
    assert hint.code == "LMC101"
    assert hint.location is not None
    assert hint.location.line == _line('s += f"{essay}"'), "one op appends both"
    assert "5 calls" in hint.message
    assert "dollars" in hint.message
    assert "LMC101" in _codes(_hints(rules_last, _essays(5), rule=_LOCAL))
    assert not _hints(rules_last, _essays(1)), "one call has none to share with"
    assert not _hints(rules_last, _essays(5), rule=_NONE), "nothing is cached"
    assert not _hints(rules_last, _essays(1) * 5), "all rows are the same"


def test_constant_text_in_front_is_right() -> None:
    assert not _hints(rules_first, _essays(5))
    assert not _hints(rules_first, _essays(5), rule=_LOCAL)


@lmc.jit
def same_question(s: Any, essay: str, topic: str) -> Any:
    about = s.fork(1)[0]
    about += f"Describe {topic}."
    described = about.gen("about", max_tokens=16)  # the line of LMC102
    s += f"Topic: {described} Essay: {essay}"
    return s.gen("verdict", max_tokens=16)


def test_a_call_for_each_row_that_is_the_same() -> None:
    rows = [{**row, "topic": "boats"} for row in _essays(4)]
    (hint,) = _hints(same_question, rows, rule=_NONE)
    assert hint.code == "LMC102"
    assert hint.location is not None
    assert hint.location.line == _line('described = about.gen("about"')
    assert "all 4 rows" in hint.message
    assert "4 times" in hint.message
    others = [{**row, "topic": f"boats {number}"} for number, row in enumerate(_essays(4))]
    assert not _hints(same_question, others, rule=_NONE)
    assert not _hints(same_question, rows[:1], rule=_NONE)


@lmc.jit
def drawn(s: Any, essay: str) -> Any:
    name = s.fork(1)[0]
    name += "Invent a name."
    invented = name.gen("name", max_tokens=8, temperature=1.0)
    s += f"{invented}: {essay}"
    return s.gen("verdict", max_tokens=8)


def test_drawn_texts_differ_from_row_to_row() -> None:
    assert not _hints(drawn, _essays(4), rule=_NONE)


@lmc.jit
def endless(s: Any, essay: str) -> Any:
    s += essay
    while s.gen("more", max_tokens=4) != "done":  # the line of LMC103
        s += "\nAgain:"
    return s["more"]


@lmc.jit
def limited(s: Any, essay: str) -> Any:
    s += essay
    for _ in range(5):
        if s.gen("more", max_tokens=4) == "done":
            break
        s += "\nAgain:"
    return s["more"]


def test_loops_without_a_limit() -> None:
    (hint,) = _hints(endless, _essays(1), rule=_NONE)
    assert hint.code == "LMC103"
    assert hint.location is not None
    assert hint.location.line == _line('while s.gen("more"')
    assert not _hints(limited, _essays(1), rule=_NONE)


@lmc.tool(effect="reads")
def page(name: str) -> str:
    return name * 100


@lmc.jit
def reads(s: Any, essay: str) -> Any:
    s += essay
    s.gen("first", max_tokens=4)
    s += page(essay)
    s.gen("second", max_tokens=4)  # the line of LMC107
    s += "\nAgain:"
    return s.gen("third", max_tokens=4)


@lmc.jit
def reads_parts(s: Any, essay: str) -> Any:
    s += essay
    found = page(essay)
    s += found[:100] + found[-100:] + found[0]
    return s.gen("second", max_tokens=4)


def test_texts_of_any_length_in_prompts() -> None:
    (hint,) = _hints(reads, _essays(1), rule=_NONE)
    assert hint.code == "LMC107"
    assert hint.location is not None
    assert hint.location.line == _line('s.gen("second", max_tokens=4)  # the')
    assert not _hints(reads_parts, _essays(1), rule=_NONE)


@lmc.jit
def short_rules(s: Any, essay: str) -> Any:
    s += _RULES
    s += f"{essay}\nVerdict:"
    return s.gen("verdict", max_tokens=8)  # the line of LMC104


def test_prefixes_under_the_minimum() -> None:
    rows = _essays(3, length=2)
    tokens = counting(service().engines.tokenizer(Runner(short_rules, Options("toy")).target()))
    length = tokens.count(tokens.encode(_RULES)).expected
    (hint,) = _hints(short_rules, rows, rule=CacheRule(2 * length, 128))
    assert hint.code == "LMC104"
    assert hint.location is not None
    assert hint.location.line == _line('return s.gen("verdict", max_tokens=8)  # the line of LMC104')
    assert f"openai:big caches none under {2 * length:,}" in hint.message
    assert not _hints(short_rules, rows, rule=CacheRule(length // 2, 16)), "it is cached"
    assert not _hints(short_rules, rows[:1], rule=CacheRule(2 * length, 128)), "one call"
    long = _essays(3, length=600)
    assert not _hints(short_rules, long, rule=CacheRule(2 * length, 128)), "a small part of the prompts"


def test_prompts_share_no_more_tokens_than_they_have() -> None:
    """With a profile, a prompt may have fewer tokens than its text says."""
    facts, walked = _walked(short_rules, _essays(3, length=2), None)
    finder = HintFinder(facts, CacheRule(10**6, 128), "openai:big", _PRICE)
    tokens: list[int] = []
    for module, row in walked:
        finder.add_row(module, row)
        for request in row.requests:
            tokens.append(request.tokens.expected)
            finder.add(request, 2 * request.tokens.expected, CostRange(0, 0, 0), None)
    (hint,) = (each for each in finder.hints() if each.code == "LMC104")
    assert f"share about {round(sum(tokens) / len(tokens)):,} tokens" in hint.message


@lmc.jit
def generous(s: Any, essay: str) -> Any:
    s += essay
    return s.gen("verdict", max_tokens=512)  # the line of LMC105


def _profile(longest: int, outputs: int) -> Profile:
    lengths = ((length_bin(longest), outputs),)
    entry = OpProfile(Usage(0, 0, longest * outputs, outputs), longest=longest, lengths=lengths)
    return Profile("generous", {"generous/verdict": entry})


def test_limits_that_outputs_never_come_near() -> None:
    (hint,) = _hints(generous, _essays(1), profile=_profile(30, 40), rule=_NONE)
    assert hint.code == "LMC105"
    assert hint.location is not None
    assert hint.location.line == _line('return s.gen("verdict", max_tokens=512)')
    assert "allows 512 tokens" in hint.message
    assert "longest of 40 outputs in the profile has 30" in hint.message
    assert not _hints(generous, _essays(1), profile=_profile(300, 40), rule=_NONE), "they come near"
    assert not _hints(generous, _essays(1), profile=_profile(30, 3), rule=_NONE), "3 outputs tell nothing"
    assert not _hints(generous, _essays(1), rule=_NONE), "nothing is known"


@lmc.jit
def triage(s: Any, essay: str) -> Any:
    s += f"{essay} Is it urgent?"
    urgent = s.select("urgent", ["yes", "no"])  # the line of LMC106
    s += " Why?"
    return urgent, s.gen("why", max_tokens=16)


@lmc.jit
def only_selects(s: Any, essay: str) -> Any:
    s += f"{essay} Is it urgent?"
    return s.select("urgent", ["yes", "no"])


def test_models_that_are_dearer_than_a_select_needs() -> None:
    small = [("openai:small", _SMALL)]
    (hint,) = _hints(triage, _essays(2), rule=_NONE, cheaper=small)
    assert hint.code == "LMC106"
    assert hint.location is not None
    assert hint.location.line == _line('urgent = s.select("urgent"')
    assert "openai:small" in hint.message
    assert not _hints(triage, _essays(2), rule=_NONE), "there is no other model"
    assert not _hints(triage, _essays(2), rule=_NONE, cheaper=[("openai:same", _PRICE)]), "it costs the same"
    assert not _hints(only_selects, _essays(2), rule=_NONE, cheaper=small), "the model was chosen for selects"


_UNBOUNDED = {
    "generative_agents": 4,
    "map_reduce": 1,
    "self_refine": 1,
    "skeleton_of_thought": 1,
}
"""Examples with loops over lists of unknown lengths, or until a condition holds, and their lines with such calls."""
_UNBOUNDED_PROMPTS = {"debate", "react"}
"""Examples whose prompts hold texts of tools, or what they make of answers."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_get_no_false_alarm(name: str) -> None:
    """A prompt that is too short for the cache of a provider has one hint, however many rows have it."""
    facts, walked = _walked(EXAMPLES[name].program, EXAMPLES[name].rows, None)
    for rule in (_LOCAL, _NONE):
        hints = _hints_of(facts, walked, rule=rule)
        expected = ["LMC103"] * _UNBOUNDED.get(name, 0) + ["LMC107"] * (name in _UNBOUNDED_PROMPTS)
        assert _codes(hints) == expected, (rule, hints)
    found = [each for each in _hints_of(facts, walked, rule=_OPENAI) if each.code not in ("LMC103", "LMC107")]
    assert _codes(found) in ([], ["LMC104"]), found


_ROWS = {
    "llm_judge": shapes.judge_rows,
    "tree_of_thought": shapes.tree_rows,
    "multi_turn_chat_short": shapes.short_chat_rows,
    "mmlu": shapes.mmlu_rows,
    "react": shapes.react_rows,
}


@pytest.mark.parametrize("name", _ROWS)
def test_workloads_get_no_false_alarm(name: str) -> None:
    rows = _ROWS[name](random.Random(1), 4)
    hints = _hints(programs.PROGRAMS[name], rows, rule=_LOCAL)
    assert not hints, hints


def test_every_code_has_a_section_in_the_documentation() -> None:
    text = (REPOSITORY / "docs" / "cost-hints.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## LMC")]
    assert headings == [f"{code}: {meaning}" for code, meaning in CODES.items()]
