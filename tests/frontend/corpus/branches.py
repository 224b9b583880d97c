"""Branches, samples, choices."""

# Programs as users write them.
# ruff: noqa: PLW2901

from lmc.frontend.language.messages import user
from tests.frontend.corpus.cases import case

CHOICES = ["yes", "no"]


@case("essay", ["tone", "style", "logic"])
def forks(s, essay: str, dims: list[str]):
    s += user(f"Essay: {essay}")
    views = s.fork(len(dims))
    for view, dim in zip(views, dims, strict=True):
        view += user(f"Judge {dim}")
        view.gen("j", max_tokens=6, stop="\n")
    s += user("\n".join(view["j"] for view in views))
    s += " and ".join(views["j"])
    return s.select("verdict", ["good", "bad"]), views["j"], len(views)


@case("p")
def fork_prefix_is_kept(s, a: str):
    s += "prefix " + a
    one, two = s.fork(2)
    one += " one"
    two += " two"
    one.gen("x", max_tokens=3)
    two.gen("x", max_tokens=3)
    return one.text(), two.text(), s.text()


@case("p")
def aliased_branches(s, a: str):
    branches = s.fork(2)
    same = branches[0]
    branches[1] += "b"
    same += "a"
    branches[0] += a
    t = s
    t += "root"
    return [branch.text() for branch in branches], s.text(), same.gen("x", max_tokens=2)


@case("p")
def reassigned_in_forks(s, a: str):
    text = a
    for branch in s.fork(3):
        text = text + "!"
        branch += text
        text = branch.gen("g", max_tokens=3)
        branch += text
    s += text
    return text


@case("p")
def nested_forks(s, a: str):
    s += a
    texts = []
    for outer in s.fork(2):
        outer += "o"
        for inner in outer.fork(2):
            inner += "i"
            texts.append(inner.gen("g", max_tokens=2, temperature=1.0))
        outer.gen("h", max_tokens=2, temperature=1.0)
    again = s.fork(1)
    again[0].gen("g", max_tokens=2, temperature=1.0)
    return texts, again["g"]


@case("p")
def copies(s, a: str):
    s += a
    s.gen("x", max_tokens=2)
    other = s.copy()
    other += "other"
    other.gen("y", max_tokens=2)
    return "y" in s, "x" in other, other["x"] == s["x"], s.get("nothing", 5), other.get("y")


@case("p")
def early_return_in_one_fork(s, a: str):
    for index, branch in enumerate(s.fork(3)):
        branch += a
        if index == 1:
            return branch.gen("g", max_tokens=3)
    return None


@case("a")
def samples(s, a: str):
    s += a
    drawn = s.gen("many", n=3, max_tokens=3, temperature=1.0)
    s += drawn[0]
    s.gen("one", max_tokens=2)
    return drawn, len(drawn), " ".join(drawn)


@case("a")
def metas(s, a: str):
    s += a
    s.select("c", ["x", "y"], method="greedy_token")
    s.gen("g", max_tokens=2, logprobs=1)
    scores = s.meta("c")
    return scores["choices"], s.meta("g")["finish_reason"], f"{scores['choices'][0]}"


@case("a", ["l", "m"])
def selects(s, a: str, choices: list[str]):
    s += a
    one = s.select("one", choices)
    two = s.select("two", [a, "other"], "unconditional_likelihood_normalized")
    three = s.select("three", ("u", "v"), method="greedy_token")
    four = s.select("four", [c + "!" for c in CHOICES])
    return one, two, three, four


@case("fix the bug")
def states_kept_under_conditions(s, a: str):
    kept = [(s, "", [])]
    for word in a.split():
        found = []
        for state, best, steps in kept:
            if best <= "s":
                for branch in state.fork(2):
                    branch += word
                    found.append((branch, branch.gen("x", max_tokens=2, temperature=1.0), [*steps, word]))
        if not found:
            break
        kept = sorted(found, key=lambda one: one[1])[:2]
        kept[0][0].append("best")
    for state, _, _ in kept:
        state.gen("y", max_tokens=2)
    return [f"{state.text()} {best} {steps}" for state, best, steps in kept]


@case("fix the bug")
def a_list_of_states_with_two_names(s, a: str):
    held = [s]
    same, group = held, {"one": held}
    if s.gen("x", max_tokens=2) > "h":
        same.append(s.copy())
    elif s.gen("y", max_tokens=2) > "h":
        held += s.fork(2)
    group["one"][-1].append("last")
    held.reverse()
    for state in same:
        state.gen("z", max_tokens=1)
    return len(group["one"]), same is group["one"], [state is s for state in held], [state.text() for state in held]
