"""What was measured of the constraints, as tables, and the limits that were missed."""

from collections.abc import Callable, Sequence

from benchmarks.constraining.checks import Agreement
from benchmarks.constraining.measuring import Checked, Figures
from benchmarks.constraining.peers import PINS
from benchmarks.constraining.timing import Built
from benchmarks.results import table

NAMES = tuple(PINS)
# What the figures have to reach.
INDEX_RATIO, LOAD_RATIO, LARGE_SECONDS = 20.0, 100.0, 0.5
MASK_SECONDS, P99_RATIO, ASCII_BYTES = 1e-6, 20.0, 1_000_000
LIMITS = (
    f"Limits: index {INDEX_RATIO:g} times faster than outlines-core's; first mask no later than llguidance's; a mask "
    f"in {MASK_SECONDS * 1e6:g} µs, p99 in {P99_RATIO:g} times the mean; loading {LOAD_RATIO:g} times faster than "
    f"building where that takes {LARGE_SECONDS:g} s; tables of ASCII constraints in {ASCII_BYTES / 1e6:g} MB."
)
NONE = "–"


def text_of(name: str, size: int, found: Sequence[Figures]) -> str:
    """All tables of one tokenizer."""
    parts = [
        f"### {name}: {size:,} tokens\n",
        masks([figures.checked for figures in found]),
        _indexes(found),
        _first(found),
        _handed(found),
    ]
    misses = [f"- {figures.checked.case.name}: {what}\n" for figures in found for what in missed(figures)]
    parts.append("".join(["Missed:\n\n", *misses]) if misses else "Every limit is kept.\n")
    return "\n".join(parts)


def missed(figures: Figures) -> list[str]:
    """Which limits one case misses, with its figures."""
    lines: list[str] = []

    def limit(kept: bool, text: str) -> None:
        if not kept:
            lines.append(text)

    built, theirs = figures.built, figures.outlines_index
    if isinstance(built, Built):
        if theirs is not None:
            limit(theirs / built.build >= INDEX_RATIO, f"index {theirs / built.build:.1f} times faster")
        if built.build >= LARGE_SECONDS:
            limit(
                built.build / built.load >= LOAD_RATIO,
                f"loads {built.build / built.load:.0f} times faster than it builds",
            )
        if figures.checked.case.ascii:
            limit(built.table_bytes <= ASCII_BYTES, f"table of {built.table_bytes / 1e6:.2f} MB")
    else:
        limit(False, f"no index: {built}")
    ours, other = figures.first["lmc"], figures.first["llguidance"]
    if ours is not None and other is not None:
        limit(ours <= other, f"first mask after {ours * 1e3:.2f} ms, llguidance {other * 1e3:.2f} ms")
    handed = figures.handed
    limit(handed.mean <= MASK_SECONDS, f"a mask in {handed.mean * 1e6:.2f} µs")
    limit(handed.p99 <= P99_RATIO * handed.mean, f"p99 of a mask {handed.p99 / handed.mean:.0f} times the mean")
    return lines


def masks(found: Sequence[Checked]) -> str:
    """Whether masks are the definition's and the peers'."""
    note = (
        "Positions along outputs; at how many of those that were asked the mask is the definition's; at how many "
        "a peer has the same, and how many tokens more and less at the first where it has not.\n\n"
    )
    rows = [
        [
            each.case.name,
            str(each.agreements[NAMES[0]].positions),
            f"{each.definition} = {each.definition}",
            *(_agreement(each.agreements[name]) for name in NAMES),
        ]
        for each in found
    ]
    return note + table(["masks", "positions", "definition", *NAMES], rows)


def _agreement(agreement: Agreement) -> str:
    if agreement.refused:
        return "refused"
    if agreement.complete:
        return "="
    return f"{agreement.equal} (+{agreement.more:,} −{agreement.less:,})"


def _indexes(found: Sequence[Figures]) -> str:
    head = [
        "index",
        "lmc s",
        "outlines-core s",
        "times",
        "load ms",
        "read ms",
        "times",
        "states",
        "classes",
        "masks",
        "table kB",
        "file kB",
    ]
    return table(head, [_index(figures) for figures in found])


def _index(figures: Figures) -> list[str]:
    built, theirs = figures.built, figures.outlines_index
    other = NONE if theirs is None else f"{theirs:.3g}"
    if not isinstance(built, Built):
        return [figures.checked.case.name, "refused", other, *[NONE] * 9]
    return [
        figures.checked.case.name,
        f"{built.build:.3g}",
        other,
        NONE if theirs is None else f"{theirs / built.build:.1f}",
        f"{built.load * 1e3:.3g}",
        f"{built.read * 1e3:.3g}",
        f"{built.build / built.load:.0f}",
        *(f"{count:,}" for count in (built.states, built.classes, built.masks)),
        *(f"{size / 1e3:,.0f}" for size in (built.table_bytes, built.file_bytes)),
    ]


def _first(found: Sequence[Figures]) -> str:
    rows = [
        [figures.checked.case.name, *(_scaled(seconds, 1e3) for seconds in figures.first.values())] for figures in found
    ]
    note = "What all constraints of a library share has been made before.\n\n"
    return note + table(["compile and first mask, ms", *found[0].first], rows)


def _handed(found: Sequence[Figures]) -> str:
    ours: tuple[Callable[[Figures], float], ...] = (
        lambda figures: figures.handed.mean,
        lambda figures: figures.handed.p99,
        lambda figures: figures.handed.copied,
        lambda figures: figures.handed.advance,
    )
    rows = [
        [
            figures.checked.case.name,
            *(_scaled(figure(figures), 1e6) for figure in ours),
            *(_scaled(figures.fills[name], 1e6) for name in NAMES),
        ]
        for figures in found
    ]
    return table(["mask, µs", "lmc", "p99", "copied", "advance", *NAMES], rows)


def _scaled(seconds: float | None, scale: float) -> str:
    return (
        NONE if seconds is None else f"{seconds * scale:,.3g}" if seconds * scale < 1000 else f"{seconds * scale:,.0f}"
    )
