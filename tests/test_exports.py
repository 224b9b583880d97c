import importlib.metadata
import sys

import pytest

import lmc

# Users and later versions rely on these: to take one away is a change of the interface.
NAMES = {
    "AsyncStream",
    "BatchInterruptedError",
    "Budget",
    "BudgetError",
    "CaptureError",
    "Compiled",
    "ConstraintError",
    "ContextLengthError",
    "EngineError",
    "InputError",
    "LmcError",
    "LoweringError",
    "Profile",
    "Program",
    "RequestCancelledError",
    "RequestTimeoutError",
    "Result",
    "Resumption",
    "State",
    "Stream",
    "TokenEvent",
    "ToolTimeoutError",
    "Usage",
    "assistant",
    "call_tools",
    "close",
    "cond",
    "describe_tools",
    "engines",
    "gen",
    "jit",
    "map",
    "message",
    "race",
    "remote",
    "section",
    "select",
    "system",
    "tool",
    "user",
    "while_loop",
    "__version__",
}


def test_the_exported_names_are_the_promised_ones():
    assert set(dir(lmc)) == NAMES
    assert all(hasattr(lmc, name) for name in NAMES)


def test_the_version_is_that_of_the_distribution():
    assert lmc.__version__ == importlib.metadata.version("lmc-compiler")


def test_a_program_has_the_promised_methods_and_a_result_the_promised_fields():
    methods = {"run", "batch", "stream", "arun", "abatch", "astream", "on", "compile", "eager", "on_state"}
    assert all(callable(getattr(lmc.Program, name)) for name in methods)
    fields = {"value", "variables", "text", "usage", "profile", "error"}
    assert fields <= {*lmc.Result.__dataclass_fields__, *vars(lmc.Result)}
    counts = {"prompt_tokens", "cached_tokens", "generated_tokens", "calls", "cache_written_tokens", "reasoning_tokens"}
    assert counts == set(lmc.Usage.__dataclass_fields__)
    assert {"module", "plan", "remarks", "breaks"} <= set(lmc.Compiled.__dataclass_fields__)


def test_an_unknown_name_is_an_attribute_error_that_suggests_a_near_one(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(AttributeError, match=r"^module 'lmc' has no attribute 'selekt'$") as caught:
        lmc.selekt  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    sys.__excepthook__(AttributeError, caught.value, None)
    assert "Did you mean: 'select'?" in capsys.readouterr().err
    with pytest.raises(ImportError, match="cannot import name 'selekt' from 'lmc'"):
        exec("from lmc import selekt")
