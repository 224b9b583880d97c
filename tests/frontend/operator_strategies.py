"""Random programs that use containers of the standard library and logging user classes in every operator.

Every special method of the user's classes is an effect, so a call that is missing, or made twice, is seen.
"""

from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import HEADER, Drawing, many

OPERATORS_HEADER = (
    HEADER
    + """
import array
import contextlib
import enum
import os
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

os.environ["LMC_TEST_KEY"] = "j"
Pair = namedtuple("Pair", "k j")


class Color(enum.Enum):
    K = "k"
    J = "j"


def logged(*names):
    def add(kind):
        def method(name):
            special = f"__{name}__"
            inner = BEHAVIOUR[name]

            def call(self, *operands):
                effect(kind.__name__, special, self.name, *(_shown(operand) for operand in operands))
                return inner(self, *operands)

            call.__name__ = special
            return call

        for name in names:
            setattr(kind, f"__{name}__", method(name))
        return kind

    return add


def _shown(value):
    return value.name if isinstance(value, Logged) else repr(value)


def _items(value):
    return value.items if isinstance(value, Logged) else value


def _added(self, other):
    self.items = [*self.items, other]
    return self


BEHAVIOUR = {
    "bool": lambda self: len(self.items) > 0,
    "contains": lambda self, item: item in self.items,
    "iter": lambda self: iter(self.items),
    "reversed": lambda self: iter(self.items[::-1]),
    "getitem": lambda self, key: self.items[key if isinstance(key, (int, slice)) else self.items.index(key)],
    "setitem": lambda self, key, value: self.items.__setitem__(key, value),
    "delitem": lambda self, key: self.items.__delitem__(key),
    "eq": lambda self, other: self.items == _items(other),
    "ne": lambda self, other: self.items != _items(other),
    "lt": lambda self, other: len(self.items) < 2,
    "le": lambda self, other: len(self.items) < 2,
    "gt": lambda self, other: len(self.items) > 1,
    "ge": lambda self, other: len(self.items) > 1,
    "add": lambda self, other: "add",
    "radd": lambda self, other: "radd",
    "sub": lambda self, other: "sub",
    "rsub": lambda self, other: "rsub",
    "mul": lambda self, other: "mul",
    "rmul": lambda self, other: "rmul",
    "or": lambda self, other: "or",
    "ror": lambda self, other: "ror",
    "mod": lambda self, other: "mod",
    "rmod": lambda self, other: "rmod",
    "iadd": _added,
    "neg": lambda self: "neg",
    "invert": lambda self: "invert",
    "index": lambda self: len(self.items),
    "int": lambda self: len(self.items),
    "hash": lambda self: 5,
    "str": lambda self: "str of " + self.name,
    "format": lambda self, spec: "format of " + self.name,
}


class Logged:
    def __init__(self, name, *items):
        self.name = name
        self.items = list(items)

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.items!r})"

    def restore(self, *items):
        self.items = list(items)


@logged(*BEHAVIOUR)  # and no __len__: list() may call that beside __iter__, or not
class All(Logged):
    pass


BEHAVIOUR["len"] = lambda self: len(self.items)


@logged("contains", "len")
class Bag(Logged):
    pass


@logged("getitem")
class Seq(Logged):
    pass


@logged("iter")
class Walk(Logged):
    pass


@logged("bool")
class Truth(Logged):
    pass


@logged("len")
class Sized(Logged):
    pass


@logged("eq", "hash")
class Equal(Logged):
    pass


class Missing(dict):
    def __missing__(self, key):
        effect("Missing", repr(key))
        return "missing"

    def __contains__(self, key):
        effect("Missing contains", repr(key))
        return True


class Words(list):
    def __bool__(self):
        effect("Words bool")
        return False

    def __contains__(self, item):
        effect("Words contains", repr(item))
        return False


class Name(str):
    def __eq__(self, other):
        effect("Name eq", repr(other))
        return True

    def __hash__(self):
        return str.__hash__(self)

    def __contains__(self, item):
        effect("Name contains", repr(item))
        return True


class Plain(dict):
    pass


def fresh(name):
    return MAKE[name]()


MAKE = {
    "DICT": lambda: {"k": 1, "j": "k", ("k", "j"): 2},
    "ORDERED": lambda: OrderedDict([("k", 1), ("j", "k"), (("k", "j"), 2)]),
    "COUNTER": lambda: Counter({"k": 2, "j": 1}),
    "DEFAULT": lambda: defaultdict(int, {"k": 1, ("k", "j"): 2}),
    "CHAIN": lambda: ChainMap({"k": 1}, {"j": 2, "k": 3}),
    "PROXY": lambda: MappingProxyType({"k": 1, "j": 2}),
    "USERDICT": lambda: UserDict({"k": 1, "j": "k"}),
    "ENVIRON": lambda: os.environ,
    "MISSING": lambda: Missing({"k": 1}),
    "PLAIN": lambda: Plain({"k": 1, "j": 2}),
    "LIST": lambda: ["k", "j", ("k", "j"), 1],
    "TUPLE": lambda: ("k", "j", ("k", "j")),
    "DEQUE": lambda: deque(["k", "j", ("k", "j")]),
    "USERLIST": lambda: UserList(["k", "j", "k"]),
    "ARRAY": lambda: array.array("i", [1, 0, 2]),
    "RANGE": lambda: range(3),
    "TEXT": lambda: "k j",
    "BYTES": lambda: b"kj",
    "BYTEARRAY": lambda: bytearray(b"kj"),
    "PAIR": lambda: Pair("k", "j"),
    "WORDLIST": lambda: Words(["k"]),
    "NAME": lambda: Name("k"),
    "SET": lambda: {"k"},
    "FROZEN": lambda: frozenset({"k"}),
    "KEYS": lambda: {"k": 1}.keys(),
    "VALUES": lambda: {"k": "j"}.values(),
    "ITEMS": lambda: {"k": 1}.items(),
    "ALL": lambda: All("all", "k", "j"),
    "BAG": lambda: Bag("bag", "k"),
    "SEQ": lambda: Seq("seq", "k", "j"),
    "WALK": lambda: Walk("walk", "k", "j"),
    "TRUTH": lambda: Truth("truth", "k"),
    "FALSE": lambda: Truth("false"),
    "SIZED": lambda: Sized("sized", "k"),
    "EMPTY": lambda: Sized("empty"),
    "EQUAL": lambda: Equal("equal", "k"),
    "ITERATOR": lambda: iter(["k", "j", "k"]),
    "NONE": lambda: None,
    "FRACTION": lambda: Fraction(3, 2),
    "DECIMAL": lambda: Decimal("1.5"),
    "COLOR": lambda: Color.K,
}
LIVE = {name: make() for name, make in MAKE.items()}
globals().update(LIVE)
TAKEN = [Name("k"), Equal("inner", "k"), "j"]
NESTED = {"k": ORDERED, "j": [COUNTER, ALL]}


def restore():
    for name, live in LIVE.items():
        if isinstance(live, Logged):
            live.restore(*MAKE[name]().items)
        elif isinstance(live, array.array):
            live[:] = MAKE[name]()
        elif hasattr(live, "clear") and live is not os.environ:
            live.clear()
            if isinstance(live, ChainMap):
                live.maps[1:] = MAKE[name]().maps[1:]
                live.maps[0].update(MAKE[name]().maps[0])
            elif hasattr(live, "update"):
                live.update(MAKE[name]())
            else:
                live.extend(MAKE[name]())
    # An iterator can't be put back: the one of the module stays used up.
    os.environ.pop("LMC_TEST_NEW", None)


def give(name):
    effect("give", name)
    return fresh(name)


@tool(effect="reads")
def fetch(name):
    return fresh(name)


@tool(effect="pure")
def made(name: str) -> dict:
    return {"k": 1, name: "j"}


@tool(effect="reads")
def listed(name: str) -> list[str]:
    return ["k", name]


def change(name):
    effect("change", name)
    live = LIVE[name]
    if isinstance(live, Logged):
        live.items.append("z")
    elif hasattr(live, "update"):
        live.update({"z": 5} if not isinstance(live, set) else {"z"})
    elif hasattr(live, "append") and not isinstance(live, (array.array, bytearray)):
        live.append("z")


def contained(t, v):
    effect("contained")
    return t in v


def within(t, v):
    return t in v


def asked(v):
    if v:
        return "yes"
    return "no"


class Holder:
    def __init__(self, held):
        self.held = held


HOLDER = Holder(LIVE["ORDERED"])

"""
)


KINDS = {
    "map": many("DICT  ORDERED  COUNTER  DEFAULT  CHAIN  PROXY  USERDICT  MISSING  PLAIN"),
    "sequence": many("LIST  TUPLE  DEQUE  USERLIST  ARRAY  RANGE  BYTES  BYTEARRAY  PAIR  WORDLIST"),
    "text": many("TEXT  NAME"),
    "set": many("SET  SET  FROZEN  FROZEN  KEYS  VALUES  ITEMS"),
    "all": many("ALL"),
    "walk": many("SEQ  WALK  BAG"),
    "truth": many("TRUTH  FALSE  SIZED  EMPTY  EQUAL  NONE  COLOR"),
    "environment": many("ENVIRON"),
    "number": many("FRACTION  DECIMAL"),
    "iterator": many("ITERATOR"),
}
NAMES = [name for kind, names in KINDS.items() for name in names if kind != "iterator"]
MADE = {
    "map": many("""
        Counter([a, b])  OrderedDict([('k', y)])  defaultdict(list, k=[a])  ChainMap({'k': y}, {a: 1})
        {'k': a, y: 2}  dict(k=y)  Missing(k=y)  made(a)  NESTED['k']  HOLDER.held  NESTED['j'][0]
        """),
    "sequence": many("""
        deque(['k', y])  Pair(a, y)  [a, y]  (a, y)  UserList([y])  array.array('i', [n])  range(n)
        [w for w in (a, y)]  listed(b)  [a, *LIST]  ['k', x]
        """),
    "text": many("y  x  a  f'{y} k'  plain(y)  lookup(b)"),
    "set": many("{a, b}  frozenset([a, y])  {'k': y}.items()  {y: 1}.keys()  set(LIST)"),
    "all": many("All('own', y)  NESTED['j'][1]  All('own')"),
    "walk": many("Walk('own', y)  Seq('own', 'k', y)"),
    "truth": many("Truth('own', y)  Sized('own')  Sized('own', a)"),
    "environment": many("ENVIRON"),
    "number": many("n  len(y)  Fraction(n, 2)"),
    "iterator": many("iter([a, y])  zip('ab', LIST)"),
}
HASHED = many("'k'  'k'  ('k', 'j')  1  a  a  b  x  y  y  plain(b)  lookup(a)  ('k', y)  TAKEN[0]")
ITEMS = HASHED + many("TAKEN[1]  None  [y]  ['k', 'j']  {'k': 1}  {'k'}  y + a  True  n  0")
_IN = many("({t} in {v})  ({t} in {v})  ({t} not in {v})  within({t}, {v})  contained({t}, {v})  ({t} in {v} in [1])")
_WALKED = many("""
    [*{v}]  [q for q in {v}]  list({v})  tuple({v})  [*zip({v}, {v})]  list(enumerate({v}))  list(map(str, {v}))
    [q for q in {v} if q == y]  any(q == y for q in {v})  {{str(q): 1 for q in {v}}}
    """)
_PRINTED = many("f'{{{v}}}'  str({v})  repr({v})  '%s' % ({v},)  '{{}}'.format({v})  f'{{({v}, 1)}}'  str([{v}])")
_EQUAL = many("({v} == {m})  ({v} != {m})  ({m} == {v})  ({v} is {m})  ({t} == {v})")
_ORDERED = many("({v} < {m})  ({m} >= {v})  ({v} <= {v})")
_SIZED = _PRINTED + many("len({v})  bool({v})")
OPERATIONS = {
    "map": _IN
    + _WALKED
    + _SIZED
    + _EQUAL
    + many("""
        {v}['k']  {v}['k']  {v}[y]  {v}.get({t})  ({v} | {m})  {{**{v}}}
        """),
    "sequence": _IN
    + _WALKED
    + _SIZED
    + _EQUAL
    + _ORDERED
    + many("""
        {v}[0]  {v}[-1]  {v}[1:]  {v}[:n]  {v}[::-1]  ({v} + {m})  ({v} * n)  (2 * {v})  list(reversed({v}))
        """),
    "text": _WALKED
    + _SIZED
    + _EQUAL
    + _ORDERED
    + many("""
        (y in {v})  ('k' in {v})  (a not in {v})  {v}[0]  {v}[:n]  ({v} + y)  (a + {v})  ({v} * n)  ({v} % ())
        """),
    "set": _IN
    + _SIZED
    + _EQUAL
    + many("""
        sorted({v})  ({v} & {m})  ({v} | {{y}})  ({v} - {m})  ({v} <= {m})
        """),
    "all": _IN
    + _WALKED
    + _PRINTED
    + _EQUAL
    + _ORDERED
    + many("""
        {v}[0]  {v}['k']  ({v} + {t})  ({t} + {v})  ({t} - {v})  ({v} * n)  ({t} * {v})  ({v} % {t})  ({t} | {v})
        (-{v})  (~{v})  hash({v})  int({v})  LIST[{v}:]  {{{v}: 1}}  {{({v},): 1}}.get(y)  {{{v}, y}}  DICT[({v},)]
        [{v}].index({t})  [{v}].count({t})  set([{v}])  dict([({v}, 1)])  sorted([{v}, {v}])  LIST[{v}]  'k' * {v}
        list(reversed({v}))  range({v})
        """),
    "walk": _IN
    + _WALKED
    + _EQUAL
    + many("""
        sorted({v})  ' '.join({v})  max({v})  next(iter({v}))
        """),
    "truth": _EQUAL
    + many("""
        bool({v})  ({v} in [{t}, {v}])  str({v} is None)  isinstance({v}, Logged)
        """),
    "environment": many("""
        ({t} in {v})  ('LMC_TEST_KEY' in {v})  {v}['LMC_TEST_KEY']  {v}.get(a)  bool({v})  (a not in {v})
        """),
    "number": _EQUAL
    + _ORDERED
    + many("""
        ({v} + 1)  (n + {v})  (2 * {v})  ({v} - {m})  (-{v})  ({v} // 1)  f'{{{v}}}'
        """),
    "iterator": many("""
        ({t} in {v})  list({v})  next({v})  [q for q in {v}]  bool({v})  [*{v}, *{v}]  sorted({v})
        """),
}
BINARY = many("+  -  *  %  |  &  ^  //  /  @  **  <<  >>  ==  <  >=  in  not in")
TRUTHS = many("""
    (1 if {v} else 2)  ({v} and 'and')  ({v} or 'or')  (not {v})  any([{v}])  all([{v}, {v}])
    any(q for q in (0, {v}))  [q for q in (1, 2) if {v}]  len(list(filter(None, [{v}, {v}])))  bool({v})
    len(list(filter(lambda q: q, [{v}])))  asked({v})  ('a' if {v} and n else 'b')  (y == 'k' and {v})
    ('t' if not ({v} or {w}) else 'f')  sum(1 for q in [1, 2] if {v})  all([0, {v}])
    len([1 for q in [{v}, {w}] if q])  max([1, 2], key=lambda q: q if {v} else -q)  any(map(bool, [{v}]))
    [q for q in [{v}, {w}] if not q] == []  ({v} if {v} else {w}) is {v}  sorted([2, 1], key=lambda q: not {v})
    """)
CHANGED = many("DICT  ORDERED  COUNTER  DEFAULT  CHAIN  USERDICT  LIST  DEQUE  USERLIST  ALL  SEQ  EMPTY")
AUGMENTED = {
    "map": [("|=", "{y: 1}"), ("|=", "{'j': a}")],
    "sequence": [("+=", "[y]"), ("+=", "(a, 'k')"), ("*=", "2"), ("*=", "n")],
    "set": [("|=", "{y}"), ("&=", "{'k'}"), ("-=", "{a}")],
    "all": [("+=", "y"), ("+=", "'k'"), ("-=", "a"), ("*=", "2"), ("|=", "x")],
    "number": [("+=", "1"), ("*=", "n"), ("-=", "n")],
}


class OperatorWriter(Drawing):
    """Draws statements over a few values, each used by several operators."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.values: list[tuple[str, str]] = []
        self.depth = 0
        self.iterators = False  # whether one was drawn: its address must not be in the result
        self.given = self.pick(*NAMES)  # what the last argument is
        if self.given in ("KEYS", "VALUES", "ITEMS") and not self.one_in(4):
            self.given = "ORDERED"

    # Expressions

    def value(self) -> tuple[str, str]:
        """A container or an object, from wherever one may come, and its kind."""
        kind = self.pick(*KINDS, "map", "map", "sequence", "all", "all", "truth", "walk")
        self.iterators = self.iterators or kind == "iterator"
        name = self.pick(*KINDS[kind])
        source = self.draw(st.integers(0, 9))
        if kind == "iterator" or source in (4, 5):
            return self.pick(f"give('{name}')", f"fetch('{name}')"), kind
        if source == 6 and self.given in NAMES:
            return "c", next(kind for kind, names in KINDS.items() if self.given in names)
        if source > 6:
            return self.pick(*MADE[kind]), kind
        return name, kind

    def operand(self) -> tuple[str, str]:
        return self.pick(*self.values) if self.values and not self.one_in(4) else self.value()

    def expression(self) -> str:
        v, kind = self.operand()
        if self.one_in(12):
            pair = [v, self.pick(*ITEMS)]
            left, right = pair if self.draw(st.booleans()) else pair[::-1]
            return f"({left} {self.pick(*BINARY)} {right})"
        if self.one_in(5):
            return self.truth(v)
        like = [name for name, other in self.values if other == kind] + [v]
        hashed = kind in ("map", "set", "truth")
        item = self.pick(*(HASHED if hashed and not self.one_in(8) else ITEMS))
        made = self.pick(*OPERATIONS[kind])
        if "'" in v and made.startswith("f'"):
            made = "str({v})"
        return made.format(v=v, t=item, m=self.pick(*like))

    def truth(self, v: str) -> str:
        """An expression that asks for the truth of ``v``."""
        found = self.pick(*TRUTHS).format(v=v, w=self.operand()[0])
        return f"bool({found})" if self.iterators else found

    # Statements

    def statement(self) -> list[str]:
        if self.depth < 2 and self.one_in(5):
            return self._nested()
        kinds = ["result", "result", "result", "truths", "truths", "loop", "unpack", "augment", "store", "match"]
        kinds += ["bind", "change", "line", "generation"]
        return getattr(self, f"_{self.pick(*kinds)}")()

    def block(self) -> list[str]:
        self.depth += 1
        values = list(self.values)
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 2))):
            lines += self.statement()
        self.values = values
        self.depth -= 1
        return ["    " + line for line in lines]

    def _nested(self) -> list[str]:
        kind = self.draw(st.integers(0, 4))
        if kind == 0:
            return [
                f"if {self.pick('y == chr(107)', 'chr(101) in x', 'n', 'a')}:",
                *self.block(),
                "else:",
                *self.block(),
            ]
        if kind == 1:
            return ["for _ in range(2):", *self.block()]
        if kind == 2:
            lines = [
                "try:",
                *self.block(),
                "except (TypeError, KeyError, IndexError, ValueError, AttributeError) as error:",
            ]
            return [*lines, "    out.append(type(error).__name__)"]
        if kind == 3:
            return ["if y in ('k', 'never'):", *self.block()]
        return [f"if {self.operand()[0]}:", *self.block()]

    def _bind(self) -> list[str]:
        name = self.fresh("v")
        value, kind = self.value()
        line = f"{name} = list({value})" if kind == "iterator" and not self.one_in(4) else f"{name} = {value}"
        self.values.append((name, kind))
        return [line]

    def _result(self) -> list[str]:
        return [f"out.append({self.expression()})"]

    def _line(self) -> list[str]:
        return [self.expression()]

    def _change(self) -> list[str]:
        return [f"change('{self.pick(*CHANGED)}')"]

    def _generation(self) -> list[str]:
        name = self.fresh("g")
        return [f"s += ' {name} '", "x = s.gen('more', max_tokens=2)", "out.append(x)"]

    def _truths(self) -> list[str]:
        v = self.operand()[0]
        kind = self.draw(st.integers(0, 7))
        if kind == 0:
            return [f"while {v}:", *self.block(), "    break"]
        if kind == 1:
            count = self.fresh("i")
            lines = [f"{count} = 0", f"while {v}:", *self.block(), f"    {count} += 1"]
            return [*lines, f"    if {count} > {self.pick('0', '1', 'n')}:", "        break"]
        if kind == 2:
            return [f"if {v}:", *self.block(), f"elif {self.operand()[0]}:", *self.block()]
        if kind == 3:
            return [f"assert {v}, 'asserted'"]
        if kind == 4:
            lines = [f"match {self.pick('y', 'a', 'n', v)}:", f"    case {self.pick('_', repr('k'), '1')} if {v}:"]
            lines += ["    " + line for line in self.block()]
            return (
                [*lines, f"    case _ if {self.operand()[0]}:", "        out.append('second')"]
                if "_" not in lines[1]
                else lines
            )
        if kind == 5:
            return [f"out.append({self.truth(v)})"]
        if kind == 6:
            return [f"for q in filter(None, [{v}, {self.operand()[0]}]):", "    out.append('q')"]
        return [f"while not {v}:", "    out.append('not')", "    break"]

    def iterable(self) -> str:
        known = [name for name, kind in self.values if kind not in ("truth", "number", "environment")]
        if known and not self.one_in(4):
            return self.pick(*known)
        return (
            self.value()[0] if self.one_in(8) else self.pick("LIST", "DEQUE", "ALL", "WALK", "give('SEQ')", "ORDERED")
        )

    def _loop(self) -> list[str]:
        form = self.pick("{}", "{}", "{}", "{}", "enumerate({})", "sorted({})", "reversed({})", "zip({}, 'ab')")
        target = "(q, p)" if form[0] in "ez" else "q"
        lines = [f"for {target} in {form.format(self.iterable())}:", "    out.append(q)"]
        if self.draw(st.booleans()):
            lines += self.block()
        if self.one_in(4):
            lines += ["    if y == 'k':", "        break"]
        return lines

    def _unpack(self) -> list[str]:
        target = self.pick("p, q", "p, *q", "*p, q", "(*q,)", "p, q, r")
        return [f"{target} = {self.iterable()}", "out.append(q)"]

    def _augment(self) -> list[str]:
        lines = [] if self.values else self._bind()
        name, kind = self.pick(*self.values)
        sign, other = self.pick(*AUGMENTED.get(kind, AUGMENTED["all"] if self.one_in(6) else [("or", "y")]))
        if sign == "or":
            return self._result()
        return [*lines, f"{name} {sign} {other}", f"out.append({name})"]

    def _store(self) -> list[str]:
        v, kind = self.operand()
        if kind not in ("map", "sequence", "all") and not self.one_in(6):
            v, kind = self.pick(("LIST", "sequence"), ("ORDERED", "map"), ("ENVIRON", "environment"), ("ALL", "all"))
        keys = {"map": ("'k'", "y", "a"), "environment": ("'LMC_TEST_NEW'",)}
        key = self.pick(*keys.get(kind, ("0", "-1", "n", "1:", ":")))
        if self.one_in(4):
            return [f"del {v}[{key}]"]
        value = self.pick("['z']", "'z'", "y") if ":" in key else self.pick("'z'", "y", "a")
        sign = "=" if ":" in key else self.pick("=", "=", "+=")
        return [f"{v}[{key}] {sign} {value}"]

    def _match(self) -> list[str]:
        v = self.operand()[0]
        lines = [f"match {v}:"]
        plain = ["'k' | 'j'", "None", "Color.K", "1", "'z'"]
        taking = ["{'k': q}", "[p, *q]", "(p, q)", "dict()", "str()", "Logged(name=q)", "Pair(k=q)"]
        for _ in range(self.draw(st.integers(1, 2))):
            pattern = self.pick(*(taking if self.one_in(6) else plain))
            lines += [f"    case {pattern}:", f"        out.append({pattern!r})"]
        return lines

    def program(self) -> str:
        """The source of ``program(s, a, b, n, c)``."""
        body = ["out = []", "s += a", "x = s.gen('x', max_tokens=2, temperature=1.0)", "y = s.select('y', ['k', 'z'])"]
        body += self._bind()
        for _ in range(self.draw(st.integers(2, 5))):
            body += self.statement()
        lines = ["@jit", "def program(s, a: str, b: str, n: int, c):", *("    " + line for line in body)]
        return (
            "\n".join([*lines, "    s += ' end '", "    out.append(s.gen('last', max_tokens=2))", "    return out"])
            + "\n"
        )


@st.composite
def operator_programs(draw: Any) -> tuple[str, str]:
    """Source of ``program(s, a, b, n, c)``, to stand behind ``OPERATORS_HEADER``; the name of what ``c`` is."""
    writer = OperatorWriter(draw)
    return writer.program(), writer.given


def operator_arguments() -> st.SearchStrategy[tuple[str, str, int]]:
    """The other arguments of such a program."""
    text = st.sampled_from(["", "k", "j", "x y", "LMC_TEST_KEY"])
    return st.tuples(text, text, st.integers(0, 2))
