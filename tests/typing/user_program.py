"""A file as users write it. `test_typing.py` holds pyright to the comment of each marked line: a type, or an error."""

from collections.abc import Sequence
from typing import reveal_type

from pydantic import BaseModel

import lmc


class City(BaseModel):
    name: str
    population: int


@lmc.tool(effect="reads")
def search(query: str) -> list[str]:
    return [query]


@lmc.jit
def extract(s: lmc.State, page: str, limit: int = 3) -> City:
    s += lmc.user(page)
    city = s.gen("city", schema=City)
    reveal_type(city)  # type: City
    reveal_type(city.population)  # type: int
    reveal_type(s.gen("count", dtype=int))  # type: int
    reveal_type(s.gen("sure", dtype=bool))  # type: bool
    reveal_type(s.gen("word", choices=["a", "b"]))  # type: str
    reveal_type(s.gen("text", max_tokens=limit, stop="\n"))  # type: str
    reveal_type(s.gen("code", regex="[0-9]+"))  # type: str
    reveal_type(s.gen("raw", schema=City, parse=False))  # type: str
    reveal_type(s.gen("names", schema=list[str]))  # type: list[str]
    reveal_type(s.gen("several", n=3))  # type: list[Any]
    reveal_type(s.gen("counts", n=3, dtype=int))  # type: list[int]
    reveal_type(s.gen("cities", n=3, schema=City, temperature=1.0))  # type: list[City]
    reveal_type(s.text())  # type: str
    reveal_type(s.select("letter", ["A", "B"]))  # type: str
    reveal_type(search("x"))  # type: list[str]
    s.gen("text", max_token=3)  # error: No overloads for "gen"
    s.gen("text", max_tokens="3")  # error: "Literal['3']" is not assignable
    with s.user():
        s += page
    s.assistant("yes")
    for branch in s.fork(2):
        reveal_type(branch)  # type: State
    return city


@lmc.jit(target="toy", seed=3)
def answer(s, question: str):
    s += lmc.user(question)
    return s["text"] + "!"


@lmc.jit
def outer(s: lmc.State, page: str) -> str:
    reveal_type(extract(page))  # type: City
    reveal_type(extract(s, page))  # type: City
    reveal_type(extract.on_state(s, page, limit=4))  # type: City
    return page


class Agent:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    @lmc.jit
    def run(self, s: lmc.State, question: str) -> int:
        s += lmc.user(question)
        return s.gen("n", dtype=int)

    @lmc.jit(level="O1")
    def ask(self, s, question: str) -> str:
        return s.gen("answer")

    @lmc.jit
    @classmethod
    def of_class(cls, s: lmc.State, question: str) -> str:
        return s.gen("answer")

    @lmc.jit
    @staticmethod
    def static(s: lmc.State, question: str) -> str:
        return s.gen("answer")


extract(3)  # error: "Literal[3]" is not assignable to "str"
extract()  # error: No overloads for "__call__"
extract("page", limit="3")  # error: "Literal['3']" is not assignable to "int"
extract.run(3)  # error: "Literal[3]" is not assignable to "str"
extract.stream(3)  # error: "Literal[3]" is not assignable to "str"
extract.eager("page", 3, 4)  # error: Expected 2 positional arguments
extract.batch("page")  # error: is not assignable to "Iterable[Mapping[str, Any]]"
extract.on(sede=3)  # error: is not assignable to type "Never"
reveal_type(extract)  # type: Program[(page: str, limit: int = 3), City]
reveal_type(extract("page"))  # type: City
reveal_type(extract.run("page", limit=2).value)  # type: City
reveal_type(extract.on("toy", seed=3).run("page").value.name)  # type: str
reveal_type(extract.batch([{"page": "a"}]))  # type: list[Result[City]]
reveal_type(extract.batch([{"page": "a"}])[0].value.population)  # type: int
reveal_type(extract.eager("page").value)  # type: City
reveal_type(answer)  # type: Program[(question: str), Unknown]
reveal_type(Agent(["a"]).run("q"))  # type: int
reveal_type(Agent(["a"]).ask("q"))  # type: str
reveal_type(Agent(["a"]).run.batch([]))  # type: list[Result[int]]
reveal_type(Agent.of_class("q"))  # type: str
reveal_type(Agent.static("q"))  # type: str
Agent(["a"]).run(3)  # error: "Literal[3]" is not assignable to "str"


async def main() -> None:
    reveal_type((await extract.arun("page")).value)  # type: City
    reveal_type((await extract.abatch([]))[0].value)  # type: City
