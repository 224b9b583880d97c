"""Random programs about handles: branches of known and unknown number, copies that move, sub-programs, misuse."""

from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.loop_strategies import LOOPS_HEADER, Loops
from tests.frontend.strategies import MOST_ITEMS, Names, Writer, programs_of

HANDLES_HEADER = (
    LOOPS_HEADER
    + """
from lmc import CaptureError


def marked(s, text):
    s.append(text)
    if s.gen("m", max_tokens=1, temperature=1.0) > "h":
        s.append("!")
    return s["m"]


@jit
def deep(s, text: str, n: int):
    s += text
    if n <= 0:
        return s.gen("d", max_tokens=2, temperature=1.0)
    return deep(text[:2], n - 1) + s.gen("e", max_tokens=1)


@jit
def raising(s, text: str):
    s += text
    x = s.gen("r", max_tokens=2, temperature=1.0)
    if x > "m":
        raise ValueError("bad " + x)
    return x

"""
)
_LEAST = "{}['x']", "{}.get('x', 'none')", "{}.get('y', '-')"


class Handles(Loops):
    """Statements about handles: branches, copies, containers of them, sub-programs, misuse."""

    SHOWN: ClassVar = {
        **Loops.SHOWN,
        "states": "{}.text()[-30:]",
        "teams": "[q.text()[-30:] for q in {}]",
        "branches": "[q.text()[-30:] for q in {}]",
        "pools": "[(q.text()[-30:], t) for q, t in {}]",
        "maps": "{{k: q.text()[-30:] for k, q in {}.items()}}",
    }
    teams, branches, pools, maps = Names(), Names(), Names(), Names()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.sizes: dict[str, str] = {}

    def kinds(self) -> list[str]:
        kinds = [*["branches"] * 4, *["go_over"] * 6, *["move"] * 3, *["group", "of_group"] * 2, "loop", "loop", "if"]
        kinds += ["pool", *["of_pool"] * 6, "table", *["of_table"] * 3, *["sub", "misuse"] * 2, "gen", "append", "copy"]
        kinds += ["alias", "rebind", "choice", "list", "grow", *["read_branches"] * 2, "by_key", "named"]
        return kinds + ["leave"] * bool(self.depth) + ["end"] * bool(self.loops)

    def _named(self) -> list[str]:
        """Generations whose names are known texts of a list of unknown length."""
        state, names, name, text = self.pick(*self.states), self.fresh("n"), self.fresh("q"), self.fresh("t")
        flag = f"{state}.gen(dtype=bool, temperature=1.0)"
        first, second = self.pick("['x']", "['?x?', 'y']", "[]"), self.pick("'z'", "'y?'", "'?'")
        lines = [f"{names} = {first}", f"if {flag}: {names}.append({second})"]
        lines += self.pick([], [f"{names} = sorted({names})"], [f"if {flag}: {names} += ['x', 'w']"])
        form = self.pick("{}.strip('?') or 'e'", "{}.replace('?', 'e').upper()", "('n' + {})", "{}", "{}[:1]")
        self.texts.append(text)
        return [
            f"{text} = ''",
            *lines,
            f"for {name} in {names}:",
            f"    {text} = {text} + {state}.gen({form.format(name)}, max_tokens=1, temperature=1.0)",
        ]

    def _by_key(self) -> list[str]:
        """A handle of a dict or list, by a key or number that only a run knows."""
        one, other, name = self.pick(*self.states), self.pick(*self.states), self.fresh("k")
        choice = f"{one}.select('way', ['left', 'right'])"
        held = self.pick(
            f"{{'left': {one}, 'right': {other}}}[{choice}]",
            f"{{'left': {one}, 'e': {other}}}.get({self.pick(*self.texts)}, {one})",
            f"{{'left': {one}}}[{choice}]",
            f"[{one}, {other}][len({self.pick(*self.texts)}) % 2]",
        )
        self.states.append(name)
        return [f"{name} = {held}"]

    # Branches

    def _branches(self) -> list[str]:
        if self.functions:
            return self._gen()
        state, name = self.pick(*self.states), self.fresh("b")
        text = self.pick(*self.texts)
        count = self.pick(
            "2",
            "len(words)",
            *[f"len({text}[:3])"] * 4,
            f"len(({text}).split('e')[:3])",
            f"min(len({text}), 2)",
            f"len({text}[:2])",
            f"{state}.gen(dtype=int, max_tokens=2) % 3",
        )
        self.branches.append(name)
        self.sizes[name] = count
        lines = [f"{name} = {state}.fork({count})"]
        if count.startswith("len(") and self.one_in(3):
            items = count[4:-1]
            lines = [f"{name} = {state}.fork({count}) if {items} else {self.pick('[]', f'[{state}]', '()')}"]
        return [*lines, *self._go_over()] if self.one_in(2) else lines

    def _go_over(self) -> list[str]:
        if not self.branches or self.loops >= 2 or self.functions:
            return self._branches()
        name = self.pick(*self.branches)
        count = self.sizes[name]
        branch = self.fresh("h")
        form = self.pick("plain", "plain", "enumerate", "zip", "zip", "range", "nested")
        around = list(self.texts)
        if form == "plain":
            head = f"for {branch} in {name}:"
        elif form == "enumerate":
            number = self.fresh("i")
            head = f"for {number}, {branch} in enumerate({name}):"
            self.texts.append(f"str({number})")
        elif form == "zip":
            item = self.fresh("w")
            items = self.pick("words", "['u', 'v']", f"({self.pick(*self.texts)}).split('e')[:3]", *self.lists)
            head = f"for {branch}, {item} in zip({name}, {items}):"
            self.texts.append(f"str({item})")
        elif form == "range":
            number = self.fresh("i")
            head = f"for {number} in range({self.pick('len(' + name + ')', count if 'gen' not in count else '0')}):"
            branch = f"{name}[{number}]" if not self.one_in(4) else name + "[-1]"
        else:
            number, item = self.fresh("i"), self.fresh("w")
            head = f"for {number}, ({branch}, {item}) in enumerate(zip({name}, words)):"
            self.texts.append(f"str({item})")
        body = self._branch_body(branch)
        self.names["texts"] = around
        return [head, *("    " + line for line in body)]

    def _branch_body(self, branch: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self.pick(1, 2, 3)):
            lines += self._in_branch(branch)
        return lines

    def _in_branch(self, branch: str) -> list[str]:
        text = self.text(0)
        name = self.fresh("t")
        own = self.lists
        options = [
            [f"{branch}.append({text})"],
            [f"{branch}.gen('x', max_tokens=2, temperature=1.0)"],
            [f"{branch}.gen('x', max_tokens=2)"],
            [f"{branch}.select('y', ['red', 'e'])"],
            [f"{branch}.gen({branch}.select('k', ['x', 'y']), max_tokens=1)"],
            [
                f"if {branch}.gen('z', max_tokens=1) > 'h': {branch}.append('more')",
                f"else: {branch}.gen('y', max_tokens=1)",
            ],
            [f"if 'x' in {branch}: {branch}.append({branch}['x'])"],
            [f"more.on_state({branch})"],
            [f"{branch}.append(sub({text}[:4]))"],
            [f"marked({branch}, {text}[:3])"],
            [f"{name} = {branch}.copy()", f"{name}.gen('x', max_tokens=1)", f"{branch}.append({name}['x'])"],
            [f"{name} = {branch}.get('x', 'none')", f"effect('seen', {name})"],
            [f"for q in {branch}.fork(2): q.gen('y', max_tokens=1, temperature=1.0)"],
            [f"s.append({branch}.get('x', 'none')[:4])"],
            [f"{name} = {branch}.text()[-4:]", f"{branch}.append({name})"],
            [f"if len({branch}.get('x', '')) > 3: continue"],
        ]
        if own:
            grown = self.pick(*own)
            options += [[f"if len({grown}) < {MOST_ITEMS}: {grown}.append({branch}.gen('x', max_tokens=1))"]] * 2
        if self.one_in(8):
            options.append([f"if {branch}.gen('z', max_tokens=1) > 'r': break"])
        if own and self.one_in(6):
            options.append([f"{branch}.append(str(len({self.pick(*own)})))"])
        return self.pick(*options)

    def _read_branches(self) -> list[str]:
        if not self.branches or self.functions:
            return self._branches()
        name = self.pick(*self.branches)
        made, one = self.fresh("l"), self.fresh("t")
        form = self.pick(*range(6))
        if form == 0:
            return self.told(one, [f"try: {one} = str({name}['x'])", f"except KeyError as e: {one} = 'missing'"])
        if form == 1:
            return self.told(
                one,
                [
                    f"try: {one} = {name}[{self.pick('0', '-1', '1', 'n')}].get('x', '-')",
                    f"except IndexError as e: {one} = 'none'",
                ],
            )
        if form == 2:
            return self.told(one, [f"{one} = str(len({name}))"])
        read = self.pick(*_LEAST[1:]).format("q")
        if form == 3:
            return self.told(one, [f"{one} = '|'.join({read} for q in {name})[:9]"])
        self.lists.append(made)
        return [f"{made} = [{self.pick(read, 'q.gen(max_tokens=1)', 'q.text()[-3:]')} for q in {name}]"]

    def told(self, name: str, lines: list[str]) -> list[str]:
        """``lines``, which bind a text of that name or none."""
        self.texts.extend([name] * any(f"{name} = " in line for line in lines))
        return lines

    # Handles that move

    def _move(self) -> list[str]:
        own = self.own("states")
        if self.functions:
            return self._gen()
        if not own or self.one_in(4):
            name, state = self.fresh("u"), self.pick(*self.states)
            if not self.depth:
                self.states.append(name)
            return [f"{name} = {state}.copy()", f"{name}.append({self.text(0)})"]
        one, other = self.pick(*own), self.pick(*own)
        return self.pick(
            [f"{one} = {other}.copy()", f"{one}.gen('x', max_tokens=1)"],
            [f"{one} = {other}"],
            [f"{one}, {other} = {other}, {one}"],
            [f"if {self.condition(0)}: {one} = {other}"],
            [f"if {self.condition(0)}: {one} = {other}.copy()"],
            [f"{one} = {self.pick(*self.states)}.fork(2)[1]", f"{one}.append('f')"],
            [f"{one} = {one} if {self.condition(0)} else {other}", f"{one}.append('g')"],
        )

    def _group(self) -> list[str]:
        if self.functions or self.depth:
            return self._gen()
        name, state = self.fresh("g"), self.pick(*self.states)
        self.teams.append(name)
        return [
            self.pick(
                f"{name} = [{state}.copy() for _ in range(2)]",
                f"{name} = [s, {state}.copy()]",
                f"{name} = list({state}.fork(2))",
            )
        ]

    def _of_group(self) -> list[str]:
        if not self.teams or self.functions:
            return self._group()
        name, one = self.pick(*self.teams), self.fresh("t")
        number = self.pick(
            "0", "1", "-1", f"len({self.pick(*self.texts)}) % 2", f"{{'yes': 0}}.get({self.pick(*self.texts)}, 1)"
        )
        lines = self.pick(
            [f"{name}[{number}].append({self.text(0)})"],
            [f"{name}[{number}] += {self.text(0)}"],
            [f"{one} = {name}[{number}].gen('x', max_tokens=1)"],
            [f"{name}[0], {name}[1] = {name}[1], {name}[0]"],
            [f"{name}[0] = {name}[1].copy()"],
            [f"for q in {name}: q.gen('x', max_tokens=1, temperature=1.0)"],
            [f"{name} = [q.copy() for q in {name}]"],
            [f"{one}_best = max({name}, key=lambda q: q.get('x', ''))", f"{one}_best.append('best')"],
            [f"{one}_least = sorted({name}, key=lambda q: q.text()[-3:])[0]", f"{one}_least += 'first'"],
        )
        return self.told(one, lines)

    # Containers of states whose sizes differ between the ways through a condition

    def _pool(self) -> list[str]:
        if self.functions:
            return self._gen()
        name, state, text = self.fresh("p"), self.pick(*self.states), self.pick(*self.texts)
        made = self.pick(
            "[]", f"[({state}, {text})]", f"[({state}.copy(), 'q')]", f"[(q, 'f') for q in {state}.fork(2)]"
        )
        alias = self.pick([], [], [f"{name}_held = [{name}, {name}]"], [f"{name}_same = {name}"])
        self.pools.append(name)
        if alias:
            self.pools.append(f"{name}_held[{self.pick('0', '1')}]" if "held" in alias[0] else f"{name}_same")
        return [f"{name} = {made}", *alias]

    def _of_pool(self) -> list[str]:
        if not self.pools or self.functions or self.loops:
            return self._pool()
        name, other, one = self.pick(*self.pools), self.pick(*self.pools), self.fresh("t")
        state, text = self.pick(*self.states), self.pick(*self.texts)
        drawn = f"{state}.gen('x', max_tokens=1)"
        item = self.pick(f"({state}, {text})", f"({state}, {drawn})", f"({state}.copy(), {text})")
        change = self.pick(
            f"{name}.append({item})",
            f"{name}.append({item})",
            f"{name} += [{item}]",
            f"{name} += [(q, q.gen('x', max_tokens=1, temperature=1.0)) for q in {state}.fork(2)]",
            f"{name}.extend({other}[:1])",
            f"{name}.insert(0, {item})",
            f"{name}.pop() if {name} else None",
            f"{name}.clear()",
            f"{name}.reverse()",
            f"{name}[:1] = []",
            f"{name} = {name}[1:]",
            f"{name} = [{item}]",
            f"{name} = sorted({name}, key=lambda q: q[1])[:2]",
            f"{name}.sort(key=lambda q: q[1])",
        )
        if not self.one_in(3):
            return [f"if {self.condition(0)}: {change}"]
        lines = self.pick(
            [change],
            [f"for q, t in {name}[:3]: q.append(t)"],
            [f"for q, t in list({name})[:3]:", f"    if t > 'h': {name}.append((q.copy(), q.gen('x', max_tokens=1)))"],
            [f"{one} = '|'.join(t + q.get('x', '') for q, t in {name})[-9:]"],
            [f"{one} = str(len({name}))"],
            [f"{one} = 'some' if {name} else 'none'"],
            [f"if {name}: {name}[{self.pick('0', '-1')}][0].append('z')"],
            [f"try: {one} = {name}[1][0].gen('x', max_tokens=1)", f"except IndexError: {one} = '-'"],
            [f"effect({name} is {other}, any(q[0] is s for q in {name}))"],
            [f"{one} = max({name}, key=lambda q: q[1], default=(s, ''))[1]"],
        )
        return self.told(one, lines)

    def _table(self) -> list[str]:
        if self.functions:
            return self._gen()
        name, state = self.fresh("m"), self.pick(*self.states)
        self.maps.append(name)
        one, two = f"'a': {state}", f"'b': {state}.copy()"
        return [f"{name} = {self.pick('{}', '{' + one + '}', '{' + one + ', ' + two + '}')}"]

    def _of_table(self) -> list[str]:
        if not self.maps or self.functions or self.loops:
            return self._table()
        name, state, one = self.pick(*self.maps), self.pick(*self.states), self.fresh("t")
        key = self.pick("'a'", "'b'", "'c'")
        change = self.pick(
            f"{name}[{key}] = {state}",
            f"{name}[{key}] = {state}.copy()",
            f"{name}.pop({key}, None)",
            f"{name} = {{{key}: {state}, **{name}}}",
            f"{name}.setdefault({key}, {state}).append('t')",
            f"{name}.update({{{key}: {state}}})",
        )
        if not self.one_in(3):
            return [f"if {self.condition(0)}: {change}"]
        lines = self.pick(
            [change],
            [f"for k in {name}: {name}[k].append(k)"],
            [f"for k, q in {name}.items(): q.gen('x', max_tokens=1)"],
            [f"{one} = ''.join({name})"],
            [f"{one} = {name}[{key}].text()[-3:] if {key} in {name} else '-'"],
            [f"try: {one} = {name}[{key}].gen('x', max_tokens=1)", f"except KeyError: {one} = '-'"],
            [f"{one} = {name}.get({key}, s).get('x', '')"],
        )
        return self.told(one, lines)

    # Programs and misuse

    def _sub(self) -> list[str]:
        name, text = self.fresh("t"), self.text(0)
        state = self.pick(*self.states)
        call = self.pick(
            f"deep({text}[:3], 2)",
            f"deep({text}[:3], n)",
            f"deep.on_state({state}, {text}[:3], 1)",
            f"sub({text}[:3], times=2)",
            f"more({state})",
            f"marked({state}, {text}[:3])",
        )
        raised = self.pick(f"raising({text}[:3])", f"raising.on_state({state}, {text}[:3])")
        lines = [f"{name} = {call}"]
        if self.one_in(3):
            lines = [f"try: {name} = {raised}", f"except ValueError as e: {name} = str(e)[:6]"]
            if self.one_in(2):
                lines.append("finally: effect('end')")
        self.texts.append(name)
        return lines

    def _misuse(self) -> list[str]:
        state, name = self.pick(*self.states), self.fresh("t")
        wrong = self.pick(
            f"{state}['nothing']",
            f"{state}.gen('')",
            f"{state}.gen('x', max_tokens=-1)",
            f"{state}.select('y', [])",
            f"{state}.meta('x')",
            f"{state}.append(3)",
            f"{state}.append(None)",
            f"{state}.append(user({self.text(0)}))",
            f"{state}.fork(-1)",
            f"{state}.fork('2')",
            f"{state} + 'x'",
            f"'x' + {state}",
            f"{state}.system(3)",
            f"{state}.gen('x', max_token=3)",
            f"user({state})",
            "sub()",
            "sub('x', wrong=1)",
            "more.on_state('x')",
        )
        self.texts.append(name)
        return [
            f"try: {name} = str({wrong})[:2]",
            f"except {self.pick('CaptureError', 'Exception', '(KeyError, Exception)')} as e: {name} = e.args[0][-30:]",
        ]


def handle_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` that forks, copies and hands on states."""
    return programs_of(Handles, budget=(26, 26), length=(2, 8))
