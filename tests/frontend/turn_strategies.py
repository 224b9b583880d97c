"""Random programs of chat turns, some of which are generated before the message that holds them is appended.

Each such line names its twin, which generates inside the message; both programs must give the same.
"""

import re
from typing import Any

from hypothesis import strategies as st

from tests.frontend.loop_strategies import LOOPS_HEADER, LoopWriter

TURNS_HEADER = (
    LOOPS_HEADER
    + """
from lmc.frontend.language.messages import message


def answered(s, text):
    s += user(text)
    return s.gen("g", max_tokens=3, temperature=1.0)


@jit
def answers(s, text: str):
    s += user(text)
    return s.gen("g", max_tokens=3, temperature=1.0)

"""
)
_TWIN = "  # twin: "


class TurnWriter(LoopWriter):
    """Draws user messages, answers and assistant messages, under conditions and in loops."""

    def statement(self) -> list[str]:
        if self.clear:
            self.maybe.clear()
        kinds = [*["turn"] * 6, *["if", "loop"] * 2, "say", "say", "ask", "gen", "append", "copy", "alias", "views"]
        kinds += ["rebind", "inner", "tool", "typed", "tried", *["leave", "end"][: bool(self.depth) + bool(self.loops)]]
        return getattr(self, f"_{self.pick(*kinds)}")()

    def _turn(self) -> list[str]:
        state, name = self.pick(*self.states), self.fresh("t")
        text = self.text(0)
        options = self.pick("max_tokens=3", "max_tokens=3, temperature=1.0", "choices=['x', 'y z']")
        asked, made = f"{state}.append(user({text}))", f"gen('g', {options})"
        if self.one_in(4):
            made = self.pick("select('g', ['yes', 'no'])", "select('g', [a + '1', 'other'])")
        said = f"{state}.append(assistant({made}))"
        value = f"{state}.{made}"
        line, twin = self.pick(
            (f"{state}.append(assistant({value}))", said),
            (f"{state}.assistant({value})", said),
            (f"{state}.append(message('assistant', {value}))", said),
            (f"{state}.append(assistant({value}.strip()))", said),
            (f"{name} = {value}; {state}.append(assistant({name}))", said),
            (f"{name} = {value}; {state}.append(assistant({state}['g']))", said),
            (
                f"{state}.append(assistant(str({state}.gen('g', dtype=int))))",
                f"{state}.append(assistant(gen('g', dtype=int)))",
            ),
            (f"with {state}.assistant(): {state}.append(assistant({value}))", said),
        )
        if self.one_in(5):
            call = self.pick(f"answered({state}, {text})", f"answers.on_state({state}, {text})")
            lines = [f"{state}.append(assistant({call}))"]
        else:
            lines = [asked, f"{line}{_TWIN}{twin}"]
        self.texts.append(name)
        return [*lines, f"{name} = str({state}['g'])"]

    def _typed(self) -> list[str]:
        """A message behind an answer that is parsed: often another turn, at times the same JSON."""
        state = self.pick(*self.states)
        made = self.pick("schema={'enum': [[1], [2]]}", "schema={'enum': [1, 'a', None]}", "dtype=bool")
        said = self.pick("'else'", "'[1]'", "' \"a\"'", "'true'", f"str({state}['g'])", self.text(0))
        return [
            f"{state}.append(user({self.text(0)}))",
            f"{state}.gen('g', {made})",
            f"{state}.append(assistant({said}))",
        ]

    def _views(self) -> list[str]:
        branches, branch, state = self.fresh("b"), self.fresh("v"), self.pick(*self.states)
        answer = self.fresh("t")
        self.states.append(branch)
        body = self.arm()
        self.states.remove(branch)
        lines = [f"{state}.append(user({self.text(0)}))", f"{answer} = {state}.gen('g', max_tokens=3)"]
        self.texts.append(answer)
        many = self.pick("2", "len(words)", f"len({answer}.split('e')[:3])")
        return [
            *lines,
            f"{branches} = {state}.fork({many})",
            f"for {branch} in {branches}:",
            f"    {branch}.append(assistant({answer}))",
            *body,
        ]

    def _tried(self) -> list[str]:
        """A turn whose messages may be refused: behind bare text, on some ways or in some rounds."""
        body = self.pick(self._ask, self._say, self._turn, self._append)()
        return ["try:", *("    " + line for line in body), "except Exception as error:", "    s = s.copy()"]

    def _say(self) -> list[str]:
        role = self.pick("assistant", "assistant", "system")
        return [f"{self.pick(*self.states)}.append({role}({self.text(0)}))"]

    def _ask(self) -> list[str]:
        return [f"{self.pick(*self.states)}.append(user({self.text(0)}))"]

    def function(self, length: int) -> str:
        return (
            super()
            .function(length)
            .replace("    s += a\n", self.pick("    s += user(a)\n", "    s += user(a)\n", ""), 1)
            .replace("s.text()[-9:]", "s.text()")
        )


def twin_of(source: str) -> str:
    """``source`` with each line that has a twin replaced by it."""
    return re.sub(rf"(?m)^( *)\S.*{_TWIN}(.*)$", r"\1\2", source)


@st.composite
def turn_programs(draw: Any) -> str:
    """Source of a function ``program(s, a, b, n, words)`` whose turns are often generated ahead of their messages."""
    return TurnWriter(draw).function(draw(st.integers(2, 8)))
