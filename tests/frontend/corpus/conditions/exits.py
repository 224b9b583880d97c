"""Returns, and rounds of loops that end early, under conditions."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


@condition()
def early_return(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        return "early", x
    s += " went on "
    y = s.gen("y", max_tokens=6)
    if "t" in y:
        s += "t"
        return {"y": y, "late": [x]}
    return s.gen("z", max_tokens=3)


@condition()
def both_return(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        return 1
    else:
        return s.gen("y", max_tokens=2)


@condition()
def both_return_inside(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        if "t" in x:
            return "et"
        else:
            s += "only e"
            return s.gen("e", max_tokens=2)
        s += "never"
    effect("no e", x)
    return s["x"]


@condition()
def return_without_value(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    if "e" in x:
        return
    s.gen("y", max_tokens=2)


@condition()
def return_in_a_loop(s, a: str):
    s += a
    for word in ["one", "two", "three"]:
        s += word
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            return word, x
        s += "again"
    return "none", s.gen("last", max_tokens=2)


@condition()
def return_in_a_loop_in_an_arm(s, a: str):
    s += a
    first = s.gen("first", max_tokens=4)
    if "e" in first:
        for word in ["one", "two"]:
            x = s.gen("x", max_tokens=2)
            if "t" in x:
                return word
            s += word
    else:
        s += "no loop"
    return s.gen("last", max_tokens=2)


@condition()
def return_of_a_known_condition_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        if len(a) > 2:
            return "long"
        s += "short"
    else:
        if len(a) <= 2:
            s += "short too"
    return s.gen("y", max_tokens=2), a


@condition(never=("s += 'dead'",))
def code_behind_two_returns_of_a_known_condition(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        if len(a) > 2:
            return "long"
        else:
            return "short"
        s += "dead"
    effect("on")
    return s.gen("y", max_tokens=2), a


@condition()
def continue_in_a_loop(s, a: str):
    s += a
    kept = []
    for word in ["one", "two", "three"]:
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            s += "skip"
            continue
        s += word
        y = s.gen("y", max_tokens=2)
        effect(word, y)
    return s.gen("end", max_tokens=2)


@condition()
def continue_in_the_second_arm(s, a: str):
    s += a
    last = "none"
    for word in ["one", "two", "three"]:
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            s += word
        elif "t" in x:
            continue
        else:
            s += "else"
            if "a" in x:
                continue
            s += "no a"
        last = word
    return last, s.gen("end", max_tokens=2)


@condition()
def break_in_a_loop(s, a: str):
    s += a
    for word in ["one", "two", "three"]:
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            break
        s += word
    else:
        s += "all"
    return word, s.gen("end", max_tokens=2)


@condition()
def return_out_of_a_message(s, a: str):
    with s.user():
        s += a
    with s.assistant():
        x = s.gen("x", max_tokens=5)
        if "e" in x:
            return x
        s += "on"
    s.user("then")
    return s["x"]


@condition()
def both_return_out_of_a_message(s, a: str):
    with s.user():
        s += a
    with s.assistant():
        x = s.gen("x", max_tokens=5)
        if "e" in x:
            return x
        else:
            return "other"


@condition()
def return_through_finally(s, a: str):
    s += a
    x = s.gen("x", max_tokens=5)
    try:
        if "e" in x:
            return "early"
        effect("on")
    finally:
        effect("finally")
    return "late"


@condition(never=("except BaseException:", 'effect("caught")', "raise"))
def return_through_except(s, a: str):
    s += a
    x = s.gen("x", max_tokens=5)
    try:
        if "e" in x:
            return "early"
        else:
            return "other"
    except BaseException:
        effect("caught")
        raise


@JittedFunction
def judged(s, text: str):
    s += text
    verdict = s.gen("v", max_tokens=4)
    if "e" in verdict:
        return "good"
    return "bad " + verdict


@JittedFunction
def graded(s, text: str):
    s += text
    verdict = s.gen("v", max_tokens=4)
    if "e" in verdict:
        s += "e"
        if "t" in verdict:
            return 3
        return 2
    elif "o" in verdict:
        return 1
    s += "none"
    more = s.gen("more", max_tokens=2)
    return len(more)


@condition()
def calls_a_program_that_returns_early(s, a: str):
    s += a
    first = judged(a)
    s += first
    second = judged.on_state(s, "again")
    return first, second, s.gen("x", max_tokens=4)


@condition()
def calls_a_program_with_many_returns(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    total = graded(x) + graded(a)
    if "e" in x:
        total = total + graded.on_state(s, "third")
    return total, s.gen("y", max_tokens=3, temperature=1.0)


@condition()
def an_inner_function_that_returns_early(s, a: str):
    def check(text):
        if "e" in text:
            s.gen("has", max_tokens=2)
            return "has e"
        return text + "?"

    s += a
    x = s.gen("x", max_tokens=4)
    one = check(x)
    two = check(s.gen("z", max_tokens=4))
    return one, two


@condition()
def an_inner_function_with_loops_that_returns(s, a: str):
    def first_with(letter, texts):
        for text in texts:
            if letter in text:
                return text
        return "none"

    s += a
    x = s.gen("x", max_tokens=4)
    y = s.gen("y", max_tokens=4)
    found = first_with("e", [x, y])
    s += found
    return found, s.gen("z", max_tokens=4)
