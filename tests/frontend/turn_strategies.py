"""Random programs of chat turns, some of which are generated before the message that holds them is appended.

Each such line names its twin, which generates inside the message; both programs must give the same.
"""

import re

from hypothesis import strategies as st

from tests.frontend.loop_strategies import LOOPS_HEADER, Loops
from tests.frontend.strategies import programs_of

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


class Turns(Loops):
    """User messages, answers and assistant messages, under conditions and in loops."""

    def kinds(self) -> list[str]:
        kinds = [*["turn"] * 6, *["if", "loop"] * 2, "say", "say", "ask", "gen", "append", "copy", "alias", "views"]
        kinds += ["rebind", "inner", "tool", "typed", "refused"]
        if self.writer.mixed:  # other topics write bare text, behind which most messages are refused
            kinds = [*["refused"] * 12, "if", "loop", "gen", "copy", "alias", "rebind"]
        return kinds + ["leave"] * bool(self.depth) + ["end"] * bool(self.loops)

    def beginning(self) -> list[str]:
        return self.pick(["s += user(a)"], ["s += user(a)"], [])

    def ending(self) -> list[str]:
        return ["s.text()"]

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
        lines = [f"{state}.append(user({self.text(0)}))", *self.bind("texts", "t", f"{state}.gen('g', max_tokens=3)")]
        answer = self.texts[-1]
        many = self.pick("2", "len(words)", f"len({answer}.split('e')[:3])")
        return [
            *lines,
            f"{branches} = {state}.fork({many})",
            f"for {branch} in {branches}:",
            f"    {branch}.append(assistant({answer}))",
            *self.arm(loop=True, states=branch),
        ]

    def _refused(self) -> list[str]:
        """A turn whose messages may be refused: behind bare text, on some ways or in some rounds."""
        kept = list(self.texts)
        body = self.maker("ask", "say", "turn", "append", *["turn", "views", "typed"] * self.writer.mixed)
        self.names["texts"] = kept
        again = "pass" if self.functions else "s = s.copy()"
        return ["try:", *("    " + line for line in body), "except Exception as error:", f"    {again}"]

    def _say(self) -> list[str]:
        role = self.pick("assistant", "assistant", "system")
        return [f"{self.pick(*self.states)}.append({role}({self.text(0)}))"]

    def _ask(self) -> list[str]:
        return [f"{self.pick(*self.states)}.append(user({self.text(0)}))"]


def twin_of(source: str) -> str:
    """``source`` with each line that has a twin replaced by it."""
    return re.sub(rf"(?m)^( *)\S.*{_TWIN}(.*)$", r"\1\2", source)


def turn_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` whose turns are often generated ahead of their messages."""
    return programs_of(Turns, budget=(26, 26), length=(2, 8))
