"""Generated Python programs cost what was estimated: what a run measures lies in the ranges."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lmc.driver.options import Options
from lmc.driver.targets.hosted import remote
from lmc.ir.errors import ConstraintError, LoweringError
from tests.examples.measured import estimated, outside, run_rows
from tests.frontend.condition_strategies import CONDITIONS_HEADER, conditional_programs
from tests.frontend.container_strategies import CONTAINERS_HEADER, container_programs
from tests.frontend.loop_strategies import LOOPS_HEADER, looping_programs
from tests.frontend.object_strategies import OBJECTS_HEADER, object_programs
from tests.frontend.strategies import arguments, load
from tests.runtime.remote.hosted_runs import KEY_NAME, hosted
from tests.runtime.remote.providers.replies import obedient
from tests.runtime.remote.simulator import Simulator
from tests.runtime.remote.talk_strategies import TALKS_HEADER, talk_arguments, talk_programs

FULL = os.environ.get("LMC_TEST_FULL") == "1"
TOPICS = {
    "conditions": (CONDITIONS_HEADER, conditional_programs()),
    "containers": (CONTAINERS_HEADER, container_programs()),
    "loops": (LOOPS_HEADER, looping_programs()),
    "objects": (OBJECTS_HEADER, object_programs()),
}
PROVIDERS = {
    "quoted": ("openai:gpt-4.1", "/v1", {"api": "chat", "continuation": "turns"}),
    "reasoning": ("openai:gpt-5.6", "/v1", {"api": "responses", "continuation": "turns", "reasoning_tokens": 32}),
    "trimmed": ("anthropic:claude-haiku-4-5", "", {}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def simulator() -> Generator[Simulator]:
    with hosted(), Simulator(reply=obedient) as found:
        yield found


def check(source: str, folder: Path, header: str, given: tuple[Any, ...], options: Options) -> None:
    note(source)
    program = load(f"{header}@jit\n{source}", folder).program
    row: dict[str, Any] = dict(zip(("a", "b", "n", "words"), given, strict=True))
    try:
        figures = estimated(program, options, [row])
    except (LoweringError, ConstraintError) as error:
        note(str(error))
        return  # the target lacks what it needs
    measured = run_rows(program, options, [row])
    note(f"{measured.error!r}")
    assert not outside(figures, measured)
    [result] = measured.results
    if result.cost is not None:
        assert result.estimated_cost == figures.dollars, "the only row is all rows"


@pytest.mark.parametrize("topic", TOPICS)
@settings(max_examples=400 if FULL else 60)
@given(data=st.data(), given=arguments())
def test_the_cost_of_a_generated_program_lies_in_its_range(
    topic: str, folder: Path, data: st.DataObject, given: tuple[Any, ...]
) -> None:
    header, programs = TOPICS[topic]
    check(data.draw(programs), folder, header, given, Options("toy"))


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=300 if FULL else 30)
@given(source=talk_programs(), given=talk_arguments())
def test_the_cost_of_generated_messages_lies_in_its_range(
    provider: str, folder: Path, simulator: Simulator, source: str, given: tuple[Any, ...]
) -> None:
    spec, path, more = PROVIDERS[provider]
    place = remote(spec, base_url=simulator.url + path, api_key_env=KEY_NAME, attempts=1, **more)
    check(source, folder, TALKS_HEADER, given, Options(place))
