"""Programs whose generations are typed: values of dtypes, schemas and classes, and what is done with them."""

# Programs as users write them.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import dataclasses
import enum
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from lmc.frontend.language.messages import assistant, gen, user
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect

DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": ["ann", "bob"]},
        "count": DIGIT,
        "sure": {"type": "boolean"},
        "words": {"type": "array", "items": {"enum": ["p", "q"]}, "minItems": 1, "maxItems": 2},
        "inner": {"type": "object", "properties": {"deep": {"enum": ["d", "e"]}}, "required": ["deep"]},
    },
    "required": ["name", "count", "sure", "words", "inner"],
}


class Inner(BaseModel):
    word: Literal["a", "b"]


class Verdict(BaseModel):
    score: int = Field(ge=0, le=9)
    ratio: float = Field(ge=0, le=1, multiple_of=1)
    why: Literal["x", "yy"] = "x"
    inner: Inner
    tags: list[Literal["p", "q"]] = Field(max_length=2)
    maybe: Inner | None = None

    def loud(self) -> str:
        return self.why.upper()


@dataclasses.dataclass
class Point:
    x: Literal[1, 2, 3]
    y: bool = False


class Shape(TypedDict):
    kind: Literal["square", "round"]
    sides: Literal[1, 2]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Checked(BaseModel):
    """What making one does is seen from outside."""

    n: int = Field(ge=0, le=9)

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        effect("checked", value)
        return value + 100


class Picky(BaseModel):
    n: Literal[1, 2, 3]

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        if value < 4:
            raise ValueError("it is too small")
        return value


class Failing(BaseModel):
    n: Literal[1]

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        effect("failing", value)
        raise LookupError("not a value error")


class Printed(BaseModel):
    n: Literal[1, 2]

    def __str__(self) -> str:
        effect("printed", self.n)
        return f"<{self.n}>"


@tool(effect="reads")
def noted(value) -> str:
    return repr(value)


def plain(value):
    effect("plain", repr(value))
    return value


@case("w")
def python_types(s, a: str):
    s += a
    n = s.gen("n", dtype=int, max_tokens=300)
    x = s.gen("x", dtype=float, max_tokens=300)
    b = s.gen("b", dtype=bool)
    t = s.gen("t", dtype=str, max_tokens=3)
    s += f"|{n}|{n:05d}|{x}|{x:.1f}|{b}|{t}|{n + 1}|{x * 2}|{not b}|{n > 3}|{abs(n)}"
    return n, x, b, t, n + 1, n == 4, str(b)


@case("w")
def texts_of_every_kind(s, a: str):
    s += user(a)
    x = s.gen("x", regex="[a-c]{2}")
    y = s.gen("y", choices=["yes", "no"], jump_forward="off")
    z = s.gen("z", grammar='start: "(" start ")" | "x"', max_tokens=300)
    s += assistant("It is " + gen("w", choices=["p", "qq"], jump_forward="canonical") + "!")
    return x + y, z.upper(), s["w"], len(x)


@case("w")
def many_of_a_kind(s, a: str):
    s += a
    found = s.gen("found", n=3, dtype=int, temperature=1.0, max_tokens=300)
    objects = s.gen("objects", n=2, schema=Verdict, temperature=1.0, max_tokens=300)
    s += f"{found[0]} {found} {objects[1].score} {sum(found)}"
    return found, objects, [entry.why for entry in objects]


@case("w")
def fields_of_a_model(s, a: str):
    s += a
    v = s.gen("v", schema=Verdict, max_tokens=300)
    s += f" {v.score} {v.score + 1} {v.ratio} {v.why.upper()} {v.inner.word!r} {v.tags} {len(v.tags)} {v.maybe} {v}"
    s += v.why + v.inner.word + str(v.score) + ", ".join(v.tags)
    return v, v.score > 4, v.inner, v == v, isinstance(v, Verdict), type(v.inner) is Inner


@case("w")
def fields_of_a_dataclass(s, a: str):
    s += a
    p = s.gen("p", schema=Point, max_tokens=300)
    s += f"{p.x} {p.y} {p}"
    return p, p.x, {"point": p}


@case("w")
def items_of_an_object(s, a: str):
    s += a
    d = s.gen("d", schema=OBJECT, max_tokens=300)
    s += (
        d["name"] + f" {d['count']} {d['count'] * 2} {d['sure']} {d['words'][0]} {d['inner']['deep']} {len(d['words'])}"
    )
    s += d["inner"]["deep"]
    return d, d["name"].title(), "name" in d, d["count"] > 3, d == {}


@case("w")
def items_of_a_typed_dict(s, a: str):
    s += a
    d = s.gen("d", schema=Shape, max_tokens=300)
    s += d["kind"] + str(d["sides"])
    return d, d["sides"] + 1


@case("w")
def other_types(s, a: str):
    s += a
    colour = s.gen("colour", schema=Colour)
    n = s.gen("n", schema=Literal[1, 2] | None, max_tokens=20)
    many = s.gen("many", schema=list[Inner], max_tokens=300)
    flag = s.gen("flag", schema=bool)
    s += f"{colour} {n} {len(many)} {flag} {not flag} {many}"
    return colour, n, many, flag


@case("w")
def flexible_white_space(s, a: str):
    s += a
    v = s.gen("v", schema=Inner, whitespace="flexible", max_tokens=300)
    return v, s.text()


@case("w")
def variables_are_typed(s, a: str):
    s += a
    s.gen("n", dtype=int, max_tokens=300)
    s.gen("v", schema=Inner)
    return s["n"] + 1, s["v"].word, s.get("v")


@case("w")
def log_probabilities_stay(s, a: str):
    s += a
    n = s.gen("n", choices=["1", "22"], logprobs=1)
    return n, s.meta("n")["token_ids"], s.meta("n")["finish_reason"]


@case("w")
def a_class_with_a_validator(s, a: str):
    s += a
    v = s.gen("v", schema=Checked)
    effect("between")
    many = s.gen("many", schema=Checked, n=2, temperature=1.0)
    s += f" {v.n} {many[0].n} {many}"
    return v, many


@case("w")
def a_class_that_prints_itself(s, a: str):
    s += a
    v = s.gen("v", schema=Printed)
    s += f"{v} {v.n}"
    return str(v)


@case("w")
def a_value_that_the_class_refuses(s, a: str):
    s += a
    v = s.gen("v", schema=Picky)
    s += "never"
    return v


@case("w")
def what_nobody_reads_is_refused_too(s, a: str):
    s += a
    for branch in s.fork(2):
        branch.gen("v", schema=Picky)
    return "done"


@case("w")
def a_validator_that_fails(s, a: str):
    s += a
    effect("before")
    s.gen("v", schema=Failing)
    effect("after")


@case("w")
def values_go_to_tools(s, a: str):
    s += a
    v = s.gen("v", schema=Inner)
    n = s.gen("n", dtype=int, max_tokens=300)
    s += noted(v) + noted(n) + noted(v.word)
    return plain(n), plain(v.word)


@case("w")
def values_go_to_undeclared_functions(s, a: str):
    s += a
    v = s.gen("v", schema=Inner)
    plain(v)
    return v


@case("w")
def decisions(s, a: str):
    s += a
    v = s.gen("v", schema=Verdict, max_tokens=300)
    if v.score > 4:
        s += "high"
    else:
        s += "low"
    return s.gen("end", max_tokens=3), v


@case("w")
def methods(s, a: str):
    s += a
    v = s.gen("v", schema=Verdict, max_tokens=300)
    return v.loud()


@case("w")
def methods_of_a_dict(s, a: str):
    s += a
    d = s.gen("d", schema=OBJECT, max_tokens=300)
    return d.get("name"), [*d]


@case("w")
def changes(s, a: str):
    s += a
    d = s.gen("d", schema=OBJECT, max_tokens=300)
    d["name"] = "eve"
    v = s.gen("v", schema=Inner)
    v.word = "c"
    s += d["name"] + v.word
    return d, v


def rename_first(people):
    people[0]["name"] = "bob"
    return people[0]


@case("w")
def changed_in_a_list(s, a: str):
    s += a
    d = s.gen("d", schema=OBJECT, max_tokens=300)
    before = d["name"]
    people = [d, {"name": "ann"}]
    same = rename_first(people)
    s += d["name"]
    same["name"] = "eve"
    s += d["name"]
    return before, d, same is d, people[0]["name"]


@case("w")
def changed_in_a_growing_list(s, a: str):
    s += a
    people = []
    d: Any = {}
    while len(people) < 3:
        d = s.gen("d", schema=OBJECT, max_tokens=300)
        people.append(d)
        if len(d["name"]) % 2:
            break
    rename_first(people)
    s += people[0]["name"] + d["name"]
    for each in people:
        each["name"] += "!"
    s += d["name"]
    return people, d


@case("w")
def retries(s, a: str):
    s += a
    for _ in range(2):
        try:
            v = s.gen("v", schema=Picky)
        except Exception as error:
            effect("caught", type(error).__name__)
        else:
            return v
    return None


@case("w")
def a_class_after_a_break(s, a: str):
    s += a
    v = s.gen("v", schema=Checked)
    plain(s.gen("i", schema=Inner))
    w = s.gen("w", schema=Checked)
    s += f"{v.n} {w.n}"
    return v, w


OTHER = type("Inner", (BaseModel,), {"__annotations__": {"word": Literal["c"]}, "__module__": __name__})


@case("w")
def classes_of_one_name(s, a: str):
    s += a
    x = s.gen("x", schema=Inner)
    y = s.gen("y", schema={"title": "Inner", "enum": ["z", "w"]})
    z = s.gen("z", schema=OTHER)
    s += f"{x.word} {y} {z.word}"
    return x, y, z, isinstance(x, Inner), isinstance(z, Inner)


@case("w")
def appended_json_texts(s, a: str):
    s += a
    t = s.gen("t", schema={"enum": ["one", "two"]})
    s += t
    s += user("x") if a == "" else t + "!"
    return t


@case("w", stops="this raises CaptureError: the program appends a value, text is needed")
def appended_json_that_is_no_text(s, a: str):
    s += a
    s += s.gen("t", schema=DIGIT)


@case("w")
def two_schemas_without_a_title(s, a: str):
    s += a
    x = s.gen("x", schema={"type": "object", "properties": {"k": {"type": "string", "enum": ["t"]}}, "required": ["k"]})
    y = s.gen("y", schema={"type": "object", "properties": {"k": DIGIT}, "required": ["k"]})
    z = s.gen("z", schema={"type": "object", "properties": {"k": DIGIT}, "required": ["k"]})
    s += x["k"] + f"{y['k']} {z['k']}"
    return x["k"] + "!", y["k"] + 1, z["k"]
