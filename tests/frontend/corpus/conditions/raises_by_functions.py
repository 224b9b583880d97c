"""Functions and programs that raise on one way through a condition, where they are called."""

import lmc
from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.conditions.errors import RefusedError, checked, refuse, stored
from tests.frontend.harness import effect


@condition()
def by_a_function(s, a: str):
    s += a
    x = checked(s, s.gen("x", max_tokens=4))
    y = checked(s, s.gen("y", max_tokens=2))
    return x, y


@condition(never=('effect("but not now")',))
def by_a_function_that_always_does(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        refuse(s, x)
    if "t" in x:
        effect("now")
        refuse(s, a)
        effect("but not now")
    return s.gen("y", max_tokens=3)


@condition()
def by_a_function_in_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "o" in x:
        effect("o")
        if "e" in x:
            refuse(s, "e")
        else:
            refuse(s, x)
    return s.gen("y", max_tokens=3)


@condition()
def by_a_function_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "o" in x or "i" in x:
        x = checked(s, x)
        n = 1
    elif "t" in x:
        n = 2
    return n, x, s.gen("y", max_tokens=3)


@condition()
def by_an_inner_function(s, a: str):
    def sure(text, code):
        if "e" in text:
            raise RefusedError(text, code)
        return text + str(code)

    s += a
    x = sure(s.gen("x", max_tokens=4), 1)
    y = sure(s.gen("y", max_tokens=4), 2)
    return x + y


@condition()
def by_an_inner_function_of_an_inner_one(s, a: str):
    def stop(text):
        raise RefusedError(text)

    def sure(text):
        if "t" in text:
            stop(text)
        return text

    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        x = sure(x)
        s += "e"
    return sure(x), s.gen("y", max_tokens=2)


@JittedFunction
def strict(s, text: str):
    s += text
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise ValueError(f"strict: {x}")
    return x


@condition()
def by_a_program(s, a: str):
    s += a
    first = strict(a)
    s += first
    x = s.gen("x", max_tokens=3)
    if "o" in x:
        first = strict(x)
    return first, s.gen("y", max_tokens=2)


@condition()
def what_follows_from_the_argument(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    if "e" in x and len(a) > 1:
        raise ValueError(a)
    if len(a) > 2 and "t" in x:
        raise KeyError(a)
    return s.gen("y", max_tokens=2)


@condition()
def in_a_match(s, a: str):
    s += a
    match s.select("x", ["yes", "no", "e"]):
        case "yes":
            return "yes"
        case "no":
            raise RefusedError("no")
        case other:
            raise KeyError(other)


@condition()
def in_arms_of_a_form(s, a: str):
    def bad():
        raise RefusedError(a)

    s += a
    x = s.gen("x", max_tokens=3)
    found = lmc.cond("e" in x, bad, lambda: x + "!")
    return found, s.gen("y", max_tokens=2)


@condition()
def in_elements(s, a: str):
    def one(branch, letter):
        branch += letter
        x = branch.gen("x", max_tokens=2)
        if "e" in x:
            raise ValueError(letter, x)
        return x

    s += a
    found = lmc.map(one, list(s.gen("w", max_tokens=3)), on=s)
    return found, s.gen("y", max_tokens=2)


@condition()
def by_a_function_in_an_expression(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "none" if "i" not in x else checked(s, x)
    return y, s.gen("y", max_tokens=2)


@condition()
def by_a_function_that_always_does_in_an_expression(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "t" in x:
        s += "e"
        y = refuse(s, x) if "e" in x else "none"
    else:
        y = "t"
    return y, s.gen("y", max_tokens=2)


@condition()
def in_rounds_whose_number_is_known(s, a: str):
    s += a
    for index in range(3):
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            raise ValueError(index, x)
        effect("good", index)
    return s.gen("y", max_tokens=2)


@condition()
def many_ways_with_calls(s, a: str):
    s += a
    x = s.select("x", ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"])
    if x == "a":
        y = stored(x)
    elif x == "b":
        y = checked(s, x)
    elif x == "c":
        y = stored(x)
    elif x == "d":
        y = checked(s, "e" + x)
    elif x == "e":
        y = stored("0")
    elif x == "f":
        y = stored("1")
    elif x == "g":
        y = stored("2")
    elif x == "h":
        y = stored("3")
    elif x == "i":
        y = stored("4")
    elif x == "j":
        y = stored("5")
    elif x == "k":
        y = stored("6")
    else:
        y = checked(s, x)
    return y, s.gen("y", max_tokens=2)
