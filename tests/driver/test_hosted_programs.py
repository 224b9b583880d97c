"""Programs on hosted targets: what the model can't do is an error of the compilation, at the user's line."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

import lmc
from lmc import builtin_model
from lmc.driver import Options, Runner
from lmc.ir.errors import LmcError

GPT, OLD_GPT, CLAUDE, OLD_CLAUDE = (
    "openai:gpt-5.6",
    "openai:gpt-4.1",
    "anthropic:claude-opus-5",
    "anthropic:claude-opus-4-5",
)
SERVER, TOKENS = "server:http://127.0.0.1:1", {"server": "vllm", "tokenizer": str(builtin_model.path())}


class Loose(pydantic.BaseModel):
    name: str
    count: int = 1


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: str
    kind: Literal["a", "b"]


@lmc.jit
def sampled(s):
    s += lmc.user("x")
    return s.gen("a", temperature=0.5)


@lmc.jit
def as_provided(s):
    s += lmc.user("x")
    return s.gen("a", temperature=1.0)


@lmc.jit
def seeded(s):
    s += lmc.user("x")
    return s.gen("a", seed=3)


@lmc.jit
def scored(s):
    s += lmc.user("x")
    return s.gen("a", logprobs=0)


@lmc.jit
def long(s):
    s += lmc.user("x")
    return s.gen("a", max_tokens=1_000_000)


@lmc.jit
def raw(s):
    s += "Once"
    return s.gen("a")


@lmc.jit
def twice(s, name: str):
    s += lmc.user("x")
    s.gen("a")
    s += f", {name} and"
    return s.gen("b")


@lmc.jit
def rounds(s, words: list[str]):
    s += lmc.user("x")
    for word in words:
        s += word
        s.gen("a")
    return s["a"]


@lmc.jit
def begun(s):
    s += lmc.user("x")
    s += "Well, "
    return s.gen("a")


@lmc.jit
def as_user(s):
    with s.user():
        s += "x"
        s.gen("a")
    return s["a"]


@lmc.jit
def measured(s):
    s += lmc.user("x")
    return s.select("a", ["yes", "no"], method="greedy_token")


@lmc.jit
def picked(s):
    s += lmc.user("x")
    return s.select("a", ["yes", "no"])


@lmc.jit
def loose(s):
    s += lmc.user("x")
    return s.gen("a", schema=Loose)


@lmc.jit
def strict(s):
    s += lmc.user("x")
    return s.gen("a", schema=Strict)


@lmc.jit
def lark(s):
    s += lmc.user("x")
    return s.gen("a", grammar='start: "a" | "(" start ")"')


@lmc.jit
def digits(s):
    s += lmc.user("x")
    return s.gen("a", regex="[0-9]{1,3}", stop=[";", "!", "?", ".", ","])


@lmc.jit
def turns(s, question: str):
    s += lmc.system("Be brief.")
    for text in (question, "Why?"):
        s += lmc.user(text)
        s.gen("a", stop="\n")
    return s["a"]


REFUSED = [
    (sampled, GPT, "generation 'sampled/a' sets temperature, which openai:gpt-5.6 does not take"),
    (sampled, CLAUDE, "sets temperature"),
    (seeded, GPT, "sets a seed"),
    (scored, OLD_GPT, "asks for log-probabilities"),
    (long, GPT, "asks for 1,000,000 tokens, and openai:gpt-5.6 gives at most 128,000"),
    (raw, GPT, "follows text without a role"),
    (twice, GPT, "generation 'twice/b' continues a turn of the assistant"),
    (rounds, CLAUDE, "continues a turn of the assistant"),
    (begun, OLD_CLAUDE, "continues a turn that ends in white space"),
    (as_user, OLD_CLAUDE, "writes a user message"),
    (measured, GPT, r"select 'measured/a' compares scores \(greedy_token\)"),
    (loose, GPT, "the constraint of 'loose/a' is refused: openai:gpt-5.6 takes objects"),
    (lark, CLAUDE, "takes no grammar"),
    (digits, CLAUDE, "takes no regex"),
    (
        as_provided,
        lmc.remote(GPT, reasoning_tokens=128_000),
        "asks for 256 tokens and 128,000 for reasoning, and openai:gpt-5.6 gives at most 128,000",
    ),
    (
        picked,
        lmc.remote(GPT, reasoning_tokens=127_990),
        "select 'picked/a' asks for 19 tokens and 127,990 for reasoning",
    ),
    (sampled, lmc.remote(OLD_GPT, fallback=GPT), "sets temperature, which the fallback openai:gpt-5.6 does not take"),
    (twice, lmc.remote(OLD_CLAUDE, fallback=CLAUDE), "which the fallback anthropic:claude-opus-5 can't"),
    (digits, lmc.remote(GPT, fallback=CLAUDE), "anthropic:claude-opus-5 takes no regex"),
    (picked, lmc.remote(GPT, fallback="openai:gpt-4"), "the fallback openai:gpt-4 has neither"),
    (measured, lmc.remote(SERVER, **TOKENS, fallback="scoreless"), "the fallback server:http://127.0.0.1:2 gives no"),
    (picked, lmc.remote(SERVER, **TOKENS, fallback="scoreless"), "the fallback server:http://127.0.0.1:2 gives no"),
    (long, lmc.remote(SERVER, server="vllm", fallback="chained"), "the fallback openai:gpt-4.1 gives at most 32,768"),
]
TAKEN = [
    (sampled, OLD_GPT),
    (as_provided, GPT),
    (seeded, OLD_GPT),
    (twice, OLD_CLAUDE),
    (picked, GPT),
    (strict, GPT),
    (strict, CLAUDE),
    (digits, GPT),
    (turns, GPT),
    (turns, CLAUDE),
    (twice, lmc.remote(GPT, continuation="turns")),
    (rounds, lmc.remote(CLAUDE, continuation="turns")),
    (picked, lmc.remote(GPT, reasoning_tokens=127_981)),
    (turns, lmc.remote(GPT, fallback=CLAUDE)),
    (twice, lmc.remote(OLD_CLAUDE, fallback="closing")),
    (measured, lmc.remote(SERVER, **TOKENS, fallback="server:http://127.0.0.1:2")),
]
_PROJECT = """
[tool.lmc.targets]
scoreless = { kind = "server", base_url = "http://127.0.0.1:2", server = "vllm", capabilities = { scores = false } }
chained = { kind = "server", base_url = "http://127.0.0.1:3", server = "vllm", fallback = "openai:gpt-4.1" }
closing = { kind = "openai", model = "gpt-5.6", continuation = "turns" }
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(_PROJECT)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize(("program", "target", "cause"), REFUSED)
def test_what_a_model_lacks_is_refused_at_the_users_line(program: Any, target: Any, cause: str, level: str):
    with pytest.raises(LmcError, match=cause) as caught:
        program.on(target, level=level).compile()
    error = caught.value
    assert error.remedy
    assert error.location is not None
    assert error.location.file == __file__
    line = Path(__file__).read_text().splitlines()[error.location.line - 1]
    assert "s.gen(" in line or "s.select(" in line


@pytest.mark.parametrize(("program", "target"), TAKEN)
def test_what_a_model_has_is_compiled(program: Any, target: Any):
    assert program.on(target).compile().plan.instructions


def test_what_a_model_does_in_another_way_is_a_remark():
    found = [remark.message for remark in turns.on(GPT).compile().remarks if remark.pass_name == "target"]
    drawn = "no temperature is sent: openai:gpt-5.6 has no greedy outputs, so 2 calls draw"
    assert found[0] == drawn
    assert "set reasoning_tokens" in found[1]
    assert len(found) == 2
    allowed = turns.on(lmc.remote(GPT, reasoning_tokens=2000)).compile().remarks
    assert [remark.message for remark in allowed if remark.pass_name == "target"] == [drawn]
    [written] = [remark for remark in picked.on(CLAUDE).compile().remarks if remark.pass_name == "target"]
    assert written.message.startswith("the model writes the choice")
    assert written.op == "picked/a"
    assert [remark for remark in turns.on("toy").compile().remarks if remark.pass_name == "target"] == []


def test_draws_of_a_chat_model_are_never_merged():
    @lmc.jit
    def twins(s):
        s += lmc.user("x")
        left, right, third = s.fork(3)
        return left.gen("a"), right.gen("a"), third.select("b", ["c", "d"])

    def calls(target: Any) -> int:
        return sum(op.billable for op in twins.on(target).compile().module.main.body.ops)

    assert calls("toy") < calls(GPT) == 3
    assert calls(lmc.remote(SERVER, server="vllm")) == calls("toy")
    assert calls(lmc.remote(SERVER, server="vllm", fallback=GPT)) == 3


def test_compiling_loads_no_sdk_and_needs_no_key(tmp_path: Path):
    (tmp_path / "p.py").write_text(
        'import lmc\n\n\n@lmc.jit\ndef f(s):\n    s += lmc.user("x")\n    return s.gen("a")\n'
    )
    code = (
        "import sys\nfrom lmc.cli import main\nsys.argv = ['lmc', 'compile', 'p.py', '--model', 'openai:gpt-5.6']\n"
        "try:\n    main()\nexcept SystemExit as error:\n    assert not error.code\n"
        "assert not {'openai', 'anthropic', 'httpx2', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "openai:gpt-5.6" in done.stdout


def test_a_key_that_is_not_set_is_one_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LmcError, match="OPENAI_API_KEY is not set"):
        Runner(turns, Options(GPT)).run((("x",), {}))
