"""Random programs full of conditions that only a run decides, crossed with everything the ways may leave behind."""

from hypothesis import strategies as st

from tests.frontend.strategies import GEN_NAMES, HEADER, MOST_ITEMS, Topic, below, programs_of

CONDITIONS_HEADER = (
    HEADER
    + """
class RefusedError(Exception):
    pass


class CountedError(Exception):
    def __init__(self, text):
        effect("counted", text)
        super().__init__(text, 1)


def sure(s, text):
    if "e" in text and "t" in text:
        raise RefusedError(f"sure: {text}")
    s += "sure"
    return text + "!"


@jit
def judged(s, text: str):
    s += text
    x = s.gen("v", max_tokens=3, temperature=1.0)
    if "e" in x:
        effect("judged", x)
        return "good"
    if "t" in x:
        s += "t"
        s.gen("w", max_tokens=2, temperature=1.0)
    return x


@jit
def kept(s, words: list[str]):
    found = []
    for word in words:
        s += word
        x = s.gen("k", max_tokens=2, temperature=1.0)
        if "e" in x:
            continue
        found = [*found[:1], x]
    return "-".join(found) if len(words) < 2 else s.get("k", "none")

"""
)


class Conditions(Topic):
    """Statements whose conditions depend on generations, and names that may be unbound behind them."""

    # Expressions

    def text(self, depth: int = 1) -> str:
        kind = self.draw(below(16 if depth > 0 else 8))
        if kind < 7 or (kind == 7 and not self.writer.maybe):
            return self.pick(*self.texts, *self.texts[-2:], '"lit"')
        if kind == 7:
            return self.pick(*self.writer.maybe)
        if kind == 8:
            return f"f'{{{self.text(0)}}}|{{{self.text(0)}!r}}'"
        if kind == 9:
            return f"({self.text(0)} + {self.text(0)})"
        if kind == 10:
            return f"({self.text(0)} if {self.condition(0)} else {self.text(0)})"
        if kind == 11:
            return f"({self.text(0)} {self.pick('or', 'and')} {self.text(0)})"
        if kind == 12:
            return f"s.get({self.pick(repr('g'), repr('h'))}, {self.text(0)})"
        if kind == 13:
            return f"{self.pick('lookup', 'plain')}({self.text(0)})"
        if kind == 14:
            return f"''.join({self.sequence(0)})"
        return f"{self.text(0)}.upper()"

    def sequence(self, depth: int = 1) -> str:
        if depth <= 0 or self.one_in(2):
            return self.pick(*self.lists, "words", "['p', b]")
        return self.pick(f"[{self.text(0)}, {self.text(0)}]", f"[w + '!' for w in {self.sequence(0)}]")

    def condition(self, depth: int = 1) -> str:
        kind = self.draw(below(12))
        if kind < 4:
            return f"{self.pick(*'eta')!r} in {self.text(0)}"
        if kind == 4:
            return f"len({self.text(0)}) > {self.pick('2', '3', 'n')}"
        if kind == 5 and self.flags:
            return self.pick(*self.flags)
        if kind == 6:
            return f"{self.pick(repr('g'), repr('h'))} in {self.pick(*self.states)}"
        if kind == 7 and depth > 0:
            return f"{self.condition(0)} {self.pick('and', 'or')} {self.condition(0)}"
        if kind == 8:
            return f"not ({self.condition(0)})"
        if kind == 9:
            return self.pick("n > 0", "'x' in a", "len(words) > 1")
        if kind == 10:
            return self.text(0)
        return f"{self.text(0)} == {self.text(0)}"

    def items(self) -> str:
        return f"list({self.pick(repr(['u', 'v']), 'words', *self.lists)})[:3]"

    # Statements

    def prelude(self) -> list[str]:
        return self._gen()

    def ending(self) -> list[str]:
        return []

    def statement(self) -> list[str]:
        kinds = ["if", "if", "if", "rebind", "rebind", "gen", "gen", "append", "list", "grow", "item", "alias_list"]
        kinds += ["flag", "effect", "tool", "fork", "copy", "alias", "judged", "inner", "for", "dict", "swap"]
        kinds += ["match", "convert", "walrus"]
        if self.depth:
            kinds += ["leave", "leave", "raise"]
        return self.maker(*kinds, *["end"] * bool(self.loops))

    def short(self, text: str) -> str:
        """``text`` as a name is bound to it: in rounds of a loop it can't grow and grow."""
        return f"({text})[:9]" if self.loops or self.functions else text

    def _text(self) -> list[str]:
        return self.bind("texts", "t", self.short(self.text()))

    def _list(self) -> list[str]:
        return self.bind("lists", "l", f"list({self.sequence()})")

    def _rebind(self) -> list[str]:
        own = self.own("texts")
        if not own:
            return self._text()
        name = self.pick(*own)
        return [f"{name} = {self.short(self.pick(name + ' + ', '') + self.text())}"]

    def _match(self) -> list[str]:
        name = self.fresh("m")
        lines = [f"{name} = 'none'", f"match {self.text(0)}:", f"    case {self.pick(*map(repr, 'eta'))} | '':"]
        lines += self.arm(indent=8)
        self.texts.append(name)
        lines += [f"    case {name} if {self.condition(0)}:", *self.arm(indent=8)]
        return [*lines, "    case _:", *self.arm(indent=8)] if self.one_in(2) else lines

    def _convert(self) -> list[str]:
        name, text = self.fresh("c"), self.fresh("t")
        made = f"{text} = {self.pick(*self.states)}.gen(regex='[0-9e]', temperature=1.0)"
        lines = [made, "try:", f"    {name} = {self.pick('int', 'float')}({text})", *self._handler(name)]
        return [*lines, *self.bind("texts", "t", f"f'{{{name}}}'")]

    def _handler(self, name: str) -> list[str]:
        ends, kinds = self.draw(below(6)), self.errors()
        if ends == 0:
            cause = self.pick("", "from error", "from None")
            return [f"except {kinds} as error:", *self.arm(), f"    raise RefusedError(f'{{error}}') {cause}"]
        last = "raise" if ends == 1 else f"{name} = {self.pick('-1', 'n')}"
        return [f"except {kinds}:", *self.arm(), f"    {last}"]

    def _raise(self) -> list[str]:
        if self.one_in(4):
            return self.bind("texts", "t", f"sure({self.pick(*self.states)}, {self.text(0)})")
        kind = self.pick("ValueError", "KeyError", "RefusedError", "CountedError")
        cause = self.pick("", "", " from None", " from KeyError(n)")
        return [f"if {self.condition(0)}: raise {kind}({self.text(0)}){cause}"]

    def _walrus(self) -> list[str]:
        own, text = self.own("texts"), self.text(0)
        if not own or self.one_in(2):
            return self.bind("flags", "f", f"{self.condition(0)} and bool({self.fresh('t')} := {text})")
        name = self.pick(*own)
        flag = self.bind("flags", "f", f"{self.condition(0)} or bool({name} := {text})")
        return [f"{name} = {self.text(0)}", *flag]

    def _append(self) -> list[str]:
        return [f"{self.pick(*self.states)}.append({self.text()})"]  # in a function `+=` would bind a name of its own

    def _gen(self) -> list[str]:
        options = self.pick("max_tokens=4", "max_tokens=4, temperature=1.0", "max_tokens=2, temperature=1.0")
        return self.bind("texts", "t", f"{self.pick(*self.states)}.gen({self.pick(*GEN_NAMES)}, {options})")

    def _flag(self) -> list[str]:
        return self.bind("flags", "f", self.pick("s.gen(dtype=bool, temperature=1.0)", self.condition()))

    def _grow(self) -> list[str]:
        if not self.lists:
            return self._list()
        name, text = self.pick(*self.lists), self.short(self.text(0))
        line = f"{name}.{self.pick(f'append({text})', 'reverse()', f'insert(0, {text})')}"
        return [f"if len({name}) < {MOST_ITEMS}: {line}" if self.writer.mixed else line]

    def _item(self) -> list[str]:
        if not self.lists:
            return self._list()
        name = self.pick(*self.lists)
        return [f"if {name}: {name}[{self.pick('0', '-1')}] = {self.text(0)}"]

    def _alias_list(self) -> list[str]:
        if not self.lists:
            return self._list()
        own = self.own("lists")
        if own and self.one_in(2):
            return [f"{self.pick(*own)} = {self.pick(*self.lists)}"]
        return self.bind("lists", "l", self.pick(*self.lists))

    def _dict(self) -> list[str]:
        name = self.fresh("d")
        return [
            f"{name} = {{'k': {self.text(0)}, 'l': {self.pick(*self.lists, 'words')}}}",
            f"if {self.condition(0)}:",
            f"    {name}['k'] = {self.text(0)}",
            *self.bind("texts", "t", f"{name}['k']"),
        ]

    def _swap(self) -> list[str]:
        x, y = self.pick(*self.texts), self.pick(*self.texts)
        one, other = self.fresh("t"), self.fresh("t")
        line = f"{one}, {other} = ({y}, {x}) if {self.condition(0)} else ({x}, {y})"
        self.texts.extend((one, other))
        return [line]

    def _effect(self) -> list[str]:
        return [f"effect({self.text(0)})"]

    def _tool(self) -> list[str]:
        return self.bind("texts", "t", self.pick("lookup({})", "str(size({}))", "plain({})").format(self.text(0)))

    def _fork(self) -> list[str]:
        branches, branch = self.fresh("b"), self.fresh("v")
        return [
            f"{branches} = {self.pick(*self.states)}.fork(2)",
            f"{branches}[0] += {self.text(0)}",
            f"if {self.condition(0)}:",
            f"    {branches}[{self.pick('0', '1')}].gen('j', max_tokens=2, temperature=1.0)",
            f"for {branch} in {branches}:",
            f"    {branch}.gen('j', max_tokens=3, temperature=1.0)",
            *self.bind("texts", "t", f"' '.join({branches}['j'])"),
        ]

    def _judged(self) -> list[str]:
        text, state = self.text(0), self.pick(*self.states)
        return self.bind("texts", "t", self.pick(f"judged({text})", f"judged.on_state({state}, {text})", "kept(words)"))

    def _copy(self) -> list[str]:
        return self.bind("states", "v", f"{self.pick(*self.states)}.copy()")

    def _alias(self) -> list[str]:
        return self.bind("states", "v", self.pick(*self.states))


def conditional_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` with conditions that its generations decide."""
    return programs_of(Conditions, budget=(22, 22), length=(2, 8))
