"""The format ``lmc-view``: a compiled program, the changes of each pass and its costs, as JSON data.

Every presentation shows this and computes no figure of its own. Equal inputs give equal bytes: there is no time of day
and no absolute path in it. Fields that have their default are left out of the JSON. All texts are printable
(``lmc.report.text``), so a reader only has to escape what its own syntax reserves.
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

FORMAT = "lmc-view"
VERSION = 1

Kind = Literal["call", "text", "prefix", "tool", "python", "control", "hint", "break", "end", "folded"]
"""The purpose of an op: a model call, a change of a context, a prefix that is computed once, a call of the user's code,
a Python value, an op with regions, a hint to the cache, a graph break, the end of a block; ``folded`` is a run of ops.
"""
InputKind = Literal["context", "value", "order"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceLine(_Model):
    """A line of a source: ``source`` is its index in ``CompiledView.sources``, ``line`` counts from 1.

    ``column`` counts characters from 1: the beginning of the call or statement of an op, if it is known.
    """

    source: int
    line: int
    column: int | None = None


class Input(_Model):
    """A dependence on the op with the key ``key``: on its context, on another result, or on its effects."""

    key: str
    kind: InputKind


class OpNode(_Model):
    """An op. ``parent`` is the key of the op that holds it in its ``region``; both are None in the program's body.

    ``label`` is short; ``text`` is the op as in ``.lmir``, without its regions; of folded ops it has their ids.
    ``id`` is its stable id, if it has one. ``wave`` and ``group`` are those of plan-fork-join. ``ops`` is 1, or the
    number of ops that are folded.
    """

    key: str
    op: str
    kind: Kind
    label: str
    text: str = ""
    id: str | None = None
    place: SourceLine | None = None
    parent: str | None = None
    region: str | None = None
    inputs: tuple[Input, ...] = ()
    wave: int | None = None
    group: str | None = None
    ops: int = 1


class Hunk(_Model):
    """A change of a text by lines: at line ``at`` of the old text (from 0), ``removed`` lines become ``added``."""

    at: int
    removed: int = 0
    added: tuple[str, ...] = ()


class StageView(_Model):
    """The module after a pass, as the difference from the stage before it. The first one is the whole module.

    ``ops`` and ``calls`` count the ops of the module and its model calls. ``order`` lists the keys of all nodes, outer
    before inner; None: those of the stage before, without the removed ones. ``fans`` are the fan-outs, ops that do the
    same to the same inputs; None: as before. ``text`` changes the module's ``.lmir`` text: hunks do not overlap and
    their lines are those of the old text, so they are applied from the last to the first. ``lines`` are the lines
    (from 0) at which the nodes begin there, in the order of the nodes; None: as before.
    """

    name: str
    ops: int
    calls: int
    added: tuple[OpNode, ...] = ()
    changed: tuple[OpNode, ...] = ()
    removed: tuple[str, ...] = ()
    order: tuple[str, ...] | None = None
    fans: tuple[tuple[str, ...], ...] | None = None
    text: tuple[Hunk, ...] = ()
    lines: tuple[int, ...] | None = None


class RemarkView(_Model):
    """A transformation of the pass of a stage (``applied``), or one that was not possible (``missed``).

    ``stage`` is an index in ``CompiledView.stages``. ``text`` is the line that ``--remarks`` prints. ``op`` is the
    stable id of the op that it is about, if that has one.
    """

    stage: int
    kind: Literal["applied", "missed"]
    message: str
    text: str
    op: str | None = None
    place: SourceLine | None = None
    saved_tokens: int = 0
    saved_calls: int = 0
    saved_steps: int = 0


class BreakView(_Model):
    """A graph break: from here the program runs as plain Python. ``key`` is the op that ends the graph."""

    cause: str
    remedy: str
    place: SourceLine | None = None
    key: str | None = None


class Hint(_Model):
    """A warning of the compilation about a line of the program."""

    message: str
    place: SourceLine | None = None


class TokenCount(_Model):
    """The length of a text: ``known`` tokens, and the number of ``texts`` beside them that only a run knows."""

    known: int = 0
    texts: int = 0


class PlannedCost(_Model):
    """Requests as ``lmc simulate`` serves them, in sum: ``cached`` of the ``prompt`` tokens are found in the cache.

    ``dollars`` is None where no price is known.
    """

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    longest_prompt: int = 0
    dollars: float | None = None


class MeasuredCost(_Model):
    """The measurements of a profile over all its runs, or of a timeline. ``p50`` and ``longest`` are of an output.

    ``seconds`` of a profile are those of the calls, of a timeline those of their requests; ``p50_seconds`` is their
    median.
    ``dollars`` is None where no price is known.
    """

    requests: int
    prompt: int
    cached: int
    output: int
    seconds: float
    p50: int | None = None
    p50_seconds: float | None = None
    longest: int = 0
    dollars: float | None = None


class CallCost(_Model):
    """A model call of the final module, or all those of a folded node (``ops``).

    ``prompt`` is the length of its prompt in one instance, ``prefilled`` the part that is computed ahead. ``output`` is
    the most tokens that it may generate in all, 0 for ``lm.select``. ``wave`` counts from the start of the program, as
    if each region ran once. ``critical``: it is on the critical path. ``planned`` counts the requests of all rows.
    """

    key: str
    id: str
    wave: int
    prompt: TokenCount
    prefilled: TokenCount = TokenCount()
    output: int = 0
    choices: int = 0
    constraint: str | None = None
    critical: bool = False
    ops: int = 1
    planned: PlannedCost | None = None
    measured: MeasuredCost | None = None


class LineCost(_Model):
    """The sum of the calls of one line of a source."""

    place: SourceLine
    calls: int
    prompt: TokenCount
    output: int = 0
    planned: PlannedCost | None = None
    measured: MeasuredCost | None = None


class Prefix(_Model):
    """A prefix that is computed once, by the op ``key``, for all calls of an instance or of a batch.

    It has ``tokens`` beyond the prefix before it that is computed once too, which is ``outer``; with that one it is
    ``whole``. ``calls`` are the keys of the calls whose nearest prefix it is.
    """

    key: str
    scope: Literal["instance", "batch"]
    tokens: TokenCount
    whole: TokenCount
    outer: str | None = None
    calls: tuple[str, ...] = ()


class ConstraintInfo(_Model):
    """A constraint of the module: its kind, its definition, and texts that it allows."""

    name: str
    kind: str
    text: str
    examples: tuple[str, ...] = ()


class SourceFile(_Model):
    """A file of the program: ``first`` is the number of the first of its ``lines``."""

    file: str
    lines: tuple[str, ...] = ()
    first: int = 1


class ProgramView(_Model):
    """The program, its target, and the figures that ``lmc compile`` prints. ``target`` and ``level`` may be unknown.

    ``critical_calls`` is the number of model calls on the critical path. A timeline alone does not know it, nor the
    prefixes, nor does a schedule know these.
    """

    name: str
    parameters: dict[str, str]
    ops: int
    model_calls: int
    waves: int
    critical_calls: int | None = None
    batch_prefixes: int | None = None
    instance_prefixes: int | None = None
    saved_tokens: int = 0
    saved_calls: int = 0
    saved_steps: int = 0
    captured_ops: int | None = None
    target: str | None = None
    level: str | None = None
    host_functions: dict[str, str] = {}


class PlannedRow(_Model):
    """A row of the batch in the order of the schedule, and what its prompts share with the row before.

    ``shared`` counts characters, as in the file that ``lmc schedule`` writes.
    """

    row: int
    shared: int = 0


class PlannedRequest(_Model):
    """A request of the plan on the clock of the simulation, in seconds.

    ``depth`` is the number of requests in the longest chain that it waits for; waves are those of the program.
    ``cached`` of its ``prompt`` tokens are in the cache when it starts; those are the first of the prompt.
    """

    key: str
    row: int
    depth: int
    ready: float
    started: float
    first_token: float
    ended: float
    prompt: int
    cached: int = 0
    output: int = 0
    prefix: int
    """The node of the prompt tree at which its prompt ends."""


class MeasuredPart(_Model):
    """Tokens of a part of prompts in a run, over all requests: computed (also again), found in the cache."""

    computed: int = 0
    cached: int = 0
    recomputed: int = 0


class PromptNode(_Model):
    """A part that prompts of the batch share; the prompt of a request is the path from the root to its node.

    ``parent`` is an index in ``BatchPlan.prompts``; None: prompts begin here. The part has ``tokens``, and ``requests``
    prompts hold it. Each of these tokens is ``computed`` or ``cached`` (found in the cache) for each of the prompts;
    ``recomputed`` are those of the computed ones that had been computed or generated before, and were evicted since or
    needed for the logits of a prompt's last token. ``evicted`` are tokens that were evicted, each as often as it was;
    answers that no prompt takes up are evicted, too, and in no part. ``generated`` are tokens of the part that are an
    answer.
    ``ends`` counts the requests whose prompts end here, by the key of the call. ``folded`` is the number of parts that
    the node stands for, beside its own: then ``tokens`` is their sum. ``measured`` is the same of a run. Prompts of a
    run may be longer or shorter than planned, so its parts are estimates: only those that an earlier request began are
    found in the cache, and tokens are only ``recomputed`` after evictions or preemptions.
    """

    parent: int | None = None
    text: str = ""
    tokens: int
    requests: int
    computed: int = 0
    cached: int = 0
    recomputed: int = 0
    evicted: int = 0
    generated: int = 0
    ends: dict[str, int] = {}
    folded: int = 0
    measured: MeasuredPart | None = None


class BatchPlan(_Model):
    """A batch of rows as ``lmc schedule`` orders it and ``lmc simulate`` serves it, with the figures these print.

    ``kv_tokens`` is None for a pool that holds all. ``depth`` is the number of requests in the longest chain.
    ``requests`` and ``rows`` may be only the first ones; the other figures are always of the whole batch.
    """

    rows: tuple[PlannedRow, ...]
    row_count: int
    order: str
    block: int
    characters: float
    kv_tokens: int | None = None
    batch: int
    prefill_tokens: int
    total: PlannedCost
    hit_rate: float
    evicted_tokens: int
    preemptions: int
    steps: int
    depth: int
    predicted_seconds: float
    requests: tuple[PlannedRequest, ...]
    prompts: tuple[PromptNode, ...]


class RunRequest(_Model):
    """A request of a run, in seconds since its first one was ready. ``key`` is its op; None: no op that is shown.

    ``id`` is its id in the run, ``sample`` tells the requests of one op apart; without a ``row`` all rows share it. It
    waits from ``ready`` to ``submitted`` for others of the run and then in the engine until ``admitted``, which is None
    where the engine does not measure. Of the ``prompt`` tokens ``cached`` were found; ``computed`` counts those that
    were computed, also again after a preemption. ``wait`` is the reason for which it waited longest, ``error`` the
    class of its error. ``unfinished``: the run ended before it.
    """

    key: str | None = None
    id: str
    kind: Literal["generate", "score", "prefill"]
    row: int | None = None
    sample: int = 0
    wave: int | None = None
    ready: float
    submitted: float
    admitted: float | None = None
    first_token: float | None = None
    ended: float
    prompt: int = 0
    cached: int = 0
    computed: int | None = None
    output: int = 0
    wait: Literal["limit", "batch", "memory", "budget"] | None = None
    finish: Literal["stop", "length", "eos"] | None = None
    error: str | None = None
    unfinished: bool = False


class RunTool(_Model):
    """A call of a function of the program in a run; ``early``: it was speculative. The rest is as of requests."""

    key: str | None = None
    name: str
    row: int | None = None
    started: float
    ended: float
    early: bool = False
    error: str | None = None
    unfinished: bool = False


class RunSteps(_Model):
    """The steps of the engine in sum: ``rows`` computed, ``prefill`` of them for prompts, and their ``seconds``.

    Requests that were admitted ``found`` tokens of their prompts in the cache, tokens were ``evicted`` and sequences
    ``preempted``; at most ``most_running`` ran at once, and ``most_waiting`` waited.
    """

    steps: int
    rows: int
    prefill: int
    found: int
    evicted: int
    preempted: int
    most_running: int
    most_waiting: int
    seconds: float


class Divergence(_Model):
    """The first request of a run that is not as planned: its time, as of requests, its id in the run and its row."""

    seconds: float
    id: str
    row: int | None = None
    reason: str


class MeasuredRun(_Model):
    """A run of the program: its timeline. ``requests`` and ``tools`` may be only the first ones, figures are of all.

    ``request_count``, ``prompt``, ``cached`` and ``output`` are of the requests without prefills, as profiles count;
    the fields of prefills begin with ``prefill``. ``computed`` is of both, and equals ``prefilled_tokens`` of the
    engine (None: it does not measure). It is the sum of the tokens that were not found, and of ``beyond``: choices of a
    ``select``, tokens computed again after preemptions, and prompts of cancelled requests. Where there is a plan,
    ``elsewhere`` is the part of ``computed`` for requests that the plan does not have; the tree of prompts has the
    rest. ``elsewhere_cached`` is the same of the found tokens, and has those that were found although no request of the
    tree had begun their prompts. ``complete``: the run came to its end.
    """

    request_count: int
    prompt: int
    cached: int
    output: int
    prefill_count: int = 0
    prefill_prompt: int = 0
    prefill_cached: int = 0
    computed: int | None = None
    beyond: int = 0
    elsewhere: int = 0
    elsewhere_cached: int = 0
    divergence: Divergence | None = None
    seconds: float
    complete: bool = False
    requests: tuple[RunRequest, ...] = ()
    tool_count: int = 0
    tools: tuple[RunTool, ...] = ()
    steps: RunSteps | None = None


class OldModule(_Model):
    """The figures of the first of two modules that are compared; a call of both has one key."""

    program: ProgramView
    calls: tuple[CallCost, ...] = ()


class CompiledView(_Model):
    """A compiled program, or two modules to compare. ``notices`` tell what is left out.

    ``comparison``: the two stages are two modules, the figures are those of the second, and ``old`` has those of the
    first, unless the modules are so large that only the second is shown. ``redacted``: texts are
    replaced by their lengths. ``critical_path`` lists the keys of the longest chain of ops that wait for each other,
    counted in model calls, then in tools, then in ops.
    """

    format: Literal["lmc-view"]
    version: Literal[1]
    program: ProgramView
    sources: tuple[SourceFile, ...]
    stages: tuple[StageView, ...]
    remarks: tuple[RemarkView, ...] = ()
    breaks: tuple[BreakView, ...] = ()
    hints: tuple[Hint, ...] = ()
    calls: tuple[CallCost, ...] = ()
    lines: tuple[LineCost, ...] = ()
    critical_path: tuple[str, ...] = ()
    prefixes: tuple[Prefix, ...] = ()
    constraints: tuple[ConstraintInfo, ...] = ()
    plan: BatchPlan | None = None
    timeline: MeasuredRun | None = None
    comparison: bool = False
    old: OldModule | None = None
    redacted: bool = False
    notices: tuple[str, ...] = ()


def to_json(view: CompiledView) -> str:
    """Return the data as JSON: the same bytes for the same view, ASCII, and without ``<``, ``>`` and ``&``."""
    text = json.dumps(view.model_dump(mode="json", exclude_defaults=True), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n"


def schema_text() -> str:
    """Return the JSON Schema of the format."""
    return json.dumps(CompiledView.model_json_schema(), indent=1, sort_keys=True, ensure_ascii=True) + "\n"
