"""Programs that are methods of subclasses, and of dataclasses, slotted classes, models and named tuples."""

# Programs as users write them.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportPrivateUsage=false
# pyright: reportUnknownMemberType=false, reportReturnType=false, reportCallIssue=false, reportOperatorIssue=false, reportIncompatibleVariableOverride=false

from dataclasses import dataclass, field
from typing import NamedTuple

import pydantic

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.holders import on

jit = JittedFunction


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


on(Settings)
on(Settings, "run_whole")
on(Frozen)
on(Frozen, "changes")
on(Slotted)
on(Model)
on(Model, "changes")
on(Named)


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
