"""Programs that are methods: what they read and change of their object, and what they inherit."""

# Programs as users write them.
# ruff: noqa: B006, RUF012
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportPrivateUsage=false
# pyright: reportUnknownMemberType=false, reportReturnType=false, reportCallIssue=false, reportOperatorIssue=false, reportIncompatibleVariableOverride=false

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pydantic

from lmc.frontend.function import JittedFunction
from lmc.frontend.tools import tool
from tests.frontend.corpus.cases import CASES, Case
from tests.frontend.harness import effect

jit = JittedFunction


def on(make: Callable[[], Any], method: str = "run", *args: Any, stops: str | None = None, name: str = "") -> None:
    """Put a method of an object, which is made anew for each run, into the corpus."""
    holder = make()
    kind: Any = type(holder)
    names = [entry for base in kind.__mro__ for entry in vars(base).get("__slots__", ())]

    def state() -> Any:
        own = {key: value for key, value in getattr(holder, "__dict__", {}).items() if key != "reader"}
        return {**own, **{entry: getattr(holder, entry, None) for entry in names}}

    def again() -> tuple[Any, ...]:
        fresh = make()
        if hasattr(holder, "__dict__"):
            holder.__dict__.clear()
            holder.__dict__.update(fresh.__dict__)
        for entry in names:
            object.__setattr__(holder, entry, getattr(fresh, entry))
        return args or ("w",)

    label = name or f"{kind.__name__}_{method}"
    assert label not in CASES
    CASES[label] = Case(getattr(holder, method), again, stops, watch=state)


class Reader:
    def __init__(self):
        self.tone, self.words, self.limit = "kind", ["a", "b"], 2

    def ask(self, s, question):
        s += f"{question} ({self.tone})"
        return s.gen("answer", max_tokens=self.limit)

    def _marked(self, text):
        return f"*{text}*"

    @jit
    def run(self, s, q: str):
        s += self.tone + q
        return self.ask(s, q) + self._marked(q) + "".join(self.words)

    @jit
    def calls_programs(self, s, q: str):
        first = self.run(q)
        second = self.run.on_state(s, first)
        bound = self.run
        return first, second, bound(q), Reader.run(self, q)

    @jit
    def passes_methods(self, s, q: str):
        ask = self.ask
        short = functools.partial(ask, s)
        return short(q), short(question=q + "?")

    @jit
    def maps_a_method(self, s, q: str):
        return [self._marked(word) for word in (q, "x")], list(map(self._marked, [q, "y"]))

    @jit
    def default_is_shared(self, s, q: str, seen: list[str] = []):
        s += q + str(len(seen))
        return s.gen("x", max_tokens=2)


for one in ("run", "calls_programs", "passes_methods", "maps_a_method", "default_is_shared"):
    on(Reader, one)


class Counter:
    total = 0

    def __init__(self):
        self.count, self.log, self.memory, self.seen, self.note = 1, ["x"], {"k": "v"}, set(), ""

    @jit
    def run(self, s, q: str):
        self.count += 1
        s += f"{self.count}{q}"
        x = s.gen("x", max_tokens=2)
        self.count *= 2
        return self.count, x

    @jit
    def logs(self, s, q: str):
        self.log.append(q)
        x = s.gen("x", max_tokens=2)
        self.log.append(x)
        self.log.extend([q, x])
        return len(self.log), self.log[-1], q in self.log, self.log == ["x"]

    @jit
    def remembers(self, s, q: str):
        self.memory[q] = s.gen("x", max_tokens=2)
        self.memory["k"] += "!"
        self.memory.setdefault("new", q)
        self.memory.update(a=q)
        del self.memory["a"]
        return self.memory.get("k"), self.memory[q], "w" in self.memory, len(self.memory)

    @jit
    def sees(self, s, q: str):
        self.seen.add(q)
        self.seen.add("b")
        self.seen.discard(q)
        return len(self.seen), q in self.seen

    @jit
    def binds_anew(self, s, q: str):
        before = self.note
        self.note = q
        s += self.note
        self.note = s.gen("x", max_tokens=2)
        self.fresh = self.note + "!"
        return before, self.note, self.fresh

    @jit
    def deletes(self, s, q: str):
        del self.note
        s += q
        return s.gen("x", max_tokens=2), self.note

    @jit
    def mutates_through_alias(self, s, q: str):
        log = self.log
        log.append(q)
        again = self.log
        again += ["z"]
        self.log += [q]
        return len(log), len(self.log), again == self.log

    @jit
    def loops_over_what_it_changes(self, s, q: str):
        for word in self.log:
            s += word
        self.log.append(s.gen("x", max_tokens=2))
        return f"{self.log}"

    @jit
    def stores_its_own_list(self, s, q: str):
        mine = [q]
        self.log = mine
        mine.append("later")
        return len(self.log)

    @jit
    def changes_in_an_arm(self, s, q: str):
        x = s.gen("x", max_tokens=2)
        if x > "m":
            self.count += 1
            self.log.append(x)
        else:
            self.note = x
        return self.count, len(self.log), self.note

    @jit
    def changes_in_a_loop(self, s, q: str):
        x = s.gen("x", max_tokens=2)
        while x < "z" and self.count < 4:
            self.count += 1
            self.log.append(x)
            x = s.gen("x", max_tokens=2)
        return self.count, len(self.log)

    @jit
    def changes_and_breaks(self, s, q: str):
        self.count += 1
        self.log.append(q)
        before = len(self.log)
        hash(s.gen("x", max_tokens=2))
        self.count += 1
        self.log.append("after")
        return before, self.count, self.log[0]

    @jit
    def class_attribute(self, s, q: str):
        self.total += 1
        s += f"{self.total}{type(self).total}{Counter.total}"
        return s.gen("x", max_tokens=2)

    def bump(self):
        self.count += 1
        self.log.append("bump")
        effect("bump", self.count)

    @jit
    def is_changed_by_a_tool(self, s, q: str):
        before = self.count
        self.bump()
        return before, self.count, s.gen("x", max_tokens=2)

    @jit
    def is_changed_by_a_tool_and_looks(self, s, q: str):
        before = len(self.log)
        self.bump()
        return before, len(self.log)

    @jit
    def reads_its_dict(self, s, q: str):
        self.count += 1
        return sorted(self.__dict__)[0], vars(self)["count"]

    @jit
    def asks_whether(self, s, q: str):
        had = hasattr(self, "answer"), getattr(self, "count", 0)
        self.answer = q
        return had, getattr(self, "answer", "none")

    @jit
    def swaps(self, s, q: str):
        self.note, self.count = q, 3
        self.count, other = self.count + 1, self.note
        return self.count, other

    @jit
    def spreads(self, s, q: str):
        self.memory["m"] = q
        return {**self.memory}, [*self.log]

    @jit
    def pops(self, s, q: str):
        last = self.log.pop()
        s += f"{last}{self.memory.pop('k')}"
        return s.gen("x", max_tokens=2), len(self.log)

    @jit
    def pops_too_much(self, s, q: str):
        self.log.pop()
        self.log.pop()
        return q

    @jit
    def sets_by_name(self, s, q: str):
        self.note = q
        return s.gen("x", max_tokens=2)


for one in [
    "run",
    "logs",
    "sees",
    "binds_anew",
    "mutates_through_alias",
    "changes_in_an_arm",
    "changes_in_a_loop",
    "class_attribute",
    "is_changed_by_a_tool",
    "swaps",
    "deletes",
    "pops_too_much",
    "pops",
    "sets_by_name",
]:
    on(Counter, one)
on(Counter, "loops_over_what_it_changes", stops="taken item by item")
on(Counter, "stores_its_own_list", stops="might change or keep")
on(Counter, "changes_and_breaks", stops="the hash of anything but a number")
on(Counter, "is_changed_by_a_tool_and_looks", stops="may change data that the program has read")
on(Counter, "reads_its_dict", stops="looks at the running function itself")
on(Counter, "asks_whether", stops="may run its own code")
on(Counter, "remembers", stops="iadd() may change")
on(Counter, "spreads", stops="is read after a call")


class Base:
    prefix = "base"

    def __init__(self):
        self.name = "n"

    def opening(self, s, q):
        s += f"{self.prefix} {q} "

    @jit
    def run(self, s, q: str):
        self.opening(s, q)
        return s.gen("base", max_tokens=2)

    @classmethod
    def titled(cls, text):
        return f"{cls.__name__}:{text}"


class Mixin(Base):
    @jit
    def run(self, s, q: str):
        s += "mixin "
        return super().run(s, q) + "m"


class Child(Mixin, Base):
    prefix = "child"
    __private = "p"

    def opening(self, s, q):
        super().opening(s, q)
        s += self.__private

    @jit
    def run(self, s, q: str):
        first = super().run(q)
        self.prefix_seen = super(Mixin, self).prefix
        return first, super().run.on_state(s, q), self.titled(q), self.__hidden(q)

    def __hidden(self, text):
        return text + self.__private

    @jit
    def inherits(self, s, q: str):
        return super().titled(q), [super(Child, self).titled(word) for word in ("a", q)]

    @jit
    def super_in_a_lambda(self, s, q: str):
        s += q
        return [super(Child, own).titled(q) for own in (self, self)]


on(Mixin)
for one in ("run", "inherits", "super_in_a_lambda"):
    on(Child, one)


@dataclass
class Settings:
    name: str = "d"
    parts: list[str] = field(default_factory=lambda: ["p"])

    @jit
    def run(self, s, q: str):
        s += f"{self.name}{self.parts[0]}{q}"
        self.parts.append(q)
        return s.gen("x", max_tokens=2), self

    @jit
    def run_whole(self, s, q: str):
        s += f"{self.name}{self.parts[0]}{q}"
        self.parts.append(q)
        return s.gen("x", max_tokens=2)


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str = "f"

    @jit
    def run(self, s, q: str):
        s += self.name + q
        return s.gen("x", max_tokens=2)

    @jit
    def changes(self, s, q: str):
        s += q
        self.name = q


class Slotted:
    __slots__ = ("count", "name")

    def __init__(self):
        self.name, self.count = "s", 0

    @jit
    def run(self, s, q: str):
        self.count += 1
        s += f"{self.name}{self.count}{q}"
        return s.gen("x", max_tokens=2)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ignored_types=(JittedFunction,))
    name: str = "m"
    count: int = 0

    @jit
    def run(self, s, q: str):
        s += self.name + q
        return s.gen("x", max_tokens=2)

    @jit
    def changes(self, s, q: str):
        self.count += 1
        return s.gen("x", max_tokens=2), self.count


class Pair(NamedTuple):
    name: str = "t"


class Named(Pair):
    @jit
    def run(self, s, q: str):
        s += self.name + q
        return s.gen("x", max_tokens=2)


on(Settings, stops="can't be captured: a Settings")
on(Settings, "run_whole")
on(Frozen)
on(Frozen, "changes", stops="changes a Frozen")
on(Slotted)
on(Model)
on(Model, "changes", stops="changes a Model")
on(Named)


class Strange:
    count = 0
    table: dict[str, str] = {}

    def __init__(self):
        self.helper = "shadow"
        self._kept = {"a": "b"}

    def helper(self, s, q):
        raise AssertionError

    @property
    def loud(self):
        effect("loud")
        return "LOUD"

    @functools.cached_property
    def cached(self):
        effect("cached")
        return "CACHED"

    def __getattr__(self, name):
        effect("getattr", name)
        return name

    @jit
    def shadowed(self, s, q: str):
        s += self.helper + q
        return s.gen("x", max_tokens=2)

    @jit
    def properties(self, s, q: str):
        s += self.loud + q
        return s.gen("x", max_tokens=2)

    @jit
    def cached_properties(self, s, q: str):
        s += self.cached + self.cached
        return s.gen("x", max_tokens=2)

    @jit
    def missing(self, s, q: str):
        s += self.nothing_there + q
        return s.gen("x", max_tokens=2)

    @jit
    def itself(self, s, q: str):
        keep = [self, self]
        return keep[0] is self, self == keep[1], isinstance(self, Strange), q

    def steps(self, q):
        for part in (q, self.helper):
            effect("step", part)
            yield part

    @jit
    def generates(self, s, q: str):
        for part in self.steps(q):
            s += part
        return s.gen("x", max_tokens=2)


on(Strange, "shadowed")
on(Strange, "itself")
for one in ("properties", "cached_properties", "missing"):
    on(Strange, one, stops="may run its own code")
on(Strange, "generates")


class Descriptor:
    def __get__(self, instance, owner=None):
        effect("get")
        return "got"

    def __set__(self, instance, value):
        effect("set", value)


class Described:
    field = Descriptor()

    @jit
    def run(self, s, q: str):
        self.field = q
        return s.gen("x", max_tokens=2)

    @jit
    def reads(self, s, q: str):
        return self.field + q


on(Described, stops="changes a Described")
on(Described, "reads", stops="may run its own code")


def loud(method):
    @functools.wraps(method)
    def wrapped(self, s, *args):
        effect("wrapped", self.name)
        return method(self, s, *args) + "!"

    return wrapped


class Researcher:
    def __init__(self):
        self.name, self.found, self.reader = "r", [], Reader()

    @tool(effect="reads")
    def search(self, q: str) -> str:
        effect("search", self.name, q)
        return f"<{q}>"

    @tool
    async def store(self, q: str) -> None:
        effect("store", q)
        self.found.append(q)

    @tool(effect="pure")
    @staticmethod
    def clean(q: str) -> str:
        return q.strip()

    @jit
    @loud
    def run(self, s, q: str):
        found = self.search(q)
        s += self.clean(found)
        x = s.gen("x", max_tokens=2)
        self.store(x)
        return x + self.search(x)

    @jit
    def asks_another(self, s, q: str):
        first = self.reader.run(q)
        second = self.reader.ask(s, q)
        return first, second, self.reader.limit

    @jit
    def with_tools_in_a_list(self, s, q: str):
        return [act(q) for act in (self.search, self.clean)]

    short = functools.partialmethod(asks_another)

    @jit
    def partial_programs(self, s, q: str):
        later = functools.partial(self.reader.run, q)
        return later(), functools.partial(later)(), (later,)[0]()

    @jit
    def partial_methods(self, s, q: str):
        return self.short(q)


for one in ("run", "asks_another", "with_tools_in_a_list", "partial_programs"):
    on(Researcher, one)
on(Researcher, "partial_methods", stops="may run its own code")


class Family:
    made = 0

    @jit
    @classmethod
    def build(cls, s, q: str):
        s += cls.__name__ + q
        return s.gen("x", max_tokens=2)

    @classmethod
    @jit
    def built(cls, s, q: str):
        s += cls.label(q)
        return s.gen("x", max_tokens=2)

    @staticmethod
    def label(text):
        return f"[{text}]"

    @jit
    @staticmethod
    def plain(s, q: str):
        s += q
        return s.gen("x", max_tokens=2)

    @staticmethod
    @jit
    def plainer(s, q: str):
        s += q
        return s.gen("x", max_tokens=2)

    @jit
    def uses_all(self, s, q: str):
        return self.build(q), self.built(q), self.plain(q), self.plainer(q), Family.build(q), type(self).plain(q)


class Kid(Family):
    pass


for one in ("build", "built", "plain", "plainer", "uses_all"):
    on(Kid, one)


class Remembers:
    def __init__(self):
        self.rounds, self.memory = 3, []

    def ask(self, s, about):
        s += about
        return s.gen("thought", max_tokens=3)

    @jit
    def run(self, s, goal: str):
        thoughts = []
        for number in range(self.rounds):
            thought = self.ask(s, f"{goal} {number}")
            thoughts.append(thought)
            if "e" in thought:
                break
        self.memory.append(thoughts[-1])
        return thoughts


on(Remembers)
