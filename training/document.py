"""What a task generator writes: a document of text, special tokens and answers to learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
SPECIAL_TOKENS = (END_OF_TEXT, TURN_START, TURN_END)


class Split(Enum):
    """Which side of every word list and phrasing list a generator may draw from."""

    TRAIN = "train"
    HELD_OUT = "held_out"


class Kind(Enum):
    """How a segment is encoded and whether its tokens are what the model must learn to write."""

    TEXT = "text"
    SPECIAL = "special"
    ANSWER = "answer"
    ANSWER_END = "answer_end"


@dataclass(frozen=True)
class Segment:
    """One piece of a document; `choices` lists the alternatives when the answer is one of a few.

    `values` holds the character ranges of the values in an answer that is an object: each is graded by itself, together
    with what stands between it and the value before.
    """

    text: str
    kind: Kind
    choices: tuple[str, ...] = ()
    graded: bool = True
    values: tuple[tuple[int, int], ...] = ()


@dataclass
class Document:
    """A growing document. Neighbouring text is one string for the tokenizer, as in the runtime."""

    family: str
    segments: list[Segment] = field(default_factory=list)
    length: int = 0

    def text(self, text: str) -> None:
        """Append prompt text."""
        self.length += len(text)
        if self.segments and self.segments[-1].kind is Kind.TEXT:
            text = self.segments.pop().text + text
        self.segments.append(Segment(text, Kind.TEXT))

    def answer(self, text: str, choices: tuple[str, ...] = (), *, graded: bool = True) -> None:
        """Append what the model must write; `choices` are alternatives that could stand in its place."""
        self.length += len(text)
        self.segments.append(Segment(text, Kind.ANSWER, choices, graded))

    def object(self, text: str, values: tuple[tuple[int, int], ...]) -> None:
        """Append an object that the model must write, with the character ranges of its values (`objects.render`)."""
        self.length += len(text)
        self.segments.append(Segment(text, Kind.ANSWER, values=values))

    def special(self, token: str, *, learned: bool = False) -> None:
        """Append one special token; a learned one ends an answer."""
        self.length += 4
        self.segments.append(Segment(token, Kind.ANSWER_END if learned else Kind.SPECIAL))

    def start_turn(self, role: str) -> None:
        """Open a chat turn the way the chat template does."""
        self.special(TURN_START)
        self.text(f"{role}\n")

    def end_turn(self, *, learned: bool = False) -> None:
        """Close the open chat turn."""
        self.special(TURN_END, learned=learned)
        self.text("\n")

    def message(self, role: str, content: str) -> None:
        """Append a whole chat turn that is given, not learned."""
        self.start_turn(role)
        self.text(content)
        self.end_turn()

    def reply(self, content: str, choices: tuple[str, ...] = (), *, graded: bool = True) -> None:
        """Append an assistant turn that the model must write."""
        self.start_turn("assistant")
        self.answer(content, choices, graded=graded)
        self.end_turn(learned=True)

    def raw_reply(self, content: str, choices: tuple[str, ...] = (), *, graded: bool = True) -> None:
        """Append a one-line answer of a raw completion: a space, the answer, a line break."""
        spaced = tuple(f" {choice}" for choice in choices)
        self.answer(f" {content}", spaced, graded=graded)
        self.answer("\n", graded=False)

    def full_text(self) -> str:
        """Return the document as it reads, special tokens spelled out."""
        return "".join(segment.text for segment in self.segments)
