"""Random programs that alias, iterate, change and branch over containers and iterators at once."""

import re
from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.strategies import Topic, Writer, programs_of

MOST_ITEMS = 5  # of a list that a generated program makes longer: loops over it end

CONTAINERS_HEADER = f"""
import itertools
import json
import math
import statistics
from collections import Counter, OrderedDict, defaultdict, deque

from lmc.frontend.program.function import JittedFunction as jit
from lmc.frontend.tools.tools import tool
from tests.frontend.harness import effect


@tool(effect="reads")
def found(word: str) -> list[str]:
    effect("lookup", word)
    return [word[:2], word[2:4]]


@tool(effect="reads")
def record(word: str) -> dict:
    effect("lookup", word)
    return {{"m": word[:2], "k": [1], "o": {{"p": word}}}}


def changed(given):
    given["k"].append(9)
    return given.pop("m", None)


def push(items, text):
    if len(items) < {MOST_ITEMS}:
        items.append(text)
    return text


def drop(items):
    return items.pop() if items else "none"


def front(items, text):
    if len(items) < {MOST_ITEMS}:
        items.insert(0, text)


def ask_and_push(s, items, text):
    if "e" in s.gen("p", max_tokens=2, temperature=1.0):
        push(items, text)
    return len(items)


def shouted(items):
    for item in items:
        yield item + "!"


def careful(items):
    for item in items:
        try:
            yield item + "?"
        except (ValueError, IndexError, GeneratorExit):
            effect("careful", item)
            raise


def twice(items):
    return [items, items]


def joined(first="", *parts):
    return f"{{first}}{{len(parts)}}{{'-'.join(parts)}}"


def last(items):
    out = "none"
    for item in items:
        out = item
    return out

"""

KINDS = "lists", "rows", "dicts", "sets", "queues", "counters", "groups", "iterators", "pairs"


class Containers(Topic):
    """Containers and iterators that are aliased, looked at and changed at once."""

    SHOWN: ClassVar = {
        **Topic.SHOWN,
        **dict.fromkeys(("dicts", "queues", "counters", "groups"), "{}"),
        "sets": "sorted({})",
        "rows": "{0}, [row is {0}[0] for row in {0}]",
        "iterators": "list({})",
        "pairs": "list({})",
    }

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.of_rows = self.one_in(4)  # lists that hold one list in two places
        self.libraries = self.one_in(3)  # calls of which end most captures early

    def known(self, kind: str) -> str:
        """A name of that kind, most likely one of the first, which the most aliases and iterators are of."""
        names = self.names[kind]
        return self.pick(*names[:2], *names) if names else ""

    # Expressions

    def text(self) -> str:
        name = self.pick(*self.texts[-3:], *self.texts)
        lists = self.lists
        options = [name, name, f"{name} + '!'", f"({name} + 'e')[:4]", "'k'"]
        if lists:
            xs = self.known("lists")
            options += [f"'-'.join({xs})", f"str(len({xs}))", f"({xs} or ['z'])[0]", f"last({xs})"]
            options += [f"joined(*{xs})", f"joined({name}, *{xs})"]
            made = f"tuple({self.pick(xs, f'{name}.split()', 'words')})"
            taken = self.pick(made, f"{made}[1:]", f"{made} + (a,)", f"2 * {made}")
            shown = self.pick("[*{}, 'k']", "list({})", "{}", "{}[:1]", "[a] + list({})", "list({}) + [a]", "[[], {}]")
            options += [f"str({shown.format(taken)})", f"type({taken}).__name__", f"str({taken} == {xs})"]
        return self.pick(*options)

    def condition(self) -> str:
        if self.one_in(4):
            return self.known_condition()
        if self.flags and self.one_in(3):
            return self.known("flags")
        return self.asked()

    def known_condition(self) -> str:
        name = self.pick(*self.texts)
        options = [f"'e' in {name}", f"{name} == a", "n > 0", "len(words) > 1"]
        if self.names["sets"]:
            options += [f"{name} in {self.known('sets')}", f"any({self.known('sets')})"]
        if self.lists:
            xs = self.known("lists")
            options += [f"n > 5 and {xs} in {{'a', 'b'}}", f"n > 5 and {xs} in {{'a': 1}}"]
            options += [f"len({xs}) < {self.pick('2', '3', '4')}", xs, f"{name} in {xs}"]
        return self.pick(*options)

    def items(self) -> str:
        """An iterable of texts."""
        options = ["words", "['u', 'v', 'w']", f"found({self.text()})", f"{self.pick(*self.texts)}.split('e')"]
        if self.lists:
            xs, ys = self.known("lists"), self.known("lists")
            options = [
                *[xs] * 8,
                *[f"reversed({xs})"] * 2,
                *[f"iter({xs})"] * 2,
                f"{xs}[:]",
                f"list({xs})",
                f"tuple({xs})",
                f"sorted({xs})",
                f"{xs}[1:]",
                f"{xs} + {ys}",
                f"(*{xs}, {self.pick(*self.texts)})",
                *self.of_libraries(
                    f"itertools.chain({xs}, {ys})",
                    f"itertools.islice({xs}, 3)",
                    f"itertools.takewhile(len, {xs})",
                    f"itertools.accumulate({xs})",
                ),
                f"map(str.upper, {xs})",
                f"map(lambda q: q + {self.pick(*self.texts)}, {xs})",
                f"filter(None, {xs})",
                f"(q + '?' for q in {xs})",
                f"(q for q in {xs} if q != {self.pick(*self.texts)})",
                f"[q for q in {xs} if {self.pick('q', self.asked())}]",
                f"{self.pick('shouted', 'shouted', 'careful')}({xs})",
                *options[2:],
            ]
        if self.names["iterators"]:
            options += [self.known("iterators")] * 3
        if self.names["rows"]:
            options += [f"{self.known('rows')}[0]", f"sum({self.known('rows')}, [])"]
        for kind, forms in (
            ("dicts", ("{}", "{}", "{}.keys()", "{}.values()", "list({})", "sorted({})", "reversed({})")),
            ("sets", ("sorted({})",)),
            ("queues", ("{}", "list({})", "reversed({})", "itertools.islice({}, 2)")),
            ("counters", ("{}", "sorted({})", "{}.elements()")),
            ("groups", ("{}", "sorted({})")),
        ):
            if self.names[kind]:
                options += [form.format(self.known(kind)) for form in forms]
        return self.pick(*options)

    def pairs(self) -> str:
        """An iterable of pairs, the second of which is a text."""
        first = self.items()
        options = [
            *[f"enumerate({first})"] * 3,
            *[f"zip({first}, {self.items()})"] * 3,
            f"enumerate({first}, 1)",
            f"zip(range(3), {first})",
            f"zip(*[iter({first})] * 2)",
            *self.of_libraries(
                f"zip(itertools.count(), {first})",
                f"zip(itertools.cycle('xy'), {first})",
                f"itertools.zip_longest(words, {first}, fillvalue='-')",
                f"itertools.pairwise({first})",
                f"((k, '-'.join(g)) for k, g in itertools.groupby({first}))",
                f"((k, next(g)) for k, g in itertools.groupby({first}, key=lambda q: {self.pick('q[:1]', 'len(q)')}))",
                f"itertools.product('xy', {first})",
            ),
            *self.names["pairs"] * 3,
        ]
        if self.names["dicts"]:
            options += [f"{self.known('dicts')}.items()"] * 2
        if self.names["counters"]:
            options += [f"((c, k) for k, c in {self.known('counters')}.most_common(2))"]
        return self.pick(*options)

    def of_libraries(self, *options: str) -> tuple[str, ...]:
        return options if self.libraries else ()

    # Statements

    def write(self) -> str:
        return f"s.append({self.text()})"

    def statement(self) -> list[str]:
        if not self.lists:
            return self._list()
        kinds = [
            *["if"] * 6,
            *["change"] * 8,
            *["iterator", "take"] * 3,
            "alias",
            "alias",
            "list",
            "dict",
            "set",
            "rows",
            "one_row",
            "records",
            "answer",
            "columns",
        ]
        kinds += ["pairs", "comprehension", "flag", "write", "ask", "helper", "by_key", "best", "match"]
        kinds += [*self.of_libraries("queue", "counter", "group"), *["held_twice"] * 25 * self.of_rows]
        if not self.functions:
            kinds += ["rebind"] * 3
        if self.loops < 2:
            kinds += [*["for"] * 6, "while", "while", "index", "each_row", "drain"]
        kinds += ["end"] * bool(self.loops) + ["leave"] * bool(self.depth) + ["inner"] * (not self.depth)
        return self.maker(*kinds)

    def idle(self) -> list[str]:
        return [self.write()]

    def prelude(self) -> list[str]:
        return [*self._list(), *(self._list() if self.one_in(2) else [])]

    def ending(self) -> list[str]:
        same = ", ".join(f"{xs} is {self.lists[0]}" for xs in self.lists[1:])
        return [f"[{same}]", *super().ending()]

    def _list(self) -> list[str]:
        value = self.pick("[a]", "[a, b]", "['p', a, 'q']", "list(words)", "[]", "[a, b, 'x', a]")
        return self.bind("lists", "xs", value)

    def _dict(self) -> list[str]:
        value = self.pick(
            "{'p': a, 'q': b}",
            "{a: 'u', 'k': b, 'l': 'v'}",
            "dict.fromkeys(words, a)",
            "{w: a for w in words}",
            *self.of_libraries("OrderedDict([('p', a), ('q', b)])"),
            f"dict(zip('pqr', {self.known('lists')}))",
        )
        return self.bind("dicts", "d", value)

    def _set(self) -> list[str]:
        return self.bind("sets", "seen", self.pick("set()", "{a}", "set(words)", f"set({self.known('lists')})"))

    def _queue(self) -> list[str]:
        xs = self.known("lists")
        return self.bind(
            "queues", "q", self.pick("deque([a])", "deque(words)", f"deque({xs})", f"deque({xs}, maxlen=2)")
        )

    def _counter(self) -> list[str]:
        return self.bind("counters", "c", self.pick("Counter()", "Counter(words)", f"Counter({self.known('lists')})"))

    def _group(self) -> list[str]:
        return self.bind("groups", "g", "defaultdict(list)")

    def _flag(self) -> list[str]:
        return self.bind("flags", "f", self.asked())

    def _ask(self) -> list[str]:
        option = self.pick("max_tokens=2, temperature=1.0", "max_tokens=3")
        if self.one_in(2):
            xs = self.known("lists")
            option = self.pick(
                f"choices={xs} or ['z']",
                f"choices=[q or 'z' for q in {xs}] or ['z'], temperature=1.0",
                f"choices=sorted(set({xs}), key=len) or ['z']",
                f"choices=[a + 'e', {self.text()} + 'e']",
                f"regex='[ex]' * (len({xs}) + 1)",
                *[f"choices={d}" for d in self.names["dicts"][:1]],
                *[f"choices=list({d}) or ['z'], temperature=1.0" for d in self.names["dicts"][:1]],
            )
        return self.bind("texts", "t", f"s.gen({self.pick(repr('g'), repr('h'), 'None')}, {option})")

    def _write(self) -> list[str]:
        return [self.write()]

    def _alias(self) -> list[str]:
        kind = self.pick(*[kind for kind in KINDS if self.names[kind]])
        name = self.known(kind)
        if self.one_in(4) and kind == "lists" and self.own(kind):
            return [f"{self.pick(*self.own(kind))} = {name}"]
        if self.one_in(3) and kind == "lists":
            box, other = self.fresh("box"), self.known(kind)
            self.lists.append(f"{box}['k']")
            return [f"{box} = {{'k': {name}, 'l': {other}}}"]
        return self.bind(kind, {"lists": "ys", "iterators": "jt"}.get(kind, kind[0] + "o"), name)

    def _rebind(self) -> list[str]:
        """Another container under a name that others may be aliases of, or that rounds of a loop carry."""
        kinds = [kind for kind in ("lists", "lists", "lists", "dicts", "sets") if self.own(kind)]
        if not kinds:
            return self._list()
        kind = self.pick(*kinds)
        name, text = self.pick(*self.own(kind)), self.text()
        if kind == "dicts":
            return [f"{name} = {self.pick(f'{{**{name}, {text}: a}}', f'dict({name})', '{}', self.known('dicts'))}"]
        if kind == "sets":
            return [f"{name} = {self.pick(f'{name} | {{{text}}}', f'set({name})', 'set()', self.known('sets'))}"]
        value = self.pick(
            f"{name}[1:]",
            f"({name} + [{text}])[-3:]",
            f"[q for q in {name} if q != {text}]",
            f"[{text}]",
            f"[{text}, 'm']",
            "[]",
            f"list({name})",
            f"{self.known('lists')}[:2]",
        )
        return [f"{name} = {value}"]

    def _iterator(self) -> list[str]:
        xs = self.known("lists")
        value = self.pick(
            *[f"iter({xs})"] * 4,
            *[f"reversed({xs})"] * 2,
            f"(q + '.' for q in {xs})",
            f"map(str.upper, {xs})",
            f"filter(None, {xs})",
            *self.of_libraries(
                f"itertools.chain({xs}, {self.known('lists')})",
                f"itertools.islice({xs}, 1, None)",
                f"itertools.cycle({xs} or ['z'])",
            ),
            f"{self.pick('shouted', 'shouted', 'careful')}({xs})",
            f"iter({self.items()})",
        )
        if "cycle" in value:
            value = f"itertools.islice({value}, 3)"
        return self.bind("iterators", "it", value)

    def _take(self) -> list[str]:
        if not self.names["iterators"]:
            return self._iterator()
        it = self.known("iterators")
        if self.one_in(4):
            return self.bind("lists", "xs", self.pick(f"list({it})", f"sorted({it})", f"[*{it}]"))
        if self.one_in(5):
            (begun,) = self.bind("texts", "t", "'none'")
            return [
                begun,
                f"for {self.texts[-1]} in {it}:",
                f"    {self.pick('break', f'if {self.condition()}: break')}",
            ]
        value = self.pick(
            *[f"next({it}, 'end')"] * 5,
            f"'-'.join({it})",
            f"str(b in {it})",
            f"str(sum(1 for _ in {it}))",
            f"last({it})",
            f"max({it}, default='none')",
            f"str(list(zip({it}, {self.known('iterators')})))",
        )
        return self.bind("texts", "t", value)

    def _change(self) -> list[str]:
        changes = ["list"] * 6
        changes += [kind for kind in ("rows", "dicts", "sets", "queues", "counters", "groups") if self.names[kind]] * 2
        return getattr(self, f"change_{self.pick(*changes)}")()

    def change_list(self) -> list[str]:
        xs, text = self.known("lists"), self.text()
        grow = self.pick(
            *[f"{xs}.append({text})"] * 4,
            f"{xs}.insert(0, {text})",
            f"{xs}.insert(1, {text})",
            f"{xs}.extend([{text}, 'y'])",
            f"{xs}.extend(tuple({self.pick(xs, f'{text}.split()')})[:2])",
            f"{xs}[len({xs}):] = [{text}]",
            f"{xs}[:0] = [{text}]",
            *([f"{xs} += [{text}]", f"{xs} += ({text}, 'y')"] if xs in self.own("lists") else []),
        )
        shrink = self.pick(
            f"if {xs}: {xs}.pop()",
            f"if {xs}: {xs}.pop(0)",
            f"if {xs}: del {xs}[0]",
            f"if a in {xs}: {xs}.remove(a)",
            f"{xs}.clear()",
            f"{xs}.sort()",
            f"{xs}.reverse()",
            f"{xs}[:] = [{text}]",
            f"{xs}[:] = {self.known('lists')}",
            f"{xs}[:] = [q for q in {xs} if q != {self.pick(*self.texts)}]",
            f"del {xs}[1:]",
            f"{xs}[1:2] = [{text}]",
            f"if {xs}: {xs}[0] = {text}",
            f"if {xs}: {xs}[-1] += '+'",
            *([f"{xs} *= {self.pick('0', '1')}"] if xs in self.own("lists") else []),
            f"drop({xs})",
            f"push({xs}, {text})",
            f"front({xs}, {text})",
        )
        if self.draw(st.booleans()):
            return [shrink]
        return [grow] if self.depth == 0 and not self.loops else [f"if len({xs}) < {MOST_ITEMS}: {grow}"]

    def change_rows(self) -> list[str]:
        rows, text = self.known("rows"), self.text()
        change = self.pick(
            f"{rows}.append([{text}])",
            f"{rows}.append({self.known('lists')})",
            f"{rows}[0].append({text})",
            f"{rows}[-1] = [{text}]",
            f"{rows}[0] += [{text}]",
            f"{rows}.insert(0, {rows}[-1])",
            f"{rows} += [[{text}]] * 2" if not self.functions else "pass",
            f"{rows}.extend(twice([{text}]))",
            f"{rows}[0] = {rows}[-1] = [{text}]",
            f"{self.picked(rows)}.append({text})",
            f"{self.picked(rows)}[:1] = [{text}]",
        )
        return [f"if 0 < len({rows}) < 4 and len({rows}[0]) < {MOST_ITEMS}: {change}"]

    def change_dicts(self) -> list[str]:
        d, text = self.known("dicts"), self.text()
        change = self.pick(
            f"{d}['p'] = {text}",
            f"{d}[{self.pick(*self.texts)}] = {text}",
            f"{d}.pop('p', None)",
            f"{d}.setdefault('m', {text})",
            f"{d}.update(p={text}, z='z')",
            f"{d}.clear()",
            f"if 'q' in {d}: del {d}['q']",
            f"{d}.pop('q', None); {d}['q'] = {text}",
            f"for key in list({d}): {d}[key] = {text}",
            f"if {d}: {d}.popitem()",
        )
        return [change]

    def change_sets(self) -> list[str]:
        seen, text, other = self.known("sets"), self.text(), self.pick(self.known("sets"), self.known("lists"))
        change = self.pick("update", "difference_update", "intersection_update", "symmetric_difference_update")
        name = self.pick("union", "intersection", "difference", "symmetric_difference")
        test = self.pick("issubset", "issuperset", "isdisjoint")
        return self.pick(
            [f"{seen}.add({text})"],
            [f"{seen}.discard(a)"],
            [f"{seen}.clear()"],
            [f"{seen}.{change}({other})"],
            [f"{seen} {self.pick('|=', '&=', '-=', '^=')} {self.known('sets')}" if not self.functions else "pass"],
            self.bind("sets", "seen", f"{seen}.{name}({other})"),
            self.bind("sets", "seen", f"set().union({other}, {seen})"),
            self.bind("flags", "f", f"{seen}.{test}({other})"),
        )

    def change_queues(self) -> list[str]:
        q, text = self.known("queues"), self.text()
        change = self.pick(
            f"{q}.append({text})",
            f"{q}.appendleft({text})",
            f"{q}.rotate(1)",
            f"{q}.extend(words)",
            f"if {q}: {q}.pop()",
            f"{q}.clear()",
        )
        if self.one_in(3):
            return self.bind("texts", "t", f"{q}.popleft() if {q} else 'none'")
        return [change if "append" not in change else f"if len({q}) < {MOST_ITEMS}: {change}"]

    def change_counters(self) -> list[str]:
        c, text = self.known("counters"), self.text()
        return [self.pick(f"{c}[{text}] += 1", f"{c}.update([{text}])", f"{c}.subtract([a])", f"del {c}[a]")]

    def change_groups(self) -> list[str]:
        g, text = self.known("groups"), self.text()
        if self.one_in(3):
            return self.bind("lists", "xs", f"{g}[{text}]")
        return [f"{g}[{self.text()}].append({text})"]

    def _for(self) -> list[str]:
        if not self.one_in(3):
            return super()._for()
        item = self.fresh("x")
        return [
            f"for {self.fresh('i')}, {item} in {self.pairs()}:",
            *self.arm(4, loop=True, texts=item),
            *self.otherwise(),
        ]

    def _while(self) -> list[str]:
        if self.one_in(2):
            return super()._while()
        counter = self.fresh("k")
        xs = self.known("lists")
        test = self.pick(xs, f"len({xs}) < 4", *[self.known("queues")] * 2 * bool(self.names["queues"]))
        head = f"while {counter} < {self.pick('3', '2', '4')} and {test}:"
        return [f"{counter} = 0", head, f"    {counter} += 1", *self.arm(4, loop=True)]

    def _index(self) -> list[str]:
        xs, at, item = self.known("lists"), self.fresh("at"), self.fresh("x")
        head = f"while {at} < len({xs}) and {at} < 4:"
        body = self.arm(loop=True, texts=item)
        return [f"{at} = 0", head, f"    {item} = {xs}[{at}]", f"    {at} += 1", *body]

    def _each_row(self) -> list[str]:
        if not self.names["rows"]:
            return self._rows()
        row, rows = self.fresh("row"), self.known("rows")
        source = self.pick(rows, rows, f"reversed({rows})", f"iter({rows})", f"{rows}[:2]")
        return [f"for {row} in {source}:", *self.arm(loop=True, lists=row)]

    def _drain(self) -> list[str]:
        """A loop that takes one item after the other from an iterator."""
        if not self.names["iterators"]:
            return self._iterator()
        it, item, counter = self.known("iterators"), self.fresh("x"), self.fresh("k")
        body = self.arm(loop=True, texts=item)
        test = self.pick(f"({item} := next({it}, ''))", f"{counter} < 3 and ({item} := next({it}, ''))")
        if self.functions or self.one_in(2):
            body = [f"    {item} = next({it}, '')", f"    if not {item}: break", *body]
            test = f"{counter} < 4"
        return [
            f"{item} = ''",
            f"{counter} = 0",
            f"while {test}:",
            f"    {counter} += 1",
            f"    if {counter} > 4: break",
            *body,
        ]

    def picked(self, rows: str, key: str | None = None) -> str:
        """One of some lists or dicts, which what is in them decides."""
        keys = "len", "str", "lambda r: r[:1]", "lambda r: sum(map(len, r))", "lambda r: len(r[0]) if r else 0"
        known = self.pick(*keys) if key is None else key
        return self.pick(
            f"{self.pick('min', 'max')}({rows}, key={known})",
            f"sorted({rows}, key={known})[{self.pick('0', '-1')}]",
            f"max(zip({rows}, range(9)), key=lambda p: len(p[0]))[0]",
            f"next(r for r in sorted({rows}, key={known}))",
            *([f"{self.pick('min', 'max')}({rows})"] if key is None else []),
        )

    def _rows(self) -> list[str]:
        xs, ys = self.known("lists"), self.known("lists")
        made = self.bind(
            "rows",
            "rows",
            self.pick(
                f"[{xs}, ['z']]",
                f"sorted([{xs}, {ys}], key=len)",
                f"[{xs}, {ys}]",
                "[[a], [b]]",
                f"[[w] for w in {xs}]",
                *(f"[r for r in {rows} if {self.condition()}]" for rows in self.names["rows"][:2] * 2),
                *self.same_rows(),
            ),
        )
        later = f"if {self.condition()} and len({xs}) < {MOST_ITEMS}: {xs}.append({self.text()})"
        return [*made, later] if self.one_in(3) else made

    def _one_row(self) -> list[str]:
        if not self.names["rows"]:
            return self._rows()
        rows = self.known("rows")
        if self.one_in(2):
            test = f"if {rows} and sum(map(len, {rows})) < 12"  # one of them may be what a loop goes over
            return [f"{test}: {self.picked(rows)}.append({self.text()})"]
        (line,) = self.bind("lists", "row", f"{self.picked(rows)} if {rows} else []")
        name = self.names["lists"][-1]
        return [line, f"if len({name}) < {MOST_ITEMS}: {name}.append({self.text()})"]

    def _records(self) -> list[str]:
        records, best = self.fresh("ds"), self.fresh("best")
        key = self.pick("lambda d: d['k']", "lambda d: len(d['k'])", "lambda d: -len(d['k'])")
        chosen = self.picked(records, key)
        change = self.pick("['n'] = 1", ".update(n=len(xs))".replace("xs", self.known("lists")), "['k'] += '!'")
        ranked = f"for i, d in enumerate(sorted({records}, key={key})): d['rank'] = i"
        items = ", ".join(f"{{'k': {self.text()}}}" for _ in range(self.pick(1, 2, 3, 5)))
        kept = f"kept = [d for d in {records} if {self.condition()}]"
        changed = self.pick("s.append(d['k'])", "d['k'] += a", "d['m'] = b")
        looked = self.pick("len(kept)", "kept", "[d['k'] for d in kept]", f"[d is kept[0] for d in {records}]")
        if self.one_in(3):
            return [
                f"{records} = [{items}]",
                kept,
                f"for d in kept: {changed}",
                *self.bind("texts", "t", f"str([{looked}, {records}])"),
            ]
        return [
            f"{records} = [{items}]",
            f"{best} = {chosen}",
            f"{best}{change}" if self.one_in(2) else f"{chosen}{change}",
            *([ranked] * self.one_in(2)),
            *self.bind("texts", "t", f"str([{records}, {best}, [d is {best} for d in {records}]])"),
        ]

    def _answer(self) -> list[str]:
        """A list that the model gives, which the program changes and functions of Python look at."""
        if self.one_in(2):
            return self.record_answer()
        name = self.fresh("js")
        schema = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 2}
        change = f"{name}.append({self.pick('7', 'n')})"
        looks = self.pick(
            "json.dumps({0})", "json.dumps([{0}, 1])", "math.prod({0})", "statistics.mean([0, *{0}])", "sum({0})"
        )
        return [
            f"{name} = s.gen(schema={schema}, max_tokens=20, temperature=1.0)",
            f"if {self.condition()}: {change}" if self.one_in(2) else change,
            *self.bind("texts", "t", f"str({looks.format(name)})"),
        ]

    def _columns(self) -> list[str]:
        """Rows that a loop collects, taken apart by columns."""
        rows, xs, text = self.fresh("grown"), self.known("lists"), self.text()
        made = self.pick(f"(x, {text})", f"[x, {text}]", "(x, 'y', x)", "x.split('e')", "x")
        return [
            f"{rows} = []",
            f"for x in {self.items()}:",
            f"    if len({rows}) < 4 and {self.condition()}: {rows}.append({made})",
            self.pick(
                f"for c in zip(*{rows}): s.append('-'.join(c))",
                f"if len({rows}) == 2: {xs}[:] = [str(c) for c in zip(*{rows})][:2]",
                f"for c in zip(*{rows}): {rows} = [c]",
            ),
            *self.bind("texts", "t", f"str([[*zip(*{rows})], dict(zip(*{rows}[:1] * 2)), joined(*map(str, {rows}))])"),
        ]

    def record_answer(self) -> list[str]:
        """A dict that the model or a tool gives: it is copied, and the copy and the dict are changed."""
        name, made = self.fresh("js"), self.fresh("d")
        number = {"type": "integer", "minimum": 0, "maximum": 9}
        fields = {"m": number, "k": {"type": "array", "items": number, "maxItems": 2}}
        schema = {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
        answer = f"s.gen(schema={schema}, max_tokens=60, temperature=1.0)"
        source = self.pick(
            answer, f"json.loads({answer})", f"json.loads(json.dumps({answer}))", f"record({self.text()})"
        )
        copied = self.pick(
            f"{{**{name}, 'q': a}}",
            f"{{'m': b, 'q': a, **{name}}}",
            f"dict({name})",
            f"dict({name}, m=b)",
            f"{{**{name}, **{name}, {self.text()}: 1}}",
            f"{{'c': [*{name}], 'k': [*{name}['k'], 7], 'v': (*{name}.values(), a)}}",
            f"dict({name}.items())",
        )
        changes = [
            f"{self.pick(name, made)}[{self.pick('a', repr('m'), repr('z'))}] = {self.text()}",
            f"{self.pick(name, made)}['k'].append(8)",
            f"effect(changed({self.pick(name, made)}))",
            f"if 'e' in {self.text()}: {made} = {{**{self.pick(name, made)}, 'y': 5}}",
        ]
        lines = [self.pick(*changes) for _ in range(self.pick(0, 1, 2))]
        shown = self.pick(made, f"[*{made}]", f"{{**{made}, 'w': 1}}", f"len({made})", f"json.dumps({made})")
        first = [lines.pop()] if lines and made not in lines[-1] else []
        return [
            f"{name} = {source}",
            *first,
            f"{made} = {copied}",
            *lines,
            *self.bind("texts", "t", f"str([{shown}, {name}])"),
        ]

    def _held_twice(self) -> list[str]:
        rows = self.names["rows"]
        if not rows or self.one_in(6):
            return self.bind("rows", "rows", self.pick(*self.same_rows()))
        change = self.change_rows()
        return [f"if {self.condition()}:", *("    " + line for line in change)] if self.one_in(2) else change

    def same_rows(self) -> tuple[str, ...]:
        """Lists that hold one list twice."""
        text = self.text()
        return f"[[{text}]] * 2", f"twice([{text}])", f"list(dict.fromkeys('xy', [{text}]).values())"

    def _pairs(self) -> list[str]:
        xs = self.known("lists")
        value = self.pick(f"enumerate({xs})", f"zip({xs}, {self.known('lists')})", f"enumerate({self.items()})")
        return self.bind("pairs", "pairs", value)

    def _by_key(self) -> list[str]:
        xs, text = self.known("lists"), self.text()
        keyed = [kind for kind in ("dicts", "counters", "groups") if self.names[kind]]
        if keyed and self.one_in(2):
            d, best = self.known(self.pick(*keyed)), self.pick("max", "min")
            key = self.pick(f"str({d}[q])", f"len(str({d}[q]))", f"(len({d}), {d}[q])", f"len(push({xs}, q))")
            return self.bind("texts", "t", f"{best}({d}, key=lambda q: {key}, default={text})")
        key = self.pick("len(q)", f"len({xs})", f"len(push({xs}, q))", f"drop({xs})", f"(ask_and_push(s, {xs}, q), q)")
        if self.one_in(3):
            return [f"{xs}.sort(key=lambda q: {self.pick('len(q)', f'len({xs})', f'len(push({xs}, q))')})"]
        if self.one_in(3):
            return self.bind("lists", "xs", f"sorted({xs}, key=lambda q: {key})")
        if self.one_in(3):
            made = self.pick(self.text(), "q", "s.gen('g', max_tokens=2)", f"push({xs}, q)")
            source = f"({made} for q in {self.items()})"
            call = f"{self.pick('max', 'min', 'sorted')}({source}, key=lambda q: {key})"
            return self.bind("texts", "t", f"str({call}) if {xs} else 'none'")
        return self.bind("texts", "t", f"{self.pick('max', 'min')}({xs}, key=lambda q: {key}, default={text})")

    def _best(self) -> list[str]:
        """A name that is nothing before a loop, and a tuple of some round behind it."""
        best, item, text = self.fresh("best"), self.fresh("x"), self.text()
        first = self.pick("None", "None", "''", f"({text}, 0)", f"(0, {text}, 'e')")
        made = self.pick(
            f"({item}, {text})", f"({text}, 1)", f"(1, ({item}, {text}))", f"{item}", f"({item}, 2, {best})"
        )
        test = self.pick(self.condition(), f"{best} is None", f"not {best}", f"len(str({best})) < 9")
        body = self.arm(2, loop=True, texts=item) if self.loops < 2 and self.one_in(2) else []
        lines = [f"{best} = {first}", f"for {item} in {self.items()}:", f"    if {test}: {best} = {made}", *body]
        value = self.pick(f"str({best})", f"str({best}[0]) if {best} else 'none'", f"str({best} == ({text}, 1))")
        return [*lines, *self.bind("texts", "t", value)]

    def _match(self) -> list[str]:
        """A ``match`` on the parts of a container; its patterns bind texts and lists."""
        xs, ys, text = self.known("lists"), self.known("lists"), self.text()
        others = [self.known(kind) for kind in ("queues", "dicts", "sets", "rows") if self.names[kind]]
        subject = self.pick(*[xs] * 4, *others, f"{text}.split('e')", f"({text}, {xs})", f"[{xs}, {ys}]", text)
        patterns = ["[]", "[q]", "[q, 'e' | 'x']", "[q, r]", "[q, *rest]", "[*rest, q]", "[q, *_, r]", "['e', *rest]"]
        patterns += ["[q, [r, *rest]]", "[[q], [r, *_]]", "[str() as q, *rest]", "['x' as q, r]", "[q, *rest, 'e']"]
        lines = [f"match {subject}:"]
        for _ in range(self.draw(st.integers(1, 3))):
            pattern = self.pick(*patterns)
            bound = {name for name in ("q", "r", "rest") if re.search(rf"\b{name}\b", pattern)}
            shown = f"str([{', '.join(sorted(bound))}])"
            guard = f" if {self.condition()}" if self.one_in(3) else ""
            lines += [f"    case {pattern}{guard}:", f"        s.append({shown})"]
            if "rest" in bound and self.one_in(2):
                lines += [f"        {self.pick(f'rest.append({text})', f'{xs}.extend(map(str, rest[:2]))')}"]
            lines += ["    " + line for line in self.arm(2)]
        return [*lines, "    case _:", *["    " + line for line in self.arm(1)]]

    def _comprehension(self) -> list[str]:
        xs = self.known("lists")
        made = self.pick("q + '!'", f"push({xs}, q)", f"(ask_and_push(s, {xs}, q), q)[1]", f"drop({xs})")
        source = self.pick(xs, xs, self.items())
        test = self.pick("", "", " if q", f" if {self.asked()}", f" if {xs}")
        if self.one_in(4):
            form = self.pick("any({} == b {})", "all({} != b {})", "max(({} {}), default='none')", "'-'.join({} {})")
            return self.bind("texts", "t", f"str({form.format(made, f'for q in {source}{test}')})")
        form = self.pick("[{}]", "[{}]", "list({})", "sorted({})")
        return self.bind("lists", "xs", form.format(f"{made} for q in {source}{test}"))

    def _helper(self) -> list[str]:
        xs, text = self.known("lists"), self.text()
        call = self.pick(f"str(ask_and_push(s, {xs}, {text}))", f"drop({xs})", f"push({xs}, {text})", f"last({xs})")
        return self.bind("texts", "t", call)


def container_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)`` with containers that change while it looks at them."""
    return programs_of(Containers, budget=(5, 14))
