"""Programs in SGLang's frontend language: run by the package ``sglang`` over HTTP, and by ``lmc.sglang`` in process.

As a script, in the environment that ``make sglang`` makes: ``sglang_client.py URL CASES`` prints the outputs of all
programs as JSON, by their names; ``CASES`` are those of ``select``, as JSON.
"""

import importlib
import json
import sys
from typing import Any

sgl: Any = importlib.import_module("sglang" if __name__ == "__main__" else "lmc.sglang")


def chat(**options: Any) -> Any:
    """Turns with a regex, a select and a generation with choices."""

    @sgl.function
    def program(s: Any, topic: str) -> None:
        s += sgl.system("You answer.")
        s += sgl.user(f"Tell me about {topic}.")
        s += sgl.assistant(sgl.gen("first", max_tokens=16))
        s += sgl.user("How many?")
        s += sgl.assistant(sgl.gen("number", regex=r"[1-9][0-9]{0,2}", max_tokens=8))
        s += sgl.user("Is it so?")
        s += sgl.assistant(sgl.select("so", ["yes", "no", "maybe not"]))
        s += sgl.user("Which?")
        s += sgl.assistant("It is " + sgl.gen("which", choices=["red", "green", "blue and black"]))

    state = program.run(**options, temperature=0.0)
    return {name: state[name] for name in ("first", "number", "so", "which")} | {"text": state.text()}


def fork(**options: Any) -> Any:
    """Branches that join."""

    @sgl.function
    def program(s: Any, topic: str) -> None:
        s += f"About {topic}:"
        parts = s.fork(3)
        for number in range(3):
            parts[number] += f" part {number}:" + sgl.gen("text", max_tokens=8, stop=["\n"])
        parts.join()
        s += " " + ",".join(part["text"] for part in parts) + " and" + sgl.gen("end", max_tokens=6)

    state = program.run(**options, temperature=0.0)
    return {"end": state["end"], "text": state.text()}


def stream(**options: Any) -> Any:
    """The parts of a stream."""

    @sgl.function
    def program(s: Any, topic: str) -> None:
        s += f"About {topic}:" + sgl.gen("text", max_tokens=24)

    state = program.run(**options, stream=True, temperature=0.0)
    parts = list(state.text_iter("text"))
    return {"joined": "".join(parts), "whole": state["text"]}


def types(**options: Any) -> Any:
    """A generation of a type, a schema, and a batch."""
    schema = json.dumps({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]})

    @sgl.function
    def program(s: Any, topic: str) -> None:
        s += f"{topic} 1:" + sgl.gen("object", json_schema=schema, max_tokens=40)
        s += f" {topic} 2:" + sgl.gen("integer", dtype=int, max_tokens=6)

    backend = options.get("backend")
    states = program.run_batch([{"topic": "a"}, {"topic": "b"}], temperature=0.0, backend=backend)
    return [{"integer": isinstance(int(state["integer"]), int), "object": state["object"]} for state in states]


def select(*, cases: Any, **options: Any) -> Any:
    """The choice of each text among texts."""

    @sgl.function
    def program(s: Any, text: str, choices: list[str]) -> None:
        s += text + sgl.select("choice", choices)

    rows = [{"text": text, "choices": choices} for text, choices in cases]
    return [state["choice"] for state in program.run_batch(rows, temperature=0.0, backend=options.get("backend"))]


PROGRAMS = {each.__name__: each for each in (chat, fork, stream, types, select)}


def run(name: str, cases: Any, **options: Any) -> Any:
    """Run a program of this file."""
    if name == "select":
        return select(cases=cases, **options)
    return PROGRAMS[name](topic="cats", **options)


def main() -> None:
    url, cases = sys.argv[1:]
    backend = sgl.RuntimeEndpoint(url, chat_template_name="chatml")
    backend.flush_cache()
    assert backend.get_server_info()["context_length"] > 0
    print(json.dumps({name: run(name, json.loads(cases), backend=backend) for name in PROGRAMS}))


if __name__ == "__main__":
    main()
