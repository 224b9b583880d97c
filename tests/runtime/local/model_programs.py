"""Random programs as people write them for a model: messages, forks and joins, generations that stop, choices."""

import random
from dataclasses import dataclass, field
from typing import Any

from lmc.ir.builder import Builder
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import SELECT_METHODS, ContextOp, ExtendOp, GenOp, ReturnOp, SelectOp
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, CTX, TEXT

TOPICS = (
    "Ada Brook lives in Oslo and works as a baker. She is 41 years old.",
    "Birds fly south in winter because they look for food. Some stay.",
    "The train leaves at seven; the ship leaves at nine. Which one is first?",
    "I like soup.",
)
ASKS = ("What is the name?", "Say yes or no.", "List three words:", "Continue:", "Is it true?", "Give the city.")
CHOICES = (("yes", "no"), ("Oslo", "Paris", "Oslo and Paris"), ("A", "B", "C", "D"), ("true", "false", "not known"))
STOPS = ((), (), (".",), ("\n", "e"), (" the",))


@dataclass
class _Author:
    rng: random.Random
    texts: list[Value]
    builder: Builder = field(init=False)
    ids: int = 0

    def __post_init__(self) -> None:
        self.builder = Builder(tuple(self.texts))

    def text(self) -> tuple[str | Value, ...]:
        """A literal, a value, or both."""
        known = self.rng.choice(self.texts)
        return self.rng.choice([(self.rng.choice(ASKS),), (known,), (self.rng.choice(ASKS), "\n", known)])

    def message(self, context: Value, role: str = "user") -> Value:
        return self.builder.emit(ExtendOp, [CTX], context=context, role=role, text=self.text())[0]

    def call(self, context: Value) -> Value:
        """A generation or a choice."""
        self.ids += 1
        if self.rng.random() < 0.35:
            extended, text, _ = self.builder.emit(
                SelectOp,
                [CTX, TEXT, ANY],
                context=context,
                choices=self.rng.choice(CHOICES),
                method=self.rng.choice(SELECT_METHODS),
                id=f"program/{self.ids}",
            )
        else:
            extended, text = self.builder.emit(
                GenOp,
                [CTX, TEXT],
                context=context,
                id=f"program/{self.ids}",
                max_tokens=self.rng.choice([1, 3, 8, 14]),
                min_tokens=self.rng.choice([0, 0, 1]),
                stop=self.rng.choice(STOPS),
            )
        self.texts.append(text)
        return extended

    def fork(self, context: Value) -> Value:
        """Two to four branches, joined in one message."""
        joined: list[str | Value] = []
        for _ in range(self.rng.randint(2, 4)):
            branch = context if self.rng.random() < 0.2 else self.message(context)
            self.call(branch)
            joined += [" - ", self.texts[-1]]
        return self.builder.emit(ExtendOp, [CTX], context=context, role="user", text=tuple(joined))[0]

    def write(self) -> Module:
        (context,) = self.builder.emit(ContextOp, [CTX])
        if self.rng.random() < 0.3:  # a raw completion
            (context,) = self.builder.emit(ExtendOp, [CTX], context=context, text=(*self.text(), " "))
            context = self.call(context)
        else:
            context = self.message(context, "system")
            for _ in range(self.rng.randint(1, 3)):
                step = self.rng.choice([self.message, self.call, self.call, self.fork])
                context = step(context)
            context = self.call(context)
        leaves = ",".join(f'{{"leaf":{index}}}' for index in range(len(self.texts)))
        self.builder.emit(ReturnOp, context=context, values=tuple(self.texts), structure=f'{{"list":[{leaves}]}}')
        return Module("program", (Function("program", self.builder.block()),))


def random_program(rng: random.Random) -> Module:
    """A program with the parameters ``x`` and ``y`` that returns every text it got."""
    return _Author(rng, [Value("x", TEXT), Value("y", TEXT)]).write()


def random_rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Inputs of a batch; some rows share a text, some are equal."""
    return [{"x": rng.choice(TOPICS), "y": rng.choice(TOPICS[:2])} for _ in range(count)]
