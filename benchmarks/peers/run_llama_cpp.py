"""llama.cpp as a library, in an environment of its own.

A prefix that prompts of a batch share is computed once. Conversations, where each call goes on from the one before,
keep what was computed from call to call; a room of its own for each is what llama.cpp reads fastest.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peers.gguf_model import converted
from benchmarks.peers.protocol import Generate, Job, serve
from benchmarks.peers.shapes import SHAPES, Row

WORTH_SHARING = 32  # tokens
WORKLOAD_CELLS = 40_000  # as many tokens as lmc's pool holds in `engine.py`
BATCH = 2048
CONVERSATIONS = ("multi_turn_chat_short", "multi_turn_chat_long", "react")
Answers = dict[int, list[int]]


@dataclass(frozen=True)
class Source:
    """How a prompt begins: with ``length`` tokens of the prompt ``owner`` (None: its own), in the wave after it."""

    owner: int | None = None
    length: int = 0
    wave: int = 0


@dataclass(frozen=True)
class Entry:
    """One row of a batch; ``last`` rows give logits."""

    token: int
    position: int
    sequence: int
    last: bool


def sources(prompts: list[list[int]]) -> list[Source]:
    """Which prompt each one takes its beginning from, so that every prefix is computed once and as early as can be.

    In sorted order nobody shares more with a prompt than the one before it.
    """
    found = [Source()] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda index: prompts[index])
    for before, index in pairwise(order):
        length = min(_common(prompts[before], prompts[index]), len(prompts[index]) - 1)
        if length < WORTH_SHARING:
            continue
        owner = before
        while (earlier := found[owner]).owner is not None and earlier.length >= length:
            owner = earlier.owner
        found[index] = Source(owner, length, found[owner].wave + 1)
    return found


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))


class Context:
    """A model with room for the sequences of one batch at a time."""

    def __init__(self, model: Any, llama: Any, job: Job, *, sequences: int, cells: int, unified: bool) -> None:
        self._llama = llama
        settings = llama.llama_context_default_params()
        settings.n_ctx = cells
        settings.n_batch = BATCH
        settings.n_seq_max = sequences
        settings.n_threads = settings.n_threads_batch = job["threads"]
        settings.kv_unified = unified  # one room for all sequences lets them share cells; without it each has its own
        if job["dtype"] == "float32":  # as exact as the others, so that outputs can be compared
            settings.type_k = settings.type_v = llama.GGML_TYPE_F32
        self._context = llama.llama_init_from_model(model, settings)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(BATCH, 0, 1)
        self._vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def generate(self, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        """Greedy tokens of every prompt, from an empty cache."""
        self._llama.llama_memory_clear(self._memory, True)
        placed = dict(enumerate(prompts))
        answers: Answers = {sequence: [] for sequence in placed}
        self._read_prompts(prompts, answers)
        self._go_on(placed, answers, new_tokens - 1)
        return list(answers.values())

    def _go_on(self, prompts: dict[int, list[int]], answers: Answers, steps: int) -> None:
        for step in range(steps):
            entries = [
                Entry(answers[sequence][-1], len(prompt) + step, sequence, last=True)
                for sequence, prompt in prompts.items()
            ]
            self._decode(entries, answers)

    def _read_prompts(self, prompts: list[list[int]], answers: Answers) -> None:
        found = sources(prompts)
        for wave in range(1 + max(source.wave for source in found)):
            entries: list[Entry] = []
            for sequence, (prompt, source) in enumerate(zip(prompts, found, strict=True)):
                if source.wave != wave:
                    continue
                if source.owner is not None:
                    self._llama.llama_memory_seq_cp(self._memory, source.owner, sequence, 0, source.length)
                entries += [
                    Entry(prompt[position], position, sequence, last=position == len(prompt) - 1)
                    for position in range(source.length, len(prompt))
                ]
            self._decode_all(entries, answers)

    def _decode_all(self, entries: list[Entry], answers: Answers) -> None:
        for start in range(0, len(entries), BATCH):
            self._decode(entries[start : start + BATCH], answers)

    def _decode(self, entries: list[Entry], answers: Answers) -> None:
        """Compute the rows, and append the likeliest token to the answer of each sequence whose last row is there."""
        import numpy as np

        batch = self._batch
        batch.n_tokens = len(entries)
        for index, entry in enumerate(entries):
            batch.token[index] = entry.token
            batch.pos[index] = entry.position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = entry.sequence
            batch.logits[index] = entry.last
        code = self._llama.llama_decode(self._context, batch)
        if code:
            raise RuntimeError(f"llama_decode gave {code} for {len(entries)} rows")
        asked = [entry.sequence for entry in entries if entry.last]
        if not asked:
            return
        logits = np.ctypeslib.as_array(self._llama.llama_get_logits(self._context), (len(asked), self._vocabulary))
        for sequence, token in zip(asked, logits.argmax(axis=1).tolist(), strict=True):
            answers[sequence].append(token)


class Conversations(Context):
    """Rooms that keep what they hold: a prompt that begins with all of what one holds goes on from there.

    A batch in which no prompt does begins anew; what its prompts have in common is then computed once and copied.
    """

    def __init__(self, model: Any, llama: Any, job: Job) -> None:
        rooms = max(map(len, job["batches"]))
        room = -(-max(longest(job, row) for batch in job["batches"] for row in batch) // 256) * 256
        super().__init__(model, llama, job, sequences=rooms, cells=rooms * room, unified=False)
        self._held: dict[int, list[int]] = {}

    def generate(self, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        """Greedy tokens of every prompt."""
        places = continued(prompts, self._held)
        if not places:
            places = self._begin(prompts)
        placed = {room: prompt for (room, _), prompt in zip(places, prompts, strict=True)}
        answers: Answers = {room: [] for room in placed}
        entries = [
            Entry(prompt[position], position, room, last=position == len(prompt) - 1)
            for (room, start), prompt in zip(places, prompts, strict=True)
            for position in range(start, len(prompt))
        ]
        self._decode_all(entries, answers)
        self._go_on(placed, answers, new_tokens - 1)
        self._held = {room: prompt + answers[room][:-1] for room, prompt in placed.items()}
        return [answers[room] for room in placed]

    def _begin(self, prompts: list[list[int]]) -> list[tuple[int, int]]:
        self._llama.llama_memory_clear(self._memory, True)
        common = min(_common(prompts[0], prompt) for prompt in prompts)
        common = min(common, *(len(prompt) - 1 for prompt in prompts))
        self._decode_all([Entry(prompts[0][position], position, 0, last=False) for position in range(common)], {})
        for room in range(1, len(prompts)):
            self._llama.llama_memory_seq_cp(self._memory, 0, room, -1, -1)
        return [(room, common) for room in range(len(prompts))]


def longest(job: Job, row: Row) -> int:
    """Tokens of the longest call of a row, with its answer."""
    found: list[int] = []
    program = SHAPES[job["workload"]].calls(row, job["texts"].__getitem__)
    calls = next(program)
    with suppress(StopIteration):
        while True:
            found += [len(call.prompt) + call.new_tokens for call in calls]
            calls = program.send([[0] * call.new_tokens for call in calls])
    return max(found)


def continued(prompts: list[list[int]], held: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Room and length of what each prompt goes on from; nothing unless all of them go on from different rooms."""
    places: list[tuple[int, int]] = []
    for prompt in prompts:
        room = next((room for room, tokens in held.items() if prompt[: len(tokens)] == tokens), None)
        if room is None or room in dict(places):
            return []
        places.append((room, len(held[room])))
    return places


def load(job: Job) -> Generate:
    """Convert the model where that was not done yet, and load it."""
    from llama_cpp import llama_cpp as llama  # pyright: ignore[reportMissingImports]

    llama.llama_backend_init()
    path = converted(Path(job["model"]), job["dtype"])
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if job.get("workload") in CONVERSATIONS:
        return Conversations(model, llama, job).generate
    if "workload" in job:
        return Context(model, llama, job, sequences=64, cells=WORKLOAD_CELLS, unified=True).generate
    sequences = max(map(len, job["batches"]))
    longest = -(-(max(len(prompt) for batch in job["batches"] for prompt in batch) + job["new_tokens"]) // 256) * 256
    unified = any(source.owner is not None for source in sources(job["batches"][-1]))
    return Context(model, llama, job, sequences=sequences, cells=sequences * longest, unified=unified).generate


if __name__ == "__main__":
    serve(load)
