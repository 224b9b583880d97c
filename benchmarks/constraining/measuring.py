"""One case with one tokenizer: first whether the masks are right, then the times."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tokenizers import Tokenizer

from benchmarks.constraining import byte_bpe, checks, timing
from benchmarks.constraining.cases import CASES, Case
from benchmarks.constraining.checks import Agreement, Output, WrongError
from benchmarks.constraining.meaning import Meaning
from benchmarks.constraining.peers import Compiled, Peer, RefusedError, made_for
from benchmarks.constraining.timing import Built, Handed
from lmc import grammar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Setting:
    """One tokenizer: what belongs to it is made before anything is timed."""

    tokenizer: Tokenizer
    vocabulary: grammar.Vocabulary
    peers: Mapping[str, Peer]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Setting":
        tokens = byte_bpe.token_bytes(tokenizer)
        end = byte_bpe.SPECIAL.index(byte_bpe.END)
        vocabulary = grammar.Vocabulary(tokens, range(len(byte_bpe.SPECIAL)), end)
        grammar.compile(regex="x+", tokenizer=vocabulary).start().mask()
        return cls(tokenizer, vocabulary, made_for(tokenizer, tokens, end))


@dataclass(frozen=True)
class Checked:
    """A case whose masks are right: at how many positions that was held against the definition, and the peers.

    What they compiled is kept: outlines-core takes minutes for some. None of those that refuse the case.
    """

    case: Case
    outputs: tuple[Output, ...]
    definition: int
    agreements: dict[str, Agreement]
    compiled: dict[str, Compiled | None]


@dataclass(frozen=True)
class Figures:
    """The times of a case; by name, None where a peer refuses it."""

    checked: Checked
    built: Built | str
    outlines_index: float | None
    first: dict[str, float | None]
    handed: Handed
    fills: dict[str, float | None]


def chosen(names: Sequence[str] | None) -> list[Case]:
    """The cases of these names; all where none are given."""
    known = [case.name for case in CASES]
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise SystemExit(f"there is no case {unknown[0]!r}; there are {', '.join(known)}")
    return [case for case in CASES if not names or case.name in names]


def checked(case: Case, setting: Setting) -> Checked:
    """Hold the masks of a case against the definition, the index and the peers. Raises ``WrongError``."""
    vocabulary = setting.vocabulary
    found = checks.outputs(case, setting.tokenizer, vocabulary.tokens)
    meaning = Meaning(case.meaning, vocabulary.tokens, vocabulary.eos_ids[0])
    masks = checks.our_masks(case, grammar.compile(**case.given(), tokenizer=vocabulary), found)
    definition = checks.check_definition(case, meaning, found, masks, vocabulary.tokens)
    checks.check_index(case, vocabulary, found, masks)
    compiled = {name: _unless_refused(peer.compile, case) for name, peer in setting.peers.items()}
    agreements = {
        name: checks.compare(case, peer, compiled[name], found, masks, meaning, vocabulary.tokens)
        for name, peer in setting.peers.items()
    }
    parted = [name for name in case.agrees if not agreements[name].complete]
    if parted:
        raise WrongError(f"{case.name}: {', '.join(parted)} should have the same masks: {agreements}")
    return Checked(case, tuple(found), definition, agreements, compiled)


def timed(right: Checked, setting: Setting) -> Figures:
    """The times of a case."""
    case, vocabulary, peers = right.case, setting.vocabulary, setting.peers
    return Figures(
        checked=right,
        built=timing.built(case, vocabulary),
        outlines_index=_unless_refused(timing.index, case, peers["outlines-core"]),
        first=timing.first_masks(case, vocabulary, {name: peers[name] for name in ("llguidance", "xgrammar")}),
        handed=timing.handed_out(case, vocabulary, right.outputs),
        fills={
            name: None if compiled is None else timing.fills(compiled, right.outputs)
            for name, compiled in right.compiled.items()
        },
    )


def _unless_refused(measure: Callable[..., Answer], *about: object) -> Answer | None:
    try:
        return measure(*about)
    except RefusedError:
        return None
