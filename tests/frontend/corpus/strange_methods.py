"""Programs that are methods of objects with code of their own: properties, descriptors, decorators."""

# Programs as users write them.
# ruff: noqa: RUF012
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportPrivateUsage=false
# pyright: reportUnknownMemberType=false, reportReturnType=false, reportCallIssue=false, reportOperatorIssue=false, reportIncompatibleVariableOverride=false

import functools

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.holders import on
from tests.frontend.corpus.methods import Reader
from tests.frontend.harness import effect

jit = JittedFunction


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
    on(Strange, one)
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


on(Described)
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
on(Researcher, "partial_methods")
