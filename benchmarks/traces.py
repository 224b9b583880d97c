"""Traces of well-known workloads: the requests of many instances, for the simulator (`lmc/cache/simulation`).

Shots, branches, turns and lengths are those of the SGLang paper (arXiv 2312.07104), in tokens of four letters; those of
`map_reduce`, `debate` and `reflect` of Helium (arXiv 2603.16104), of `agents` of KVFlow (arXiv 2507.07400). `WORKLOADS`
says how many instances there are, and how many of how many where the paper names a number. Data sets are not needed:
texts are random tokens from a fixed seed. What a model says, and what a tool answers to that, are drawn from tokens of
their own, so what of a prompt is known before the run is what stands before the first of these.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lmc.cache.trace import TraceRequest, read_trace

Tokens = list[int]
VOCABULARY = 32_000  # tokens of texts that are known; tokens of answers come after them


@dataclass(frozen=True)
class Answer:
    """What a request answered."""

    request: int
    tokens: Tokens


class Trace:
    """Collects requests, instance by instance."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)
        self._rows: list[dict[str, object]] = []
        self._instance = 0

    def instances(self, count: int) -> Iterator[int]:
        """So many instances: what is asked meanwhile belongs to them."""
        for number in range(count):
            self._instance = number
            yield number

    def text(self, least: int, most: int | None = None) -> Tokens:
        """Text that is known before the run."""
        return self.rng.choices(range(VOCABULARY), k=self.rng.randint(least, most or least))

    def said(self, least: int, most: int | None = None) -> Tokens:
        """Text that nobody knows before it is said: an answer, or what a tool makes of one."""
        return self.rng.choices(range(VOCABULARY, 2 * VOCABULARY), k=self.rng.randint(least, most or least))

    def ask(self, prompt: Tokens, least: int, most: int | None = None, after: Sequence[Answer] = ()) -> Answer:
        """A request that waits for others and answers with some length; a profile foresees the mean."""
        answer = Answer(len(self._rows), self.said(least, most))
        known = next((place for place, token in enumerate(prompt) if token >= VOCABULARY), len(prompt))
        self._rows.append(
            {
                "id": answer.request,
                "instance": self._instance,
                "tokens": prompt,
                "known": known,
                "output": len(answer.tokens),
                "expected": (least + (most or least)) // 2,
                "after": [each.request for each in after],
            }
        )
        return answer

    def requests(self) -> list[TraceRequest]:
        """All that was asked."""
        return read_trace((None, row) for row in self._rows)


def mmlu(trace: Trace, count: int) -> None:
    """Five shots for each subject; the questions of the subjects come mixed."""
    head = trace.text(10)
    shots = [trace.text(400, 550) for _ in range(max(2, count // 15))]
    for _ in trace.instances(count):
        trace.ask(head + trace.rng.choice(shots) + trace.text(60, 100), 1)


def hellaswag(trace: Trace, count: int) -> None:
    """Twenty shots shared by all, four endings a question."""
    shots = trace.text(1800)
    for _ in trace.instances(count):
        question = shots + trace.text(40, 70)
        for _ in range(4):
            trace.ask(question + trace.text(15, 35), 1)


def react(trace: Trace, count: int) -> None:
    """A few-shot prompt; two to six rounds of thought with action, and observation."""
    shots = trace.text(1600)
    for _ in trace.instances(count):
        context = shots + trace.text(20, 40)
        answers: list[Answer] = []
        for _ in range(trace.rng.randint(2, 6)):
            answers = [trace.ask(context, 40, 200, answers)]
            context = context + answers[0].tokens + trace.said(40, 150)


def generative_agents(trace: Trace, count: int) -> None:
    """Five functions in turn for each event, and event after event: what happened before is an argument."""
    functions = [(trace.text(150, 400), most) for most in (2, 8, 16, 24, 30)]
    answers: list[Answer] = []
    for _ in trace.instances(count):
        for template, most in functions:
            argument = trace.said(60, 150) if answers else trace.text(60, 150)
            answers = [trace.ask(template + argument + trace.text(5), 2, most, answers)]


def tree_of_thought(trace: Trace, count: int) -> None:
    """Branch 2, depth 4: thirty thoughts a question."""
    head = trace.text(60)
    stages = [[trace.text(20) for _ in range(2)] for _ in range(4)]
    for _ in trace.instances(count):
        branches: list[tuple[Tokens, list[Answer]]] = [(head + trace.text(80, 140), [])]
        for options in stages:
            grown: list[tuple[Tokens, list[Answer]]] = []
            for context, before in branches:
                for option in options:
                    thought = trace.ask(context + option, 64, 256, before)
                    grown.append((context + option + thought.tokens, [thought]))
            branches = grown


def skeleton_of_thought(trace: Trace, count: int) -> None:
    """Five tips one after the other, then each expanded on its own."""
    head, tip, expand = trace.text(80), trace.text(4), trace.text(12)
    for _ in trace.instances(count):
        context = head + trace.text(10, 25)
        answers: list[Answer] = []
        tips: list[Tokens] = []
        for _ in range(5):
            answers = [trace.ask(context + tip, 10, 24, answers)]
            tips.append(answers[0].tokens)
            context = context + tip + tips[-1]
        for each in tips:
            trace.ask(context + expand + each, 60, 128, answers)


def llm_judge(trace: Trace, count: int) -> None:
    """An article in six dimensions, then a score of all views."""
    head, join = trace.text(60), trace.text(15)
    dimensions = [trace.text(25) for _ in range(6)]
    for _ in trace.instances(count):
        stem = head + trace.text(900, 1150)
        views = [trace.ask(stem + dimension, 96, 256) for dimension in dimensions]
        trace.ask(stem + join + joined(views), 2, after=views)


def json_decode(trace: Trace, count: int) -> None:
    """Five fields of a document, in one growing context."""
    head, names = trace.text(30), [trace.text(6) for _ in range(5)]
    for _ in trace.instances(count):
        context = head + trace.text(3000)
        answers: list[Answer] = []
        for name, length in zip(names, (8, 8, 8, 8, 24), strict=True):
            context = context + name
            answers = [trace.ask(context, length, after=answers)]
            context = context + answers[0].tokens


def json_object(trace: Trace, count: int) -> None:
    """One whole object from a short request."""
    head = trace.text(120)
    for _ in trace.instances(count):
        trace.ask(head + trace.text(5, 30), 140, 256)


def _chat(trace: Trace, count: int, least: int, most: int) -> None:
    """Four turns that are as long as what is typed."""
    head = trace.text(30)
    for _ in trace.instances(count):
        context = head
        answers: list[Answer] = []
        for _ in range(4):
            context = context + trace.text(256, 512)
            answers = [trace.ask(context, least, most, answers)]
            context = context + answers[0].tokens


def short_chat(trace: Trace, count: int) -> None:
    _chat(trace, count, 4, 8)


def long_chat(trace: Trace, count: int) -> None:
    _chat(trace, count, 256, 512)


def multi_chain_reasoning(trace: Trace, count: int) -> None:
    """Five chains, then a vote over them."""
    shots, vote = trace.text(250), trace.text(20)
    chains = [trace.text(3) for _ in range(5)]
    for _ in trace.instances(count):
        stem = shots + trace.text(60, 120)
        answers = [trace.ask(stem + each, 96, 256) for each in chains]
        trace.ask(stem + vote + joined(answers), 16, 32, answers)


def multi_document_qa(trace: Trace, count: int) -> None:
    """Ten documents, each read on its own, then all together; six questions to the same documents."""
    head = trace.text(40)
    documents: list[Tokens] = []
    for number in trace.instances(count):
        if number % 6 == 0:
            documents = [trace.text(1000, 1200) for _ in range(10)]
        question = trace.text(15, 30)
        notes = [trace.ask(head + document + question, 8, 24) for document in documents]
        trace.ask([*head, *chain(*documents), *question, *joined(notes)], 8, 16, notes)


def rag(trace: Trace, count: int) -> None:
    """Three passages of a collection, found before the run, and a chain of thought."""
    head = trace.text(400)
    passages = [trace.text(110, 150) for _ in range(max(6, count // 4))]
    often = [1 / (1 + rank) for rank in range(len(passages))]
    for _ in trace.instances(count):
        found: list[int] = []
        while len(found) < 3:
            found += [each for each in trace.rng.choices(range(len(passages)), often) if each not in found]
        trace.ask([*head, *chain(*(passages[each] for each in found)), *trace.text(15, 30)], 50, 120)


def query_rewriting(trace: Trace, count: int) -> None:
    """A question is rewritten first, then answered from one of twenty documents."""
    rewrite, read = trace.text(40), trace.text(40)
    documents = [trace.text(700, 900) for _ in range(20)]
    for _ in trace.instances(count):
        question = trace.text(15, 30)
        rewritten = trace.ask(rewrite + question, 8, 24)
        trace.ask(read + trace.rng.choice(documents) + rewritten.tokens, 16, 48, [rewritten])


def map_reduce(trace: Trace, count: int) -> None:
    """Eight workers, each with its part of a document, and a reducer."""
    work, reduce = trace.text(150), trace.text(120)
    for _ in trace.instances(count):
        task = trace.text(20, 40)
        parts = [trace.ask(work + task + trace.text(500, 600), 64, 128) for _ in range(8)]
        trace.ask(reduce + task + joined(parts), 100, 160, parts)


def debate(trace: Trace, count: int) -> None:
    """Three rounds of three agents; each speaks to the history of all rounds before."""
    head, roles = trace.text(150), [trace.text(30) for _ in range(3)]
    for _ in trace.instances(count):
        history = head + trace.text(60, 100)
        before: list[Answer] = []
        for _ in range(3):
            spoken = [trace.ask(history + role, 80, 200, before) for role in roles]
            history = history + joined(spoken)
            before = spoken


def reflect(trace: Trace, count: int) -> None:
    """A draft, then critique and revision, twice, in one growing context."""
    head, steps = trace.text(120), [trace.text(25) for _ in range(5)]
    for _ in trace.instances(count):
        context = head + trace.text(80, 160)
        answers: list[Answer] = []
        for step in steps:
            context = context + step
            answers = [trace.ask(context, 96, 256, answers)]
            context = context + answers[0].tokens


def agents(trace: Trace, count: int) -> None:
    """Many workflows at once: six agents with fixed prompts of their own in turn, twice; each goes on from the last."""
    systems = [trace.text(800, 1200) for _ in range(6)]
    for _ in trace.instances(count):
        task = trace.text(40, 80)
        answers: list[Answer] = []
        for system in systems * 2:
            answers = [trace.ask(system + task + joined(answers), 64, 192, answers)]


def joined(answers: Sequence[Answer]) -> Tokens:
    """All answers, one after the other."""
    return [*chain(*(answer.tokens for answer in answers))]


@dataclass(frozen=True)
class Workload:
    """How many instances a trace has, and the paper's number where it names one."""

    make: Callable[[Trace, int], None]
    instances: int
    paper: int | None = None


WORKLOADS = {
    "mmlu": Workload(mmlu, 300),
    "hellaswag": Workload(hellaswag, 200, 200),
    "react": Workload(react, 100, 100),
    "generative_agents": Workload(generative_agents, 200, 1000),
    "tree_of_thought": Workload(tree_of_thought, 32, 32),
    "skeleton_of_thought": Workload(skeleton_of_thought, 64, 64),
    "llm_judge": Workload(llm_judge, 25, 25),
    "json_decode": Workload(json_decode, 20, 10),
    "json_character": Workload(json_object, 100, 50),
    "json_city": Workload(json_object, 100, 50),
    "multi_turn_chat_short": Workload(short_chat, 40, 20),
    "multi_turn_chat_long": Workload(long_chat, 30, 20),
    "multi_chain_reasoning": Workload(multi_chain_reasoning, 32, 32),
    "multi_document_qa": Workload(multi_document_qa, 36),
    "rag": Workload(rag, 120),
    "query_rewriting": Workload(query_rewriting, 120),
    "map_reduce": Workload(map_reduce, 24),
    "debate": Workload(debate, 24),
    "reflect": Workload(reflect, 32),
    "agents": Workload(agents, 24),
}


def trace_of(name: str, instances: int | None = None) -> list[TraceRequest]:
    """The trace of a workload, the same each time."""
    trace = Trace(name)
    WORKLOADS[name].make(trace, instances or WORKLOADS[name].instances)
    return trace.requests()
