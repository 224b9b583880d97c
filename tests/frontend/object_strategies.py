"""Random programs over objects of their own and from outside: aliases, changes, branches, loops, exceptions, helpers.

Special methods of the classes log effects. ``reset`` puts the objects of the module back, ``exchange`` puts equal ones
in the place of some, ``left`` tells what a run left behind in them.
"""

from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.strategies import Topic, Writer, programs_of

OBJECTS_HEADER = """
import enum
import functools
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel, Field

from lmc.frontend.program.function import JittedFunction as jit
from lmc.frontend.tools.tools import tool
from tests.frontend.harness import effect


class Box:
    kind = "box"
    made = 0

    def __init__(self, name, size=0):
        self.name = name
        self.size = size
        self.items = []

    def put(self, text, *more, loud=False):
        if len(self.items) < 5:
            self.items.append(text.upper() if loud else text)
        return self

    def label(self):
        return f"{self.kind}:{self.name}:{len(self.items)}"

    @property
    def first(self):
        effect("first", self.name)
        return self.items[0] if self.items else "none"

    @first.setter
    def first(self, text):
        effect("set first", text)
        self.items[:1] = [text]

    @functools.cached_property
    def slow(self):
        effect("slow")
        return self.name + "~"

    @classmethod
    def of(cls, text):
        return cls(text, len(text))

    @staticmethod
    def twice(text):
        return text[:2] * 2

    def __len__(self):
        effect("len", self.name)
        return len(self.items)

    def __eq__(self, other):
        effect("eq", self.name)
        if not isinstance(other, Box):
            return NotImplemented
        return self.name == other.name

    def __lt__(self, other):
        effect("lt", self.name)
        return self.size < other.size if isinstance(other, Box) else NotImplemented

    def __contains__(self, text):
        effect("contains", text)
        return text in self.items

    def __iter__(self):
        effect("iter", self.name)
        for item in list(self.items):
            yield item

    def __getitem__(self, key):
        effect("getitem", repr(key))
        return self.items[key]

    def __str__(self):
        effect("str")
        return "<" + self.name + ">"

    def __add__(self, other):
        effect("add")
        return Box(self.name + other.name) if isinstance(other, Box) else NotImplemented

    def __iadd__(self, text):
        if not isinstance(text, str):
            return NotImplemented
        effect("iadd", text)
        return self.put(text)

    @jit
    def asked(self, s, text):
        s += text
        self.size += 1
        return s.gen("asked", max_tokens=2, temperature=1.0) + self.name

    @tool(effect="pure")
    @staticmethod
    def halved(text: str) -> str:
        return text[: len(text) // 2]

    def __call__(self, text):
        effect("call", text)
        return self.put(text).label()

    def __enter__(self):
        effect("enter", self.name)
        return self

    def __exit__(self, kind, error, trace):
        effect("exit", kind is None)
        self.size += 1
        return kind is KeyError


class Wide(Box):
    kind = "wide"

    def __init__(self, name, size=3, more="m"):
        super().__init__(name + more, size)
        self.more = more

    def label(self):
        return "w " + super().label()

    def __radd__(self, other):
        effect("radd")
        return other

    def __bool__(self):
        effect("bool")
        return self.size > 3

    def __format__(self, spec):
        effect("format", spec)
        return f"{self.name}/{spec}"


@dataclass
class Note:
    text: str
    tags: list = field(default_factory=list)
    count: int = 0
    box: Box | None = None

    def tag(self, text):
        if len(self.tags) < 4:
            self.tags.append(text)
        self.count += 1
        return self


@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int = 1

    def moved(self, by):
        return Point(self.x + by, self.y)


@dataclass(slots=True)
class Slot:
    text: str
    size: int = 2

    def __post_init__(self):
        effect("made", self.size)
        self.size += 1


class Pair(NamedTuple):
    left: str
    right: str = "r"

    def joined(self):
        return self.left + self.right


class Fact(BaseModel):
    word: str = Field(max_length=2)
    lines: list[str] = Field(min_length=1, max_length=2)


class Level(enum.Enum):
    LOW = "yes"
    HIGH = "no"

    def shout(self):
        return self.name + self.value


BOX = Box("outer", 2)
WIDE = Wide("wider")
NOTE = Note("noted", ["t"])
LINES = ["l"]
WAYS = {"k": "v"}
PRICES = {"e": 1.5, "k": 2.0, "": -0.0}
NAMES = ["e", "yes"]
MAKERS = {"yes": str.upper, "no": str.strip}
ROWS = [["r"], ["q"]]
COUNT = 0
LAST = []
KEPT = [BOX.items, WIDE.items, NOTE.tags, *ROWS]  # guards hold lists that the program changes by identity


def reset():
    global COUNT
    COUNT = 0
    for kept, items in zip(KEPT, ([], [], ["t"], ["r"], ["q"])):
        kept[:] = items
    vars(BOX).clear()
    vars(BOX).update(name="outer", size=2, items=KEPT[0])
    vars(WIDE).clear()
    vars(WIDE).update(name="wider", size=3, items=KEPT[1], more="m")
    vars(NOTE).update(text="noted", tags=KEPT[2], count=0, box=None)
    LAST.clear()
    LINES[:] = ["l"]
    WAYS.clear()
    WAYS["k"] = "v"
    ROWS[:] = KEPT[3:]


def exchange():
    BOX.items, WIDE.items, NOTE.tags = list(BOX.items), list(WIDE.items), list(NOTE.tags)
    ROWS[:] = [list(row) for row in ROWS]


def left():
    return [vars(BOX), vars(WIDE), repr(vars(NOTE)), LINES, WAYS, ROWS, COUNT, *[repr(vars(note)) for note in LAST]]


@tool(effect="reads")
def halves(word: str) -> list[str]:
    effect("lookup", word)
    return [word[:2], word[2:4]]


@tool
def noted(word: str) -> str:
    effect("noted", word)
    return word[:3]


@tool
def fetched(word: str):
    effect("fetched", word)
    return Wide(word[:2]) if "e" in word else Box(word[:3], len(word)).put(word)


@tool
def grown(items: list) -> int:
    effect("grown", len(items))
    if len(items) < 5:
        items.append("g")
    return len(items)


@tool
def emptied(items: list) -> str:
    effect("emptied")
    return items.pop() if items else "none"


@tool
def spoiled(fact):
    effect("spoiled", fact.word)
    fact.word = fact.word[:1] + "s"
    fact.lines = [*fact.lines[-1:], "s"]
    return fact.lines


@tool
def mark(note):
    effect("mark", note.text)
    note.count += 1
    note.tags[:] = ["m", *note.tags[:2]]
    return note.count


@tool
def keep(note):
    effect("kept", note.text)
    LAST.append(note)
    LAST[0].count += 1
    return len(LAST)


@tool(effect="reads")
def shown(note) -> str:
    return note.text + "".join(note.tags) + str(note.count)


def bump(by=1):
    global COUNT
    COUNT += by
    return COUNT


def rename(thing, text):
    thing.name = (thing.name + text)[:8]
    return thing


def put_in(items, text):
    if len(items) < 5:
        items.append(text)
    return len(items)


def fill_box(s, box):
    if "e" in s.gen("p", max_tokens=2, temperature=1.0):
        box.put("filled")
    return box


def check(box, text):
    if not text:
        raise ValueError(box.label())
    if len(text) > 6:
        raise KeyError(text)
    return text


def two_of(text, more=()):
    note = Note(text)
    return [note, *more, note]


def numbered(text):
    note = Note(text)
    return [(note, 1), (note, 2)]


def named(text):
    note = Note(text)
    return {"p": note, "q": note, "r": Note(text, count=1)}


def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        effect("calls", function.__name__)
        return function(*args, **kwargs)

    return inner


@logged
def shout(text, end="!"):
    return text + end

"""


class Objects(Topic):
    """Objects of classes of the program's own module, made by it, given by a tool or there before."""

    SHOWN: ClassVar = {
        **Topic.SHOWN,
        **dict.fromkeys(("points", "couples"), "{}"),
        **dict.fromkeys(("boxes", "things"), "({0}.name, {0}.size, list({0}.items))"),
        "lists": "list({})",
        "notes": "({0}.text, list({0}.tags), {0}.count)",
        "slots": "{}.size",
        "notelists": "[(n.text, list(n.tags), n.count, n is {0}[0]) for n in {0}]",
        "notepairs": "[(n.text, list(n.tags), n is {0}[0][0]) for n, _ in {0}]",
        "notedicts": "[(k, n.text, list(n.tags)) for k, n in {0}.items()]",
        "facts": "({0}.word, list({0}.lines))",
    }

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.outside = self.one_in(3)
        if self.outside:
            self.names["boxes"] = ["BOX", "WIDE"]
            self.names["notes"] = ["NOTE"]
            self.lists.extend(("LINES", "ROWS[0]"))
        self.things = self.one_in(3)
        self.facts = self.one_in(3)
        self.lists_of_notes = not self.facts and self.one_in(3)
        self.notes_alone = self.lists_of_notes and not self.outside and self.one_in(2)
        self.spoils = self.one_in(2)  # a function that gets the whole answer lets the graph read all in order

    def a(self, kind: str) -> str:
        """A name of that kind, or what makes one."""
        names = self.names[kind]
        if names and not self.one_in(6):
            return self.pick(*names[:2], *names)
        return self.made(kind)

    def made(self, kind: str) -> str:
        text = self.pick(*self.texts)
        return {
            "boxes": self.pick(f"Box({text})", f"Wide({text})", f"Wide({text}, more='x')", f"Box.of({text})"),
            "notes": self.pick(f"Note({text})", f"Note({text}, ['g'])", f"Note(text={text}, count=2)"),
            "points": self.pick("Point(1)", "Point(n, 2)", "Point(x=2, y=n)"),
            "couples": self.pick(f"Pair({text})", f"Pair({text}, right='q')"),
            "slots": self.pick(f"Slot({text})", f"Slot({text}, 5)"),
            "lists": self.pick("[]", f"[{text}]", f"halves({text})"),
            "boxlists": self.pick("[]", f"[Box({text}), Wide('k')]"),
            "notelists": self.pick(
                *["[]", f"[Note({text})]", f"[Note(word) for word in words if word != {text}][:3]"] * 2,
                f"[Note({text})] * 2",
                f"two_of({text})",
                f"two_of({text}, [Note({text})])",
            ),
            "notepairs": self.pick("[]", f"[(Note({text}), 1)] * 2", f"numbered({text})", f"[(Note({text}), n)]"),
            "notedicts": self.pick("{}", f"dict.fromkeys('xy', Note({text}))", f"named({text})"),
            "things": f"fetched({text})",
            "facts": "s.gen('f', schema=Fact, temperature=1.0)",
            "calls": self.pick("shout", "(lambda text: text + '?')", "Box.twice", "functools.partial(shout, end='.')"),
        }[kind]

    # Expressions

    def text(self) -> str:
        name = self.pick(*self.texts[-3:], *self.texts)
        options = [name, name, f"({name} + 'e')[:5]", "'k'"]
        options += [
            f"{self.a('boxes')}.label()",
            f"{self.a('boxes')}.name",
            f"{self.a('boxes')}.first",
            f"{self.a('boxes')}.slow",
            f"{self.a('boxes')}({name})",
            f"{self.a('boxes')}.twice({name})",
            f"str({self.a('boxes')})",
            f'f"{{{self.a("boxes")}}}"',
            f'f"{{{self.a("boxes")}:x}}"' if self.one_in(3) else name,
            f"' '.join({self.a('boxes')})",
            f"{self.a('notes')}.text",
            f"'-'.join({self.a('notes')}.tags)",
            f"repr({self.a('points')})",
            f"{self.a('couples')}.joined()",
            f"{self.a('couples')}[1]",
            f"{self.a('slots')}.text",
            f"type({self.a('boxes')}).__name__",
            f"getattr({self.a('boxes')}, 'more', 'no more')",
            "Level('yes').shout()",
            "Level(s.select('lv', ['yes', 'no'])).shout()",
            f"{self.pick('shout', self.a('calls'))}({name})" if self.names["calls"] else f"shout({name})",
            f"{self.a('boxes')}.asked({name})",
            f"{self.a('boxes')}.asked.on_state(s, {name})",
            f"{self.a('boxes')}.halved({name})",
            f"WAYS.get({name}, 'none')",
            f"WAYS[{name}]" if self.one_in(3) else f"str(PRICES.get({name}, 2.5))",
            f"str(PRICES[{name}])" if self.one_in(3) else f"NAMES[{self.number()} % 2]",
            f"MAKERS[s.select('lv', ['yes', 'no'])]({name})",
            f"MAKERS.get({name}, str.lower)({name})",
            f"{{'yes': {self.a('boxes')}, 'no': {self.a('boxes')}}}[s.select('lv', ['yes', 'no'])].label()",
            "'-'.join(key + value for key, value in sorted(WAYS.items()))",
            f"check({self.a('boxes')}, {name})" if self.one_in(3) else name,
        ]
        if self.names["things"]:
            thing = self.a("things")
            options += [f"str({thing})", f'f"{{{thing}}}"', f"' '.join({thing})", f"{thing}.name", f"{thing}.label()"]
        if self.names["facts"]:
            fact = self.a("facts")
            options = [name, f"{fact}.word", f"'-'.join({fact}.lines)", f"str(len({fact}.lines))", f"str({fact}.lines)"]
        if self.notes_alone:
            options = [name, f"({name} + 'e')[:5]", "'k'", *[f"str(len({x}))" for x in self.names["notelists"]]]
        return self.pick(*options)

    def number(self) -> str:
        return self.pick(
            *self.numbers,
            "1",
            f"len({self.a('boxes')})",
            f"{self.a('boxes')}.size",
            f"{self.a('notes')}.count",
            f"{self.a('points')}.moved(1).x",
            f"{self.a('slots')}.size",
            "COUNT",
            "bump()",
            f"len({self.a('lists')})",
        )

    def condition(self) -> str:
        if self.notes_alone or not self.one_in(3):
            return self.asked()
        kinds = ["boxes", "things"] if self.names["things"] else ["boxes"]
        one, other = self.a(self.pick(*kinds)), self.a(self.pick(*kinds))
        return self.pick(
            one,
            f"not {one}",
            f"{one} == {other}",
            f"{one} != {other}",
            f"{one} is {other}",
            f"{one} < {other}",
            f"{one} > {other}",
            f"{one} == {self.text()}",
            f"{self.text()} in {one}",
            f"isinstance({one}, Wide)",
            f"hasattr({one}, 'more')",
            f"{self.a('points')} < {self.a('points')}",
            f"{self.a('points')} == {self.a('points')}",
            f"{self.a('notes')} == {self.a('notes')}",
            f"{self.a('notes')}.box is None",
            f"{self.number()} > 1",
        )

    # Statements

    def beginning(self) -> list[str]:
        return []

    def prelude(self) -> list[str]:
        kinds = ("notelists", "notepairs", "notedicts") if self.notes_alone else ()
        return [line for kind in kinds for line in self.bind(kind, "m", self.made(kind))]

    def ending(self) -> list[str]:
        return []

    def statement(self) -> list[str]:
        kinds = [*["make"] * 3, *["change"] * 5, "alias", "alias", "text", "text", "number", "gen", "rebind", "hold"]
        around = ["if", "if", "for", "try"] * (self.depth < 3)
        kinds += [*around, *["with", "inner"] * (self.depth < 3), *["module"] * 2 * self.outside]
        kinds += [*["thing"] * 20 * self.things, *["note_list"] * 20 * self.lists_of_notes]
        if self.notes_alone:
            kinds = [*["note_list"] * 8, "text", "gen", *around]
        if self.facts:
            kinds = [*["fact"] * 8, "text", "text", "gen", *around]
        return self.maker(*kinds, *["end"] * bool(self.loops))

    def write(self, text: str) -> str:
        """In a function ``+=`` would bind a name of its own."""
        return f"s.append({text})" if self.functions else f"s += {text}"

    def _make(self) -> list[str]:
        kind = self.pick("boxes", "boxes", "notes", "points", "couples", "slots", "lists", "boxlists", "calls")
        return self.bind(kind, kind[0], self.made(kind))

    def _alias(self) -> list[str]:
        kind = self.pick("boxes", "notes", "lists", "boxlists", "slots")
        return self.bind(kind, kind[0], self.a(kind))

    def _rebind(self) -> list[str]:
        kind = self.pick("boxes", "notes", "points", "lists")
        own = self.own(kind)
        return [f"{self.pick(*own)} = {self.a(kind)}"] if own else self._make()

    def _text(self) -> list[str]:
        line = self.bind("texts", "t", self.text())
        name = self.texts[-1]
        return [*line, *self.pick([], [self.write(name)], [f"effect({name})"])]

    def _number(self) -> list[str]:
        return self.bind("numbers", "i", self.number())

    def _gen(self) -> list[str]:
        return self.bind("texts", "t", "s.gen('x', max_tokens=3, temperature=1.0)")

    def _hold(self) -> list[str]:
        box, note = self.a("boxes"), self.a("notes")
        return [
            self.pick(
                f"{note}.box = {box}",
                f"put_in({self.a('boxlists')}, {box})",
                f"if {note}.box is not None: {note}.box.name += 'h'",
                f"if {note}.box is not None: {note}.box.put({self.text()})",
            )
        ]

    def _change(self) -> list[str]:
        box, note, text = self.a("boxes"), self.a("notes"), self.text()
        return [
            self.pick(
                f"{box}.name = ({text})[:6]",
                f"{box}.size += {self.number()}",
                f"{box}.size = {self.number()}",
                f"{box}.put({text}, loud={self.pick('True', 'False')}).put('z')",
                f"{box}.first = {text}",
                f"{box}.items = {self.a('lists')}",
                f"put_in({box}.items, {text})",
                f"rename({box}, {text})",
                f"fill_box(s, {box})",
                f"setattr({box}, 'name', ({text})[:4])",
                f"{note}.tag({text})",
                f"{note}.tags = {self.a('lists')}",
                f"{note}.count += 1",
                f"{self.a('slots')}.size += 1",
                f"put_in({self.a('lists')}, {text})",
                f"{box} + {self.a('boxes')}",
            )
        ]

    def _module(self) -> list[str]:
        text = self.text()
        return [
            self.pick(
                "bump()",
                f"bump({self.number()})",
                f"WAYS[{text}] = {self.text()}",
                f"put_in(LINES, {text})",
                f"put_in(ROWS[0], {text})",
                f"ROWS[1] = [{text}]",
                f"BOX.name = ({text})[:5]",
                "BOX.size += 1",
                f"NOTE.box = {self.a('boxes')}",
                "NOTE.count += 1",
                f"noted({text})",
                f"NOTE.tags = {self.a('lists')}",
            )
        ]

    def _thing(self) -> list[str]:
        """An object that a tool gives, or what is done with one: the capture knows nothing of its class."""
        if not self.names["things"] or self.one_in(4):
            return self.bind("things", "o", self.made("things"))
        one, other, text = self.a("things"), self.a("things"), self.text()
        return [
            self.pick(
                f"len({one})",
                f"str({one})",
                f"{one} == s.gen('q', max_tokens=2, temperature=1.0)",
                f"s.gen('q', max_tokens=2, temperature=1.0) in {one}",
                f"{one} == {other}",
                f"{one} == {text}",
                f"{one} < {other}",
                f"{text} in {one}",
                f"{text} in [{one}, {other}]",
                f"bool({one})",
                f"list({one})",
                f"sorted([{one}, {other}])",
                f"max({one}, {other})",
                f"{one} + {other}",
                f"{one}[:1]",
                f"isinstance({one}, Wide)",
                f"{one}.put({text})",
                f"{one}.size += 1",
                f"{self.fresh('t')} = [f'{{x}}' for x in {one}]",
                f"{self.fresh('t')} = {{{one}.name: {one}}}",
                f"*{self.fresh('t')}, = {one}",
            )
        ]

    def _note_list(self) -> list[str]:
        """A list of objects of the program's whose length only a run knows, or what is done with one."""
        if not self.names["notelists"] or self.one_in(6):
            return self.bind("notelists", "m", self.made("notelists"))
        if self.one_in(2):
            return self._notes_held_twice()
        items, text, each = self.pick(*self.names["notelists"]), self.text(), self.fresh("n")
        own = items if items in self.own("notelists") else f"{items}[:]"
        note = self.pick(self.made("notes"), self.a("notes"))
        if self.one_in(5):
            self.names["notes"].append(each)
            use = self.pick(f"{each}.tag({text})", f"{each}.count += 1", f"mark({each})", f"{each}.text += 'l'")
            put = [f"{each} = {note}", *self.pick([], [f"l{each} = {each}.tags"]), f"{items}.append({each})", use]
            if not self.one_in(3):
                return put
            return [put[0], f"if {self.condition()}:", *("    " + line for line in put[1:]), use]
        put = [f"{each} = {note}", f"{each}.tag({text})", f"{items}.append({each})"]
        if self.one_in(3):
            return [f"for {each} in {items}[:3]:", *self.arm(loop=True, notes=each)]
        return self.pick(
            [f"{items}.append({note})"],
            [f"if {self.condition()}: {items}.append({note})"],
            [f"if {self.condition()}:", *("    " + line for line in put)],
            [f"for {each} in {items}[:3]: {each}.tag({text})"],
            [f"if {items}: {items}[-1].count += 1"],
            [f"if {items}: {items}[0].tag({text})"],
            [f"if {items}: {self.pick('mark', 'keep', 'shown' if self.functions else 's += shown')}({items}[-1])"],
            [f"{self.pick('mark', 'keep', 'shown' if self.functions else 's += shown')}({note})"],
            [f"for {self.fresh('i')}, {each} in enumerate({items}[:3]): {each}.tag({text})"],
            [f"for {each}, {self.fresh('w')} in zip({items}, words): {each}.count += 1"],
            [f"if {items}: s.append({items}[-1].text)"],
            [f"if {items}: {items}.pop()"],
            [f"if {items}: {items}[len(s.gen('i', max_tokens=2, temperature=1.0)) % len({items})].tag({text})"],
            [f"if {items}: max({items}, key=lambda each: len(s.gen('r', max_tokens=2, temperature=1.0))).tag('r')"],
            [f"if {items} and {items}[0] is {items}[-1]: s.append('same')"],
            [f"if {note} in {items}: s.append('in')"],
            [f"{own} = [each for each in {items} if each.count > 0 or {self.condition()}]"],
            [f"{own} = {self.a('notelists')}"],
            [f"{own} = sorted({items}, key=lambda each: each.count)[:4]"],
            [f"s.append(' '.join(each.text for each in {items}))"],
        )

    def _notes_held_twice(self) -> list[str]:
        """One object of the program's in two places, or in a tuple, list or dict in one place."""
        for kind in ("notepairs", "notedicts"):
            if not self.names[kind] or self.one_in(6):
                return self.bind(kind, "m", self.made(kind))
        items, pairs, table = (self.pick(*self.names[kind]) for kind in ("notelists", "notepairs", "notedicts"))
        other, text, each, note = self.pick(*self.names["notedicts"]), self.text(), self.fresh("n"), self.made("notes")
        return self.pick(
            [f"if len({items}) < 5: {items} += [{note}] * 2"],
            [f"if len({items}) < 5: {items}.extend(two_of({text}))"],
            [f"{each} = {note}", f"{items} += [{each}, {each}]"],
            [f"{items}.append({table}.setdefault({text}, {note}))"],
            [f"{items}[:1] = {items}[1:2] = [{note}]"],
            [f"if {items}: {items}[0] = {items}[-1] = {note}"],
            [f"if {self.condition()}: {pairs}.append(({note}, 3))"],
            [f"for {each} in words: {pairs}.append(({note}, 4))"],
            [f"if len({pairs}) < 5: {pairs} += [({note}, 5)] * 2"],
            [f"if {pairs}: {pairs}[0][0].tag({text})"],
            [f"if {pairs}: {pairs}[len(s.gen('i', max_tokens=2)) % len({pairs})][0].tag({text})"],
            [f"for {each}, _ in {pairs}[:3]: {each}.tag({text})"],
            [f"{table}[{text}] = {note}"],
            [f"{table}[{text}] = {other}[{self.text()}] = {note}"],
            [f"{table}['p'] = {other}['p'] = {note}", f"{table}['p'].tag({text})"],
            [f"for {each} in words: {table}[{each}] = {other}[{text}] = {note}"],
            [f"if {self.condition()}: {table}[{text}] = {note}"],
            [f"for {each} in {table}.values(): {each}.tag({text})"],
            [f"if 'x' in {table}: {table}['x'].tag({text})"],
        )

    def _fact(self) -> list[str]:
        """An answer that is an object, or what is done with one: functions change it, or a list in it."""
        if not self.names["facts"] or self.one_in(4):
            return self.bind("facts", "f", self.made("facts"))
        fact, other, name = self.pick(*self.names["facts"]), self.a("facts"), self.fresh("k")
        if self.one_in(4):
            self.lists.append(name)
            return [f"{name} = {fact}.lines"]
        read = self.pick(f"len({fact}.lines)", f"{fact}.lines", f"{fact}.word", f"{other}.lines[-1:]")
        change = self.pick(
            f"grown({fact}.lines)",
            f"emptied({fact}.lines)",
            f"grown({fact}.lines if {self.condition()} else {other}.lines)",
            f"emptied({self.a('lists')})",
            f"spoiled({fact})" if self.spoils else f"emptied({other}.lines)",
            f"for {name} in {fact}.lines: s.append({name})",
            f"if {other}.word in {fact}.lines: emptied({fact}.lines)",
        )
        return [self.write(f"str({read})"), change, self.write(f"str({read})")]

    def items(self) -> str:
        things = [self.a("things"), f"enumerate({self.a('things')})"] if self.names["things"] else []
        objects = [] if self.notes_alone else [self.a("boxes"), self.a("lists") + "[:3]"]
        return self.pick(*things, "words", "['u', 'v']", *objects, "s.gen('ws', max_tokens=4).split('e')[:5]")

    def _for(self) -> list[str]:
        kind = self.pick("texts", "texts", "numbers", *["boxes"] * (not self.notes_alone))
        if kind == "texts":
            return super()._for()
        name = self.fresh("w")
        items = self.pick("range(2)", "range(len(words))") if kind == "numbers" else self.a("boxlists") + "[:3]"
        body = self.arm(loop=True, numbers=name) if kind == "numbers" else self.arm(loop=True, boxes=name)
        return [f"for {name} in {items}:", *body]

    def _with(self) -> list[str]:
        name = self.fresh("b")
        return [f"with {self.a('boxes')} as {name}:", *self.arm(boxes=name)]

    def _inner(self) -> list[str]:
        lines = super()._inner()
        return lines if self.one_in(2) else [*lines, *self.bind("calls", "c", lines[0][4 : lines[0].index("(")])]


def object_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)``."""
    return programs_of(Objects, budget=(4, 12))
