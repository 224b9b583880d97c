"""Branches and ids of states under conditions."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


@condition()
def ids_after_arms_that_count_differently(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4, temperature=1.0)
    if "e" in x:
        s.gen("x", max_tokens=2, temperature=1.0)
        s.gen("x", max_tokens=2, temperature=1.0)
    elif "o" in x:
        s.gen("x", max_tokens=2, temperature=1.0)
    y = s.gen("x", max_tokens=6, temperature=1.0)
    if "e" in y:
        s.gen("x", max_tokens=2, temperature=1.0)
    return y, s.gen("x", max_tokens=6, temperature=1.0), s.gen(max_tokens=4, temperature=1.0)


@condition()
def ids_of_branches_after_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4, temperature=1.0)
    if "e" in x:
        other = s.copy()
        other += "in the arm"
        other.gen("c", max_tokens=3, temperature=1.0)
        s += other["c"]
    branches = s.fork(2)
    for branch in branches:
        branch += "branch"
        branch.gen("b", max_tokens=3, temperature=1.0)
    last = s.copy()
    return branches["b"], last.gen("c", max_tokens=4, temperature=1.0)


@condition()
def branches_are_changed_in_arms(s, a: str):
    s += a
    branches = s.fork(2)
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        branches[0] += "first"
        branches[0].gen("b", max_tokens=3)
    else:
        branches[1] += "second"
        branches[0].gen("b", max_tokens=2, temperature=1.0)
    branches[1].gen("b", max_tokens=3, temperature=1.0)
    s += "|".join(branches["b"])
    return s.gen("y", max_tokens=2)


@condition()
def branches_of_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "fork"
        branches = s.fork(3)
        for index, branch in enumerate(branches):
            branch += f"{index}"
            branch.gen("b", max_tokens=2)
        s += " ".join(branches["b"])
    return s.gen("y", max_tokens=2)


@condition()
def branches_of_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "one"
        branches = s.fork(2)
        branches[0].gen("b", max_tokens=2)
    else:
        branches = s.fork(2)
        branches[0].gen("b", max_tokens=3)
    branches[1] += "later"
    branches[1].gen("b", max_tokens=3, temperature=1.0)
    return branches["b"]


@condition()
def forks_of_other_sizes(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        branches = s.fork(2)
    else:
        branches = s.fork(3)
    return len(branches)


@condition()
def one_of_two_states(s, a: str):
    s += a
    other = s.copy()
    other += "other"
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        t = s
    else:
        t = other
    t += "end"
    return t.gen("y", max_tokens=2)


@condition()
def an_alias_of_the_state(s, a: str):
    t = s
    t += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        t += "through t"
    else:
        s += "through s"
    return t.gen("y", max_tokens=2), t is s


@condition()
def a_copy_that_replaces_the_state(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    draft = s.copy()
    if "e" in x:
        draft += "better"
        x = draft.gen("x", max_tokens=4)
    s += x
    return draft.gen("y", max_tokens=2), s.gen("y", max_tokens=2)


@condition()
def a_copy_in_an_arm_where_the_other_returns(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        other = s.copy()
        other += "kept"
        notes = [x, {"deep": other.gen("y", max_tokens=2)}]
        pair = (x + "!", [x])
    else:
        return "left"
    other += notes[1]["deep"] + pair[0]
    notes.append(pair)
    s += "main"
    return other.gen("z", max_tokens=3), s.gen("z", max_tokens=3), notes


@JittedFunction
def part(s, text: str):
    s += text
    s.gen("p", max_tokens=3, temperature=1.0)
    effect("part", text)
    return s["p"]


@condition()
def programs_are_called_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += part(x)
        part.on_state(s, "same state")
    s += part("after")
    part.on_state(s, "again")
    return s.gen("z", max_tokens=3, temperature=1.0)


@condition()
def several_draws_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        drawn = s.gen("d", n=2, max_tokens=2, temperature=1.0)
    else:
        drawn = ["none", x]
    s += drawn[0]
    again = s.gen("d", n=2, max_tokens=2, temperature=1.0)
    return drawn, again
