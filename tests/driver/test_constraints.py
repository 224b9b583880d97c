from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.driver.options import Options
from lmc.driver.programs import UsageError
from lmc.driver.run.result import result_row
from lmc.driver.runner import Runner
from lmc.driver.saved import artifacts
from lmc.driver.saved.saved import SavedRunner
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.registry import load_tokenizer
from lmc.driver.targets.service import service
from lmc.frontend.program.function import JittedFunction
from lmc.grammar import sharing
from lmc.grammar.index.store import IndexFolder
from lmc.ir.core import Constraint
from lmc.ir.engine.target import Target
from lmc.ir.errors import ConstraintError, InputError, LmcError
from lmc.runtime.events import TokenEvent
from tests.compiled_constraints import CACHE
from tests.driver import constrained_programs as programs
from tests.frontend.corpus import typed
from tests.frontend.corpus.cases import CASES
from tests.frontend.harness import EFFECTS
from tests.runtime.engines import LateEngine

TYPED = [name for name, case in CASES.items() if case.program.function.__module__ == typed.__name__]
WAYS = ("eager", "O0", "O1", "O2")


def runner(function: JittedFunction, level: str = "O2", **options: Any) -> Runner:
    return Runner(function, Options("toy", level=level, **options))


def ran(function: JittedFunction, way: str, args: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """What a way of running gave, and did to the world."""
    EFFECTS.clear()
    try:
        result = (
            runner(function, seed=seed).eager((args, {}))
            if way == "eager"
            else runner(function, way, seed=seed).run((args, {}))
        )
    except LmcError as error:
        return type(error), error.cause, str(error.location), error.remedy, list(EFFECTS)
    except Exception as error:
        return type(error), str(error), list(EFFECTS)
    return repr(result.value), result.value, dict(result.variables), result.text, list(EFFECTS)


@pytest.mark.parametrize("name", TYPED)
def test_every_way_of_running_gives_the_same_values_texts_effects_and_errors(name: str, late: LateEngine):
    case = CASES[name]
    for seed in (0, 1):
        expected = ran(case.program, "eager", case.args, seed)
        assert {way: ran(case.program, way, case.args, seed) for way in WAYS} == dict.fromkeys(WAYS, expected)


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_what_is_refused_is_told_before_the_first_request(level: str, late: LateEngine):
    for call in (
        lambda: runner(programs.refused, level).run((("x",), {})),
        lambda: programs.refused.on("toy").compile(),
    ):
        with pytest.raises(
            ConstraintError, match="the constraint of 'refused/second' is refused: nothing meets"
        ) as caught:
            call()
        assert caught.value.location is not None
        assert caught.value.location.file == programs.__file__
        assert 's.gen("second"' in Path(programs.__file__).read_text().splitlines()[caught.value.location.line - 1]
    assert late.order == []


@pytest.mark.parametrize("way", WAYS)
def test_what_nobody_reads_is_refused_too(way: str):
    kind, cause, location, *_ = ran(programs.refused_unread, way, ("x",), 0)
    assert (kind, cause.partition(": ")[0]) == (
        ConstraintError,
        "the constraint of 'refused_unread/fork/0/nobody' is refused",
    )
    assert location.startswith(f"{programs.__file__}:")


def test_eagerly_it_is_told_where_it_stands(late: LateEngine):
    with pytest.raises(ConstraintError, match="the constraint of 'refused/second' is refused") as caught:
        runner(programs.refused).eager((("x",), {}))
    assert caught.value.location is not None
    assert late.order == ["refused/first"]


@pytest.mark.parametrize(("program", "shortest"), [(programs.no_room, 20), (programs.no_room_in_samples, 8)])
def test_no_room_for_an_output_is_the_same_error_in_every_way(program: lmc.Program, shortest: int):
    ends = {way: ran(program, way, ("x",), 0) for way in WAYS}
    kind, cause, location, remedy, _ = ends["eager"]
    assert ends == dict.fromkeys(WAYS, ends["eager"])
    assert kind is ConstraintError
    assert cause.endswith(
        f"within max_tokens (7): the shortest output that its constraint allows has {shortest} tokens"
    )
    assert remedy == f"give it max_tokens={shortest} or more"
    line = int(location.removeprefix(f"{programs.__file__}:"))
    assert "max_tokens=7" in Path(programs.__file__).read_text().splitlines()[line - 1]


def test_no_room_for_an_output_is_told_before_the_request(late: LateEngine):
    for level in ("O0", "O2"):
        with pytest.raises(ConstraintError, match="can't end within max_tokens"):
            runner(programs.no_room, level).run((("x",), {}))
    assert late.order == []
    with pytest.raises(ConstraintError, match="can't end within max_tokens"):
        runner(programs.no_room).eager((("x",), {}))
    assert late.order == ["no_room/first"]


def test_in_a_batch_what_is_refused_is_each_rows_error():
    results = runner(programs.refused).batch([((), {"essay": "x"}), ((), {"essay": "y"})])
    assert [type(result.error) for result in results] == [ConstraintError] * 2


def test_an_output_that_is_cut_off_is_an_error_of_its_row():
    results = runner(programs.cut_off).batch([((), {"essay": text}) for text in "abcdef"])
    for result in results:
        if result.error is None:
            assert len(result.value) == 60
        else:
            assert isinstance(result.error, ConstraintError)
            assert result.error.location is not None
            assert "max_tokens" in str(result.error)


def test_all_instances_programs_and_variants_share_one_automaton(monkeypatch: pytest.MonkeyPatch):
    compiled: list[str] = []
    compile_source = sharing.compile_source

    def counted(source: Any, *args: Any, **kwargs: Any) -> Any:
        compiled.append(source.text)
        return compile_source(source, *args, **kwargs)

    monkeypatch.setattr(sharing, "compile_source", counted)

    @lmc.jit(target="toy")
    def first(s: lmc.State, words: list[str]) -> str:
        for word in words:
            s += word
            s.gen("w", regex="one[0-9]automaton")
        return s["w"]

    @lmc.jit(target="toy")
    def second(s: lmc.State) -> str:
        s += "x"
        return s.gen("w", regex="one[0-9]automaton")

    first.batch([{"words": ["a"] * (number % 3 + 1)} for number in range(9)])
    second()
    second.on(level="O0").run()
    second.eager()
    assert compiled == ["one[0-9]automaton"]


def test_forced_generations_ask_no_model_and_are_told_to_streams(late: LateEngine):
    result = runner(programs.forced).run((("x",), {}))
    assert late.order == ["forced/free", "forced/more"]
    assert result.usage.calls == 2
    assert result.variables["forced"] == "ok"
    assert result.text == runner(programs.forced).eager((("x",), {})).text
    events: dict[str, str] = {}
    for event in runner(programs.forced).stream((("x",), {})):
        assert isinstance(event, TokenEvent)
        events[event.op_id] = events.get(event.op_id, "") + event.text
    assert events["forced/forced"] == "ok"
    assert "".join(events.values()) in result.text.replace(".", "")


def test_values_are_written_as_json():
    result = runner(programs.judged).run((("x",), {}))
    assert isinstance(result.value, programs.Verdict)
    row = result_row(0, result)
    assert row["value"] == row["variables"]["verdict"] == result.value.model_dump(mode="json")
    assert type(row["variables"]["sure"]) is bool


def saved(folder: Path, program: lmc.Program, level: Any = "O2", target: str = "toy") -> str:
    compiled = program.on(target, level=level).compile()
    path = folder / f"{compiled.module.name}.json"
    path.write_text(artifacts.plan_text(artifacts.saved_plan(compiled, None)), encoding="utf-8")
    return str(path)


def one(plan: SavedRunner, **inputs: Any) -> lmc.Result:
    [(_, result)] = list(plan.run_rows([[(0, ((), inputs))]]))
    return result


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_saved_plan_gives_plain_values_without_its_program(level: str, tmp_path: Path):
    plan = SavedRunner.load(saved(tmp_path, programs.judged, level), Options("toy", seed=3), None)
    result = one(plan, essay="x")
    program = programs.judged.on("toy", seed=3).run("x")
    assert result.error is None
    assert type(result.value) is dict
    assert programs.Verdict(**result.value) == program.value
    assert result.text == program.text
    assert {**result.variables, "verdict": None} == {**program.variables, "verdict": None}


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_saved_plan_gives_typed_values_with_its_program(level: str, tmp_path: Path):
    path = saved(tmp_path, programs.judged, level)
    result = one(SavedRunner.load(path, Options("toy", seed=3), programs.judged), essay="x")
    program = programs.judged.on("toy", seed=3).run("x")
    assert type(result.value) is programs.Verdict
    assert (result.value, result.variables, result.text) == (program.value, program.variables, program.text)
    assert result_row(0, result) == result_row(0, program)


@pytest.mark.parametrize("program", [programs.printed, programs.lowered, programs.compared])
def test_a_plan_that_works_with_instances_needs_its_program(program: lmc.Program, tmp_path: Path):
    path = saved(tmp_path, program)
    with pytest.raises(UsageError, match=r"the plan works with instances of .*programs:") as caught:
        SavedRunner.load(path, Options("toy"), None)
    assert "--program" in (caught.value.remedy or "")
    result = one(SavedRunner.load(path, Options("toy"), program), essay="x")
    expected = program.on("toy").run("x")
    assert (result.value, result.text) == (expected.value, expected.text)


@pytest.mark.parametrize("program", [programs.handed_on, programs.plain])
def test_a_plan_that_only_hands_data_on_needs_no_program(program: lmc.Program, tmp_path: Path):
    result = one(SavedRunner.load(saved(tmp_path, program), Options("toy"), None), essay="x")
    expected = program.on("toy").run("x")
    assert json.dumps(result_row(0, result)) == json.dumps(result_row(0, expected))
    assert result.text == expected.text


def test_classes_that_a_program_does_not_have(tmp_path: Path):
    path = Path(saved(tmp_path, programs.judged))
    with pytest.raises(InputError, match=r"the class .*:Verdict is not used by plain") as caught:
        SavedRunner.load(str(path), Options("toy"), programs.plain)
    assert caught.value.remedy == "compile the plan again, or run the program itself"
    head, _, rest = path.read_text().partition("\n")
    data = json.loads(head + "]}")
    data["classes"][0][2] = "0" * 64
    path.write_text(json.dumps(data)[:-2] + "\n" + rest)
    with pytest.raises(InputError, match=r"the class .*:Verdict has changed since the plan was compiled"):
        SavedRunner.load(str(path), Options("toy"), programs.judged)


def test_a_class_that_runs_code_is_called_back(tmp_path: Path):
    path = saved(tmp_path, programs.strict)
    with pytest.raises(LmcError, match=r"the plan calls tests\.driver\.constrained_programs:Strict"):
        SavedRunner.load(path, Options("toy"), None)
    result = one(SavedRunner.load(path, Options("toy"), programs.strict), essay="x")
    assert result.value == programs.strict.on("toy")("x")
    assert result.value.n > 10


def test_a_plan_compiled_for_other_tokens_does_not_run(tmp_path: Path):
    path = saved(tmp_path, programs.forced, target="builtin")
    with pytest.raises(InputError, match="was compiled for the tokens of another model") as caught:
        SavedRunner.load(path, Options("toy"), None).run_rows([[(0, ((), {"essay": "x"}))]])
    assert caught.value.remedy == "compile the program again for this target"
    unbound = saved(tmp_path, programs.forced, "O0", target="builtin")  # no pass has looked at its tokens
    assert one(SavedRunner.load(unbound, Options("toy"), None), essay="x").error is None


def test_a_plan_whose_constraint_is_refused_does_not_start(tmp_path: Path, late: LateEngine):
    path = Path(saved(tmp_path, programs.judged, "O0"))
    path.write_text(path.read_text().replace("[a-z]{2,5}", "([a-z]{2,5}"))
    with pytest.raises(ConstraintError, match="the constraint of 'judged/why' is refused"):
        SavedRunner.load(str(path), Options("toy"), None).run_rows([[(0, ((), {"essay": "x"}))]])
    assert late.order == []


def test_what_is_said_of_the_grammar_of_a_program():
    found = artifacts.grammar(programs.judged.on("toy").compile())
    assert json.loads(json.dumps(found)) == found
    assert found == artifacts.grammar(programs.judged.on("toy").compile())
    assert (found["program"], found["target"]) == ("judged", "toy")
    schema, word, sure = found["constraints"]
    assert (schema["kind"], schema["generations"], schema["whitespace"]) == ("schema", ["judged/verdict"], "compact")
    assert schema["definition"]["properties"]["score"]["maximum"] == 9
    assert (word["kind"], word["definition"], word["index"]) == ("regex", "[a-z]{2,5}", "complete")
    assert (word["facts"]["shortest_tokens"], word["facts"]["longest_tokens"]) == (2, 5)
    assert (sure["kind"], sure["definition"]) == ("dtype", "bool")
    module = programs.judged.on("toy").compile().module
    assert [entry["digest"] for entry in found["constraints"]] == [entry.digest for entry in module.constraints]


def test_indexes_go_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LMC_GRAMMAR_CACHE", str(tmp_path / "kept"))
    assert programs.forced.on("toy")("x") in ("x", "y")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_compiler_keeps_what_it_made_and_names_what_does_not_fit():
    compile = compiler(CACHE, load_tokenizer(Target("toy")))
    symbol = Constraint("c0", "regex", "kept")
    assert compile(symbol) is compile(symbol)
    with pytest.raises(InputError, match=r"a constraint \(regex\) was compiled for the tokens of another model"):
        compile(Constraint("c0", "regex", "kept", digest="0" * 64))


def test_the_service_keeps_a_cache_for_each_folder(tmp_path: Path):
    caches = service().constraints
    assert caches.of(None) is caches.of(None)
    assert caches.of(IndexFolder(tmp_path)) is not caches.of(None)


def test_a_keyword_that_is_likely_misspelt_is_warned_of_at_the_line_of_the_generation():
    with pytest.warns(UserWarning, match=r"schema of 'misspelt/word' .* \(did you mean maxLength\?\)") as caught:
        runner(programs.misspelt).run(((), {}))
    (warning,) = caught
    assert warning.filename.endswith("constrained_programs.py")
    assert 'schema={"type": "string"' in Path(warning.filename).read_text().splitlines()[warning.lineno - 1]
