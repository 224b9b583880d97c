"""Conditions in each other and one after the other, returns, loops, functions: where control may go."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from tests.frontend.corpus.conditions.cases import condition


@condition()
def one_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        s += " with e"
    return s.gen("y", max_tokens=6)


@condition()
def two_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        y = s.gen("y", max_tokens=3)
    else:
        s += " none "
        y = "no e"
    s += y
    return x, y, s.gen("z", max_tokens=4)


@condition()
def nested(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    kind = "?"
    if "e" in x:
        if "t" in x:
            kind = "et"
            s.gen("both", max_tokens=2)
        else:
            kind = "e"
        s += kind
    else:
        if "o" in x:
            kind = "o"
        s += "!"
    return kind, s.gen("end", max_tokens=2)


@condition()
def chain_of_elif(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    if "e" in x:
        y = 1
    elif "t" in x:
        y = s.gen("t", max_tokens=2)
    elif "a" in x:
        y = None
    elif "o" in x:
        y = 2.5
    else:
        y = True
    return y, s.gen("end", max_tokens=2)


@condition(never=('s += "never said"',))
def loops_in_arms_that_end_early(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        for word in ["one", "two", "three"]:
            if word == "two":
                break
            s += word
        else:
            s += "never said"
    else:
        for word in ["one", "two", "three"]:
            if word == "two":
                continue
            s += word
    return word, s.gen("end", max_tokens=2)


@condition()
def else_of_a_loop(s, a: str):
    s += a
    for word in ["one", "two"]:
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            s += word
    else:
        if "t" in x:
            s += "t at the end"
    return word, s.gen("end", max_tokens=2)


@condition()
def in_a_role_block(s, a: str):
    s += "start" if not a else ""
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "yes"
    else:
        s += "no"
    return s.gen("y", max_tokens=2)


@condition()
def in_a_message(s, a: str):
    with s.user():
        s += a
    with s.assistant():
        x = s.gen("x", max_tokens=5)
        if "e" in x:
            s += " more"
            y = s.gen("y", max_tokens=3)
        else:
            y = x
    s.user("next" + y)
    return y
