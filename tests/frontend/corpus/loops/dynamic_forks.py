"""Branches whose number only a run decides."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF059, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.language.messages import user
from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.host_functions import find
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@JittedFunction
def judged(s, text: str):
    s += text
    return s.gen("verdict", max_tokens=2)


@looped()
def a_branch_for_each(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += item
        f.gen("x", max_tokens=3)
    return [f["x"] for f in forks], s.text()


@looped()
def branches_by_number(s, a: str):
    s += a
    n = s.gen("n", dtype=int) % 4 + 1
    forks = s.fork(n)
    for i, f in enumerate(forks):
        f += f"branch {i}: "
        f.gen("x", max_tokens=3, temperature=1.0)
    for f in forks:
        s += f["x"]
    s.gen("end", max_tokens=2)
    return n, len(forks), s.text(), forks["x"]


@looped()
def collected_at_once(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    found = []
    for f, item in zip(forks, plan):
        f += item
        found.append(f.gen("x", max_tokens=3))
    return found, len(found), item


@looped()
def two_loops_over_the_same_branches(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += item
        f.gen("x", max_tokens=3)
    for f in forks:
        f += "again"
        f.gen("x", max_tokens=3, temperature=1.0)
        f.gen("y", max_tokens=3)
    return forks["x"], forks["y"], "\n".join(f["y"] for f in forks)


@looped()
def branches_one_way(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += item
        if f.gen("x", max_tokens=2) > "h":
            f.gen("x", max_tokens=3)
        else:
            f += "no"
        f.gen("y", max_tokens=2)
    for f in forks:
        f.gen("x", max_tokens=1, temperature=1.0)
    return forks["x"], forks["y"]


@looped()
def branches_indexed(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for i in range(len(forks)):
        forks[i] += plan[i]
        forks[i].gen("x", max_tokens=3)
    out = ""
    for i in range(len(plan)):
        out += forks[i]["x"] + f"({i})"
    return out, forks[0]["x"], forks[-1]["x"]


@looped()
def an_inner_loop_in_branches(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        for letter in f.gen("word", max_tokens=2):
            f += letter
            f.gen("x", max_tokens=1)
        f += f.get("x", "none")
    return [f.text() for f in forks]


@looped()
def zipped_strictly(s, a: str):
    s += user(a)
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for i, (f, item) in enumerate(zip(forks, plan, strict=True)):
        f += user(f"{i}. {item}")
        f.gen("x", max_tokens=3)
    lines = [a]
    for f, item in zip(forks, plan, strict=True):
        lines.append(f"{item}: {f['x']}")
    return "\n".join(lines)


@looped()
def more_branches_than_items(s, a: str):
    s += a
    plan = s.gen("plan", max_tokens=8).split()
    forks = s.fork(len(plan) + 2)
    for f, item in zip(forks, plan):
        f += item
        f.gen("x", max_tokens=3)
    for i, f in enumerate(forks):
        f += f"{i}"
        f.gen("y", max_tokens=3)
    return forks["y"], [f.text() for f in forks], [f.get("x", "none") for f in forks]


@looped()
def fewer_branches_than_items(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split(), "two"]
    forks = s.fork(len(plan) - 1)
    for item, f in zip(plan, forks):
        f += item
        f.gen("x", max_tokens=3)
    return [f["x"] for f in forks]


@looped()
def no_branches_for_some(s, a: str):
    s += a
    forks = s.fork(s.gen("n", dtype=int) % 3)
    for f in forks:
        f.gen("x", max_tokens=3)
    return forks["x"]


@looped()
def inherited_and_own_variables(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    s.select("kind", ["yes", "no"])
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += f["kind"] + item
        f.select("choice", ["red", "blue"])
        if f["choice"] == "red":
            f.gen("why", max_tokens=3)
    scores = [f["choice"] for f in forks]
    whys = [f.get("why", "-") for f in forks]
    return scores, whys, forks["plan"], ["why" in f for f in forks]


@looped()
def forks_in_branches(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        pair = f.fork(2)
        for g in pair:
            g += item
            g.gen("x", max_tokens=2, temperature=1.0)
        f += pair[0]["x"] + pair[1]["x"]
    for f in forks:
        inner = f.fork(2)
        inner[1].gen("x", max_tokens=2, temperature=1.0)
        f += inner[1]["x"]
    return [f.text() for f in forks]


@looped()
def a_generation_for_each_branch_listed(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    first = [f.gen("x", max_tokens=2) for f in forks]
    second = [f.gen("x", max_tokens=2, temperature=1.0) + item for f, item in zip(forks, plan)]
    return first, second


@looped()
def unknown_forks_in_rounds(s, a: str):
    s += a
    out = []
    for word in s.gen("words", max_tokens=4).split():
        forks = s.fork(len(word))
        for f, letter in zip(forks, word):
            f += letter
            f.gen("x", max_tokens=2, temperature=1.0)
        out.append("".join(f["x"] for f in forks))
    return out


@looped()
def forks_under_a_condition(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    best = "none"
    if len(plan) > 2:
        forks = s.fork(len(plan))
        for f, item in zip(forks, plan):
            f += item
            f.gen("x", max_tokens=2)
        best = max(forks["x"])
    s += best
    return best, s.gen("end", max_tokens=2)


@looped()
def the_best_of_the_branches(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for i, f in enumerate(forks):
        f += plan[i]
        f.gen("x", max_tokens=2)
    lengths = [len(f["x"]) for f in forks]
    best = 0
    return forks[best]["x"], forks[len(plan) - 1]["x"]


@looped()
def sub_programs_in_branches(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += judged(item)
        f.gen("x", max_tokens=2)
    return forks["x"], judged(a)


@looped()
def tools_in_branches(s, a: str):
    s += a
    plan = find(s.gen("plan", max_tokens=8))
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += find(item)[0]
        f.gen("x", max_tokens=2)
        effect("saved", f["x"])
    return forks["x"]


@looped()
def names_bound_in_rounds(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    forks = s.fork(len(plan))
    for i, (f, item) in enumerate(zip(forks, plan)):
        f += item
        answer = f.gen("x", max_tokens=2)
        short = answer[:2]
    return answer, short, item, i


@looped(stops="branches")
def one_branch_by_itself(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    forks[0] += "alone"
    return forks[0].gen("x", max_tokens=2)


@looped(stops="a round of a loop over branches changes a state or an object that othe")
def branches_and_the_state(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    for f in forks:
        s += f.gen("x", max_tokens=2)
    return s.text()


@looped(stops="'text' is taken over from one round")
def branches_and_a_text(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    text = ""
    for f in forks:
        text += f.gen("x", max_tokens=2)
    return text


@looped(stops="a round of a loop over branches leaves it early")
def branches_until_one_is_good(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    for f in forks:
        if f.gen("x", max_tokens=2) > "h":
            break
    return "done"


@looped(stops="a round of a loop over branches leaves it early")
def branches_until_one_returns(s, a: str):
    s += a
    plan = s.gen("plan", max_tokens=8)
    for f in s.fork(len(plan) + 1):
        f += "."
        if f.gen("x", max_tokens=2) > "h":
            return plan
    return "done"


@looped(stops="going over the branches of a state can't be captured yet")
def branches_unpacked(s, a: str):
    s += a
    first, *rest = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    return first.gen("x", max_tokens=2)


@looped(stops="some of the branches")
def a_slice_of_branches(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 2)
    for f in forks[1:]:
        f.gen("x", max_tokens=2)
    return [f.gen("y", max_tokens=1) for f in forks]


@looped()
def added_to_a_list_in_place(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    out = ["first"]
    pairs = []
    for i, f in enumerate(forks):
        f += str(i)
        out += [f.gen("x", max_tokens=2), f"-{i}"]
        pairs.append((i, f["x"]))
    return out, pairs


@looped(stops="'kept' is taken over")
def a_name_for_the_branch(s, a: str):
    s += a
    forks = s.fork(len(s.gen("plan", max_tokens=8)) + 1)
    kept = s
    for f in forks:
        f += kept["plan"]
        f.gen("x", max_tokens=2)
        kept = f
    return "done"


@looped()
def returns_before_branches(s, a: str):
    s += a
    plan = s.gen("plan", max_tokens=8).split()
    if not plan or a == "b":
        return "nothing"
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += item
        f.gen("x", max_tokens=2)
    if len(plan) > 2:
        for f in forks:
            s += f["x"]
    return s.gen("end", max_tokens=2), forks["x"]


@looped()
def branches_of_one_way_alone(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=8).split()]
    if len(plan) > 2:
        forks = s.fork(len(plan))
        for f in forks:
            f.gen("x", max_tokens=2)
    else:
        return "short"
    for f in forks:
        f.gen("x", max_tokens=2, temperature=1.0)
    return forks["x"]


@looped()
def a_dozen_of_drafts(s, a: str):
    s += user(a)
    n = min(max(s.gen("n", dtype=int, max_tokens=3), 1), 5)
    drafts = s.fork(n)
    for i, d in enumerate(drafts):
        d.gen("draft", max_tokens=4, temperature=1.0)
    s += user("Drafts:\n" + "\n".join(f"{i}: {d['draft']}" for i, d in enumerate(drafts)))
    return s.gen("final", max_tokens=3)


@looped()
def unknown_forks_of_unknown_forks(s, a: str):
    s += a
    plan = ["one", *s.gen("plan", max_tokens=6).split()]
    out = []
    forks = s.fork(len(plan))
    for f, item in zip(forks, plan):
        f += item
        parts = [item, *f.gen("parts", max_tokens=5).split()]
        inner = f.fork(len(parts))
        for g, part in zip(inner, parts):
            g += part
            g.gen("y", max_tokens=2, temperature=1.0)
        out.append("+".join(g["y"] for g in inner))
    return out
