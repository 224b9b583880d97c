"""Branches, joins, choices and variables of states in arms, and arms in branches."""

# Programs as users write them.
# ruff: noqa: B006, B905, C420, F841, PLE0643, PLW0120, PLW0603, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from lmc.frontend.language.messages import assistant, user
from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import record
from tests.frontend.harness import effect


@condition()
def conditions_in_each_branch(s, a: str):
    s += a
    branches = s.fork(3)
    label = "none"
    for number, branch in enumerate(branches):
        branch += f"{number}"
        x = branch.gen("x", max_tokens=3)
        if "e" in x:
            label = f"{number} has e"
            branch += "e"
        branch.gen("y", max_tokens=2)
    s += label + "|".join(branches["y"])
    return label, branches["y"], s.gen("z", max_tokens=2)


@condition()
def an_early_return_in_one_branch(s, a: str):
    s += a
    branches = s.fork(3)
    for number, branch in enumerate(branches):
        branch += f"{number}"
        x = branch.gen("x", max_tokens=3)
        record(x)
        if "e" in x:
            return number, x
        branch += "on"
        branch.gen("y", max_tokens=2)
    s += ",".join(branches["y"])
    return s.gen("z", max_tokens=2)


@condition()
def a_break_in_one_branch(s, a: str):
    s += a
    found = None
    branches = s.fork(3)
    for number, branch in enumerate(branches):
        branch += f"{number}"
        x = branch.gen("x", max_tokens=3)
        if "e" in x:
            found = number
            break
    s += f"{found}"
    return found, s.gen("z", max_tokens=2)


@condition()
def forks_in_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        views = s.fork(2)
        for view in views:
            view += "view"
            view.gen("v", max_tokens=3, temperature=1.0)
        joined = " and ".join(views["v"])
    else:
        views = s.fork(3)
        for view in views:
            view.gen("v", max_tokens=2, temperature=1.0)
        joined = ", ".join(views["v"])
    s += joined
    return joined, s.gen("y", max_tokens=2)


@condition()
def a_join_in_an_arm(s, a: str):
    s += a
    branches = s.fork(2)
    for branch in branches:
        branch.gen("b", max_tokens=3, temperature=1.0)
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "\n".join(branches["b"])
    else:
        s += branches[0]["b"]
        branches[1] += x
        branches[1].gen("b", max_tokens=2)
    return branches["b"], s.gen("y", max_tokens=2)


@condition()
def choices_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        kind = s.select("kind", ["good", "bad"])
        if kind == "good":
            s += "very good"
    else:
        kind = s.select("kind", ["fine", x], "greedy_token")
    if s["kind"] == "bad":
        return "bad", s["kind"]
    return kind, s.gen("y", max_tokens=2)


@condition()
def the_variables_of_the_state_in_arms(s, a: str):
    s += a
    s.gen("x", max_tokens=4)
    if "e" in s["x"]:
        s += f"<{s['x']}>"
        s.gen("x", max_tokens=3)
        s.gen("only", max_tokens=2)
    else:
        other = s.copy()
        other.gen("x", max_tokens=2)
        s += other["x"] + s["x"]
    if s.get("only") is not None:
        s += s["x"]
    return s["x"], s.get("only", "none"), "only" in s


@condition()
def roles_in_nested_arms(s, a: str):
    with s.user():
        s += a
        if len(a) > 3:
            s += " (long)"
    with s.assistant():
        x = s.gen("x", max_tokens=4)
    if "e" in x:
        with s.user():
            s += "why?"
        with s.assistant():
            y = s.gen("y", max_tokens=4)
            if "t" in y:
                s += " indeed"
            else:
                s += " hm"
    else:
        s += user("again")
        s += assistant("ok")
    s += user("end")
    with s.assistant():
        return s.gen("z", max_tokens=2)


@JittedFunction
def rewritten(s, text: str, style: str = "plain"):
    s += f"{style}: {text}"
    draft = s.gen("draft", max_tokens=4)
    if style == "loud":
        draft = draft.upper()
    if "e" in draft:
        s += "better"
        draft = s.gen("draft", max_tokens=4)
    return draft


@condition()
def programs_in_branches(s, a: str):
    s += a
    branches = s.fork(2)
    texts = []
    for branch, style in zip(branches, ["plain", "loud"]):
        branch += style
        text = rewritten.on_state(branch, a, style)
        if "t" in text:
            text = rewritten(text)
        texts.append(text)
    s += "|".join(texts)
    return texts, s.gen("y", max_tokens=2)


@condition()
def a_handle_is_bound_anew_in_arms(s, a: str):
    s += a
    draft = s.copy()
    x = draft.gen("x", max_tokens=4)
    if "e" in x:
        draft += "e"
    else:
        draft += "none"
        effect("none")
    t = draft
    t += "end"
    return t.gen("y", max_tokens=2), draft.text() == t.text(), s.gen("y", max_tokens=2)


@condition()
def branches_of_branches_in_arms(s, a: str):
    s += a
    outer = s.fork(2)
    x = outer[0].gen("x", max_tokens=4)
    if "e" in x:
        inner = outer[1].fork(2)
        inner[0] += x
        inner[0].gen("y", max_tokens=2)
        outer[1] += inner[0]["y"]
    outer[1].gen("z", max_tokens=3)
    return outer[1]["z"], s.gen("z", max_tokens=2)
