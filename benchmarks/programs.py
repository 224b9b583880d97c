"""The workloads of `benchmarks/peers/shapes.py` as programs of lmc.

Output lengths are fixed and no control flow hangs on what a model of random weights says. Each returns all that was
generated, in the order of the calls of its shape.
"""

from typing import Any

import lmc
from benchmarks.peers.shapes import (
    ACTION,
    CHAT_HEAD,
    DIMENSIONS,
    JUDGE_HEAD,
    JUDGEMENT,
    LONG,
    MMLU_HEAD,
    OPTIONS,
    REACT_EXAMPLES,
    REPLY,
    SCORE,
    SHORT,
    STAGES,
    THOUGHT,
    TREE_HEAD,
)


@lmc.jit
def llm_judge(s: Any, article: str) -> Any:
    s += JUDGE_HEAD
    s += article
    views = s.fork(len(DIMENSIONS))
    for view, dimension in zip(views, DIMENSIONS, strict=True):
        view.append(f" Judge its {dimension}:")
        view.gen("judgement", max_tokens=JUDGEMENT, min_tokens=JUDGEMENT)
    judgements = [view["judgement"] for view in views]
    s += " Views:" + "".join(judgements)
    s += " Score:"
    return [*judgements, s.gen("score", max_tokens=SCORE, min_tokens=SCORE)]


@lmc.jit
def tree_of_thought(s: Any, question: str) -> Any:
    s += TREE_HEAD
    s += question
    branches = [s]
    thoughts = []
    for stage in STAGES:
        grown = []
        for branch in branches:
            for option, child in zip(OPTIONS, branch.fork(len(OPTIONS)), strict=True):
                child.append(f" {option} {stage}:")
                thoughts.append(child.gen("thought", max_tokens=THOUGHT, min_tokens=THOUGHT))
                grown.append(child)
        branches = grown
    return thoughts


@lmc.jit
def multi_turn_chat_short(s: Any, turns: list[str]) -> Any:
    s += CHAT_HEAD
    answers = []
    for turn, length in zip(turns, SHORT, strict=True):
        s += f" User:{turn} Assistant:"
        answers.append(s.gen("answer", max_tokens=length, min_tokens=length))
    return answers


@lmc.jit
def multi_turn_chat_long(s: Any, turns: list[str]) -> Any:
    s += CHAT_HEAD
    answers = []
    for turn, length in zip(turns, LONG, strict=True):
        s += f" User:{turn} Assistant:"
        answers.append(s.gen("answer", max_tokens=length, min_tokens=length))
    return answers


@lmc.jit
def mmlu(s: Any, shots: str, question: str) -> Any:
    s += MMLU_HEAD
    s += shots
    s += f"{question} Answer:"
    return [s.gen("letter", max_tokens=1, min_tokens=1)]


@lmc.jit
def react(s: Any, question: str, observations: list[str]) -> Any:
    s += REACT_EXAMPLES
    s += f" Question:{question} Thought:"
    thoughts = []
    for observation in observations:
        thoughts.append(s.gen("thought", max_tokens=ACTION, min_tokens=ACTION))
        s += f" Observation:{observation} Thought:"
    return [*thoughts, s.gen("thought", max_tokens=ACTION, min_tokens=ACTION)]


@lmc.jit
def agents(s: Any, prompts: list[str], task: str) -> Any:
    said = ""
    answers = []
    for agent, prompt in zip(s.fork(len(prompts)), prompts, strict=True):
        agent.append(prompt)
        agent.append(task + said)
        said = agent.gen("answer", max_tokens=REPLY, min_tokens=REPLY)
        answers.append(said)
    return answers


PROGRAMS = {
    "llm_judge": llm_judge,
    "tree_of_thought": tree_of_thought,
    "multi_turn_chat_short": multi_turn_chat_short,
    "multi_turn_chat_long": multi_turn_chat_long,
    "mmlu": mmlu,
    "react": react,
    "agents": agents,
}
