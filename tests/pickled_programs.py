"""Programs that other processes find by name."""

from dataclasses import dataclass

import lmc


@lmc.jit
def greet(s: lmc.State, name: str) -> str:
    """Greets."""
    s += f"Hello {name}"
    return s.gen("word", max_tokens=6, temperature=1.0)


@lmc.jit(target="toy", seed=7)
def seeded(s: lmc.State, name: str) -> str:
    s += f"Dear {name}"
    return s.gen("word", max_tokens=6, temperature=1.0)


def plain(s: lmc.State, name: str) -> str:
    s += f"Hi {name}"
    return s.gen("word", max_tokens=6, temperature=1.0)


TOY = greet.on("toy", seed=3)
OF_PLAIN = lmc.jit(plain).on("toy")


@dataclass
class Agent:
    role: str

    @lmc.jit(target="toy")
    def act(self, s: lmc.State, name: str) -> str:
        s += f"{self.role}: {name}"
        return s.gen("word", max_tokens=6, temperature=1.0)

    @lmc.jit(target="toy")
    @classmethod
    def of_class(cls, s: lmc.State, name: str) -> str:
        s += f"{cls.__name__}: {name}"
        return s.gen("word", max_tokens=6, temperature=1.0)

    @lmc.jit(target="toy")
    @staticmethod
    def static(s: lmc.State, name: str) -> str:
        s += f"static: {name}"
        return s.gen("word", max_tokens=6, temperature=1.0)

    def talk(self, s: lmc.State, name: str) -> str:
        s += f"{self.role} to {name}"
        return s.gen("word", max_tokens=6, temperature=1.0)


def local_program() -> lmc.Program[..., str]:
    """A program that no name leads to."""

    @lmc.jit(target="toy")
    def inner(s: lmc.State, name: str) -> str:
        s += name
        return s.gen("word", max_tokens=6)

    return inner
