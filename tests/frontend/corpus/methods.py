"""Programs that are methods: what they read and change of their object."""

# Programs as users write them.
# ruff: noqa: B006
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportPrivateUsage=false
# pyright: reportUnknownMemberType=false, reportReturnType=false, reportCallIssue=false, reportOperatorIssue=false, reportIncompatibleVariableOverride=false

import functools

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.holders import on
from tests.frontend.harness import effect

jit = JittedFunction


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
on(Counter, "loops_over_what_it_changes")
on(Counter, "stores_its_own_list", stops="might change or keep")
on(Counter, "changes_and_breaks")
on(Counter, "is_changed_by_a_tool_and_looks")
on(Counter, "reads_its_dict", stops="asks for the names of its own frame")
on(Counter, "asks_whether")
on(Counter, "remembers")
on(Counter, "spreads")


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
