"""Arguments, and control flow on what follows from them."""

# Programs as users write them.
# ruff: noqa: B007, C416
# pyright: reportUnusedVariable=false

from tests.frontend.corpus.cases import case
from tests.frontend.corpus.host_functions import Item, Verdict, details
from tests.frontend.harness import effect


@case(["x", "y", "z"], 2)
def specialised_loop(s, items: list[str], n: int):
    for index, item in enumerate(items):
        if index >= n:
            break
        s += f"{index}:{item} "
        s.gen("g", max_tokens=2)
    else:
        s += "never"
    return s["g"]


@case("hello")
def specialised_if(s, a: str):
    if len(a) > 3 and a.startswith("h"):
        s += "long "
    elif a:
        s += "short "
    while len(a) < 3:
        a = a + "!"
    return s.gen("g", max_tokens=3) if a != "" else None


@case("hello", None, True)
def static_arguments(s, a: str, extra=None, flag: bool = False):
    s += a
    if extra is None and flag:
        s += " flagged"
    return s.gen("g", max_tokens=2)


@case({"q": "why?", "n": 2, "tags": ["a", "b"], "deep": {"x": "y"}}, [{"q": "1"}, {"q": "2"}], ("t", 1))
def nested_arguments(s, example: dict, shots: list, pair: tuple):
    for shot in shots:
        s += f"Q: {shot['q']}\n"
    s += example["q"] + example["deep"]["x"] + ",".join(example["tags"]) + str(example["n"])
    for key, value in example.items():
        s += f"{key} "
    text, number = pair
    s += f"{text}{number}"
    return s.gen("g", max_tokens=2)


@case(Item("Boat"), Verdict(score=3, why="so"))
def record_arguments(s, item: Item, verdict: Verdict):
    s += f"{item.title} {item.count} {verdict.why} {verdict.score}"
    if isinstance(item, Item) and item.count == 2:
        s += "!"
    return s.gen("g", max_tokens=2) + item.title


@case("x", "y", "w")
def star_arguments(s, first: str, *rest: str, **more: str):
    s += first + "".join(rest) + str(len(more))
    return s.gen("g", max_tokens=2)


@case("a")
def generated_condition(s, a: str):
    s += a
    effect("before")
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += " has e"
    else:
        s += " no e"
    effect("after", x)
    return s.gen("y", max_tokens=4)


@case("a")
def generated_while(s, a: str):
    s += a
    turns = 0
    while "z" not in s.gen("x", max_tokens=3, temperature=1.0) and turns < 4:
        turns += 1
        effect("turn", turns)
    return turns


@case("a")
def iterate_any(s, a: str):
    s += a
    found = details(a)
    for key in found:
        s += key
    return s.gen("g", max_tokens=2)


@case("q 3")
def unpacking(s, a: str):
    (x, y), *rest = (a, "b"), "c", "d"
    first, *middle, last = [x, y, *rest]
    s += first + last + "".join(middle)
    [p, q] = a.split(" ")
    s += p + q
    for i, (j, k) in enumerate([("1", a), (a, "2")]):
        s += f"{i}{j}{k}"
    d = {"a": x, **{"b": y}}
    s += d["b"] + d.get("c", "none")
    return [z + "!" for z in (x, y)], {k: v for k, v in zip("ab", [x, y], strict=True)}


@case(stops=None)
def no_arguments(s):
    s += "tell"
    return s.gen(max_tokens=3) + s.gen(max_tokens=3)
