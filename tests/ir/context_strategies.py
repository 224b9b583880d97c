"""Random histories of a context: messages, turns, text and made-up generations."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from lmc.ir.engine.protocol import Generation
from lmc.ir.errors import CaptureError
from lmc.ir.semantics.context import Context

Step = Callable[[Context], Context]

_ROLES = ("system", "user", "assistant", "tool")
pieces = st.one_of(
    st.sampled_from(["", "a", " b", "\n", "I'", "ll", "  ", "[T]", "[/T]", "x[/T]y", "<|im_end|>", "<|im_", "\ufdd0"]),
    st.text(st.sampled_from(list("'lst ae\n1é日😀\ufdd0\ufdd1<|>")), max_size=6),
)


def generation(context: Context, text: str, remainder: str) -> Generation:
    """A generation whose tokens spell ``text``, with ``remainder`` left of a straddling token."""
    return Generation(context.tokenizer.encode(text), text + remainder, "stop", remainder=remainder)


def message(role: str, text: str) -> Step:
    return lambda context: context.message(role, text)


def begin(role: str) -> Step:
    return lambda context: context.begin(role)


def text(piece: str) -> Step:
    return lambda context: context.text(piece)


def end() -> Step:
    return lambda context: context.end()


def generate(piece: str, remainder: str) -> Step:
    return lambda context: context.generated(generation(context, piece, remainder))


roles = st.sampled_from(_ROLES)
continuing = st.one_of(
    st.builds(text, pieces), st.builds(generate, pieces, st.sampled_from(["", "", " rest", "<|im_end|>"]))
)
chatting = st.one_of(st.builds(message, roles, pieces), st.builds(begin, roles), st.builds(end))


def run(context: Context, steps: list[Step]) -> Context:
    """The context after ``steps``, but for those that no program may take (a role message after bare text)."""
    for step in steps:
        try:
            context = step(context)
        except CaptureError:
            continue
    return context


@st.composite
def histories(draw: st.DrawFn, *, max_size: int = 8) -> list[Step]:
    """Steps that run on an empty context: either all of one raw completion, or a chat from its first step on."""
    if draw(st.booleans()):
        return draw(st.lists(continuing, max_size=max_size))
    first = draw(st.one_of(st.builds(message, roles, pieces), st.builds(begin, roles)))
    return [first, *draw(st.lists(st.one_of(continuing, chatting), max_size=max_size))]
