"""How many prompt tokens the essay judge computes: without a prefix cache, with one, and optimized.

python benchmarks/judge_tokens.py [--write]

Each row is one run of examples/judge.py over its 20 essays, on an engine of its own that starts empty, with the
built-in model in fp32. The rows must give the same values, or the script fails.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.results import machine, table, write_section
from examples.judge import ESSAYS, judge
from lmc import builtin_model
from lmc.driver.compile.compile import compile_program
from lmc.driver.run.execute import Job, execute
from lmc.driver.run.result import Result
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.variants import inputs_of
from lmc.ir.engine.target import Target
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.local import LocalEngine, load_local_engine

KV_TOKENS = 60_000  # room for every prompt of the batch


@dataclass(frozen=True)
class Setting:
    """One row: how the program is compiled, and whether the engine keeps prefixes."""

    name: str
    level: str
    prefix_cache: bool


SETTINGS = (
    Setting("-O0, no prefix cache", "O0", prefix_cache=False),
    Setting("-O0, prefix cache", "O0", prefix_cache=True),
    Setting("-O2, prefix cache", "O2", prefix_cache=True),
)


@dataclass(frozen=True)
class Row:
    """What one run gave and cost."""

    setting: Setting
    values: list[Any]
    prompt_tokens: int
    prefilled_tokens: int
    seconds: float


def measure(setting: Setting, essays: Sequence[dict[str, Any]]) -> Row:
    """Run the batch on a new engine."""
    engine = load_local_engine(
        builtin_model.path(), device="cpu", kv_tokens=KV_TOKENS, prefix_cache=setting.prefix_cache
    )
    with engine:
        jobs = _jobs(setting, engine, essays)
        results: dict[int, Result] = {}
        start = time.perf_counter()
        asyncio.run(execute(judge, jobs, engine, results.__setitem__, seed=0))
        seconds = time.perf_counter() - start
        failed = [result.error for result in results.values() if result.error is not None]
        if failed:
            raise failed[0]
        values = [results[number].value for number in range(len(essays))]
        prompt_tokens = sum(result.usage.prompt_tokens for result in results.values())
        return Row(setting, values, prompt_tokens, engine.statistics.prefilled_tokens, seconds)


def _jobs(setting: Setting, engine: LocalEngine, essays: Sequence[dict[str, Any]]) -> list[Job]:
    bound = [bind(judge, (), essay) for essay in essays]
    compiled = compile_program(
        judge, bound[0], Target.parse("builtin"), PipelineOptions(setting.level), engine.tokenizer
    )
    return [Job(number, each, compiled, inputs_of(compiled.captured, each)) for number, each in enumerate(bound)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the rows in RESULTS.md")
    options = parser.parse_args()
    essays = [json.loads(line) for line in ESSAYS.read_text(encoding="utf-8").splitlines()]
    rows = [measure(setting, essays) for setting in SETTINGS]
    for row in rows[1:]:
        if row.values != rows[0].values:
            raise SystemExit(f"{row.setting.name} gave other values than {rows[0].setting.name}")
    head = ["essay judge, 20 essays", "tokens in prompts", "tokens prefilled", "of the first row"]
    lines = [
        [
            row.setting.name,
            f"{row.prompt_tokens:,}",
            f"{row.prefilled_tokens:,}",
            f"{row.prefilled_tokens / rows[0].prefilled_tokens:.1%}",
        ]
        for row in rows
    ]
    text = table(head, lines)
    print(text, end="")
    print(f"All rows gave the same values. Seconds: {', '.join(f'{row.seconds:.1f}' for row in rows)}.")
    if options.write:
        write_section("judge_tokens", "python benchmarks/judge_tokens.py --write", f"{machine()}.\n\n{text}")


if __name__ == "__main__":
    main()
