"""Each parameter of the SDKs takes effect, has no effect, or is rejected, as docs/serving.md says; its clients run."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic.resources.messages as anthropic_messages
import openai.resources as openai_resources
import pytest
from anthropic.resources.messages.batches import Batches as MessageBatches
from openai.resources.chat.completions import Completions as ChatCompletions
from openai.resources.responses import Responses

from lmc.runtime.server.anthropic.batches import MessageBatchRequest
from lmc.runtime.server.anthropic.messages import Conversation, MessagesRequest
from lmc.runtime.server.openai.batches import BatchRequest
from lmc.runtime.server.openai.chat import ChatRequest
from lmc.runtime.server.openai.completions import CompletionRequest
from lmc.runtime.server.openai.responses import ResponsesRequest
from lmc.runtime.server.parameters import Parameters
from lmc.runtime.server.sglang.generate import GenerateRequest, SamplingFields
from tests.project.documents import Block, Page
from tests.project.layers import REPOSITORY
from tests.runtime.server.servers import SECONDS, Served
from tests.runtime.server.test_sglang import PYTHON

PAGE = Page(REPOSITORY / "docs" / "serving.md")
MODELS: dict[str, type[Parameters]] = {
    "chat": ChatRequest,
    "completions": CompletionRequest,
    "responses": ResponsesRequest,
    "messages": MessagesRequest,
    "count_tokens": Conversation,
    "batches": BatchRequest,
    "message batches": MessageBatchRequest,
    "generate": GenerateRequest,
    "sampling_params": SamplingFields,
}
FORM = {"file", "purpose", "expires_after"}  # of the endpoint ``files``, whose requests are no JSON
METHODS: list[tuple[str, Callable[..., Any]]] = [
    ("chat", ChatCompletions.create),
    ("chat", ChatCompletions.parse),
    ("chat", ChatCompletions.stream),
    ("completions", openai_resources.Completions.create),
    ("responses", Responses.create),
    ("responses", Responses.stream),
    ("files", openai_resources.Files.create),
    ("batches", openai_resources.Batches.create),
    ("messages", anthropic_messages.Messages.create),
    ("messages", anthropic_messages.Messages.stream),
    ("count_tokens", anthropic_messages.Messages.count_tokens),
    ("message batches", MessageBatches.create),
]
TRANSPORT = {"self", "extra_headers", "extra_query", "extra_body", "timeout", "response_id", "starting_after"}
CONVERTED = {"output_format", "text_format"}  # the SDK sends it in another parameter
TALK = {"model": "toy", "messages": [{"role": "user", "content": "x"}]}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {**TALK, "max_tokens": 2}),
    "completions": ("/v1/completions", {"model": "toy", "prompt": "x", "max_tokens": 2}),
    "responses": ("/v1/responses", {"model": "toy", "input": "x", "max_output_tokens": 2}),
    "messages": ("/v1/messages", {**TALK, "max_tokens": 2}),
    "count_tokens": ("/v1/messages/count_tokens", TALK),
    "generate": ("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 2}}),
    "sampling_params": ("/generate", {"text": "x"}),
}
REJECTED: dict[str, dict[str, Any]] = {
    "chat": {
        "audio": {"voice": "alloy", "format": "wav"},
        "moderation": {"model": "omni-moderation-latest"},
        "web_search_options": {},
        "function_call": "auto",
        "functions": [{"name": "look", "parameters": {"type": "object"}}],
        "modalities": ["text", "audio"],
        "reasoning_effort": "low",
        "verbosity": "high",
    },
    "responses": {
        "access_programs": {"x": 1},
        "background": True,
        "background_options": {"x": 1},
        "context_management": [{"type": "compaction"}],
        "conversation": "conv_1",
        "image": {"x": 1},
        "max_tool_calls": 2,
        "moderation": {"model": "omni-moderation-latest"},
        "previous_response_id": "resp_1",
        "prompt": {"id": "pmpt_1"},
        "reasoning": {"effort": "high"},
        "stream_options": {"include_usage": True},
        "truncation": "auto",
    },
    "completions": {"best_of": 3, "suffix": " end"},
    "messages": {
        "container": "container_1",
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "speed": "fast",
    },
    "count_tokens": {"thinking": {"type": "adaptive"}, "speed": "fast"},
    "generate": {"modalities": ["image"], "return_hidden_states": True},
    "sampling_params": {
        "ignore_eos": True,
        "no_stop_trim": True,
        "skip_special_tokens": 7,
        "stop_regex": ["a+"],
        "structural_tag": "{}",
        "custom_params": {"x": 1},
        "beam_width": 4,
    },
}
"""Parameters of the documentation, each with a plausible value that is not served."""


def documented(title: str) -> dict[str, set[str]]:
    """The parameters in the table of a section, by endpoint."""
    section = PAGE.text.partition(f"### {title}\n")[2].partition("\n#")[0]
    found: dict[str, set[str]] = {}
    for line in section.splitlines()[3:]:
        if not line.startswith("|"):
            continue
        names, endpoints = line.split("|")[1:3]
        for endpoint in endpoints.split(","):
            here = found.setdefault(endpoint.strip(), set())
            new = set(re.findall(r"`(\w+)`", names))
            assert new, line
            assert not here & new, line
            here |= new
    return found


HONOURED = documented("Parameters that take effect")
IGNORED = documented("Parameters without effect")
REFUSED = documented("Rejected parameters")


@pytest.mark.parametrize("endpoint", MODELS)
def test_the_documentation_lists_the_parameters_of_the_server(endpoint: str):
    model = MODELS[endpoint]
    assert HONOURED[endpoint] == set(model.model_fields)
    assert IGNORED.get(endpoint, set()) == model.IGNORED
    assert set(model.NEUTRAL) <= REFUSED.get(endpoint, set())


def test_each_rejected_parameter_is_tested():
    assert {endpoint: set(values) for endpoint, values in REJECTED.items()} == REFUSED
    assert HONOURED["files"] == FORM


@pytest.mark.parametrize(("endpoint", "method"), METHODS, ids=lambda each: getattr(each, "__qualname__", each))
def test_each_parameter_of_an_sdk_is_in_one_list(endpoint: str, method: Callable[..., Any]):
    found = {
        name: [title for title in (HONOURED, IGNORED, REFUSED) if name in title.get(endpoint, ())]
        for name in inspect.signature(method).parameters
        if name not in TRANSPORT | CONVERTED
    }
    assert found
    assert {name for name, lists in found.items() if len(lists) != 1} == set()


def body_with(endpoint: str, name: str, value: Any) -> tuple[str, dict[str, Any]]:
    path, body = BODIES[endpoint]
    if endpoint == "sampling_params":
        return path, {**body, "sampling_params": {"max_new_tokens": 2, name: value}}
    return path, {**body, name: value}


@pytest.mark.parametrize(
    ("endpoint", "name"), [(endpoint, name) for endpoint in REJECTED for name in REJECTED[endpoint]]
)
def test_a_rejected_parameter_is_named(endpoint: str, name: str, toy: Served):
    value = REJECTED[endpoint][name]
    answer = toy.post(*body_with(endpoint, name, value))
    error = answer.json()["error"]
    assert answer.status_code == 400, error
    assert name in error["message"]
    if endpoint in ("chat", "completions", "responses"):
        assert (error["param"], error["type"]) == (name, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"sampling_params": {"min_new_tokens": 9, "max_new_tokens": 2}}, "sampling_params.min_new_tokens"),
        ({"sampling_params": {"temperature": -1}}, "sampling_params.temperature"),
        ({"sampling_params": {"stop_token_ids": [2**70]}}, "sampling_params.stop_token_ids"),
        ({"sampling_params": {"logit_bias": {"-1": 1}}}, "sampling_params.logit_bias"),
        ({"top_logprobs_num": 2}, "top_logprobs_num"),
        ({"logprob_start_len": 0}, "logprob_start_len"),
    ],
)
def test_a_bad_value_is_named_as_the_protocol_calls_it(body: dict[str, Any], name: str, toy: Served):
    answer = toy.post("/generate", {"text": "x", **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"{name}: ")


def test_values_without_effect_are_accepted(toy: Served):
    for endpoint, (path, _) in BODIES.items():
        model = MODELS[endpoint]
        values = [(name, value) for name, accepted in model.NEUTRAL.items() for value in (None, *accepted)]
        values += [(name, value) for name in sorted(model.IGNORED) for value in ({"x": 1}, "x")]
        for name, value in values:
            answer = toy.post(*body_with(endpoint, name, value))
            assert answer.status_code == 200, (path, name, value, answer.text)


def imported(block: Block) -> str:
    return block.text.split()[1]


@pytest.mark.parametrize("block", [block for block in PAGE.blocks if block.language == "py"], ids=imported)
def test_the_clients_of_the_documentation_run(block: Block, toy: Served, tmp_path: Path):
    python = PYTHON if imported(block) == "sglang" else Path(sys.executable)
    if not python.exists():
        pytest.skip("SGLang's frontend is not installed: make sglang installs it")
    script = tmp_path / "client.py"
    text = block.text.replace("http://127.0.0.1:8000", toy.url).replace('"builtin"', f'"{toy.model}"')
    script.write_text(text, encoding="utf-8")
    done = subprocess.run([str(python), str(script)], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout
