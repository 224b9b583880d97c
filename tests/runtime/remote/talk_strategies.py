"""Random Python programs of messages: role blocks, turns that are continued, and branches that speak for themselves."""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import programs_of
from tests.frontend.turn_strategies import TURNS_HEADER, Turns

TALKS_HEADER = TURNS_HEADER
_TEXTS = (
    "",
    " ",
    "x",
    "12",
    "hello there",
    " \tat both ends \r\n\n",
    "é{}%",
    "e\u0301 \ufdd0 \U0001f600",
    "<|turn|>user\nNo.<|end|>",
    "<text>\n</text>\nuser\n",
)


class Talks(Turns):
    """Messages alone: no context is a raw completion, and texts are of any kind."""

    def kinds(self) -> list[str]:
        kinds = [*["turn"] * 2, *["block"] * 4, *["open"] * 3, *["branches"] * 3, "views", "ask", "ask", "say", "gen"]
        kinds += ["append", "samples", "read", "typed", "if", "if", "loop", "rebind", "copy", "alias", "inner", "tool"]
        return kinds + ["leave"] * bool(self.depth) + ["end"] * bool(self.loops)

    def beginning(self) -> list[str]:
        return self.pick(["s += user(a)"], ["s += system(a)", "s += user(b)"], ["with s.user():", "    s += a"])

    def ending(self) -> list[str]:
        return ["s.text()"]

    def asked(self) -> str:
        state = self.pick(*self.states)
        return self.pick(f"'e' in {state}.gen('g', max_tokens=2)", f"{state}.gen(dtype=bool)", super().asked())

    def _block(self) -> list[str]:
        """A message that is written piece by piece, with a generation among the texts of an assistant message."""
        state, role = self.pick(*self.states), self.pick("user", "assistant", "assistant", "system")
        pieces = [f"{state}.append({self.text(0)})" for _ in range(self.pick(0, 1, 2))]
        if role == "assistant":
            answer = self.bind("texts", "t", self._answer(state))
            pieces.insert(self.pick(0, len(pieces)), *answer)
        return [f"with {state}.{role}():", *(f"    {piece}" for piece in pieces or ["pass"])]

    def _open(self) -> list[str]:
        """A turn that is generated in several parts."""
        state = self.pick(*self.states)
        lines = [f"{state}.append(user({self.text(0)}))"] if self.one_in(2) else []
        for _ in range(self.pick(1, 2)):
            lines += [f"{state}.append({self.text(0)})"] if self.one_in(2) else []
            lines += self.bind("texts", "t", self._answer(state))
        return lines

    def _answer(self, state: str) -> str:
        options = self.pick("max_tokens=5", "max_tokens=20", "max_tokens=20, stop='e'", "max_tokens=9, stop=[' ', 'a']")
        return f"{state}.gen({self.pick(repr('g'), repr('h'), 'None')}, {options})"

    def _branches(self) -> list[str]:
        """Branches that are asked different things, and a message of all that they say."""
        branches, branch, state = self.fresh("b"), self.fresh("v"), self.pick(*self.states)
        lines = [
            f"{branches} = {state}.fork({self.pick('2', '3', 'len(words)')})",
            f"for {branch} in {branches}:",
            f"    {branch}.append(user({self.text(0)}))",
            f"    {branch}.gen('j', max_tokens=9)",
        ]
        lines += self.arm(2, loop=True, states=branch) if self.one_in(2) else []
        joined = self.bind("texts", "t", f"'|'.join(b['j'] for b in {branches})")
        return [*lines, *joined, f"{state}.append(user({self.texts[-1]}))"]

    def _samples(self) -> list[str]:
        drawn = f"{self.pick(*self.states)}.gen('many', n=2, max_tokens=4, temperature=0.8)"
        return self.bind("texts", "t", f"''.join({drawn})")

    def _read(self) -> list[str]:
        """The context itself as a text."""
        state = self.pick(*self.states)
        return self.bind("texts", "t", f"{state}.text()[-20:]")

    def _typed(self) -> list[str]:
        state, name = self.pick(*self.states), self.fresh("t")
        properties = "'properties': {'k': {'enum': [1, 'a', None]}}, 'required': ['k']"
        schema = f"{{'type': 'object', {properties}, 'additionalProperties': False}}"
        made = self.pick("dtype=bool", "dtype=int", "choices=['x', 'y z']", f"schema={schema}")
        self.texts.append(name)
        return [f"{state}.append(user({self.text(0)}))", f"{name} = str({state}.gen('o', {made}, max_tokens=300))"]


def talk_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)``."""
    return programs_of(Talks, budget=(14, 14), length=(2, 6))


def talk_arguments() -> st.SearchStrategy[tuple[Any, ...]]:
    """Arguments of such a program."""
    text = st.sampled_from(_TEXTS)
    return st.tuples(text, text, st.integers(-1, 3), st.lists(st.sampled_from(["w", "x y", " "]), max_size=3))
