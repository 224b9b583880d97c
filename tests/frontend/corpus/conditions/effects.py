"""Tools, effects and exceptions under conditions: each happens once, in order, on the way that is taken."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import details, find, length_of, lookup, record, shout
from tests.frontend.harness import effect


def forget(things):
    things.clear()
    return len(things)


def things(word):
    return [word] if "e" in word else []


@condition()
def effects_in_arms(s, a: str):
    s += a
    effect("start")
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        effect("e", x)
        s += shout(x)
    else:
        effect("none")
    effect("after", x)
    return s.gen("y", max_tokens=2)


@condition()
def effects_after_an_early_return(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    record("before")
    if "e" in x:
        record("early")
        return shout(x)
    record("late")
    s += lookup(x)
    y = s.gen("y", max_tokens=2)
    if "t" in y:
        record("t")
        return y
    record("end")
    print(y)
    return y + "!"


@condition()
def tools_of_each_kind(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        n = length_of(x)
        s += lookup(x)
        record(x)
        s += find(x)[0]
    else:
        record("none")
    if n > 2:
        effect("long")
    return n, s.gen("y", max_tokens=2)


@condition()
def what_a_tool_gives_decides(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if length_of(x) > 3:
        s += "long"
    if "e" in lookup(x):
        s += "e"
    found = find(x)
    if found:
        s += found[0]
    if "t" in found[1].lower():
        s += "t"
    return s.gen("y", max_tokens=2)


@condition()
def a_list_decides_before_it_is_changed(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    found = things(x)
    if found:
        s += "some"
    else:
        s += "none"
    effect("forgot", forget(found))
    if not found:
        s += "forgotten"
    return s.gen("y", max_tokens=2)


@condition()
def a_value_of_any_type_decides(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    info = details(x)
    if info["n"] > 3:
        s += info["word"]
    if info["parts"] and info["parts"][0] == "e":
        effect("starts with e")
    return info["n"], s.gen("y", max_tokens=2)


@condition()
def print_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        print("found", x)
    else:
        print("nothing", end="")
    return x


@condition()
def an_exception_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    effect("before")
    if "e" in x:
        effect("bad")
        raise ValueError(f"no {a}")
    s += "good"
    return s.gen("y", max_tokens=2)


@condition()
def an_exception_in_an_arm_is_caught(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    found = "e" in x
    try:
        if found:
            raise ValueError("found")
        n = 1
    except ValueError:
        n = 2
    return n, s.gen("y", max_tokens=2)


@condition()
def an_exception_of_a_function_in_an_arm_is_caught(s, a: str):
    def checked(text, *, good):
        if good:
            return text
        return ["one"][1]

    s += a
    x = s.gen("x", max_tokens=4)
    found = "e" in x
    try:
        y = checked(x, good=found)
    except LookupError:
        y = "caught"
    s += y
    return s.gen("y", max_tokens=2)


@condition()
def an_exception_inside_of_an_arm_is_caught_there(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        try:
            n = {"a": 1}["b"]
        except KeyError:
            n = 5
        finally:
            effect("finally")
    return n, s.gen("y", max_tokens=2)


@condition()
def a_conversion_that_raises_on_one_way_alone(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if x.isdigit():
        n = int(x)
    elif "e" in x:
        n = len(x) // len(a.replace("b", ""))
    return n, s.gen("y", max_tokens=2)


@condition()
def what_raises_for_any_input(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        n = 1 / len(x) if x.count("e") < 9 else 1 / 0
    return n, s.gen("y", max_tokens=2)


@condition()
def conversions_that_raise_on_the_way_taken(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-f]")
    n = -1
    if x.isdigit():
        n = int(x)
    y = int(x, 16) if n < 0 else 10 // n
    effect(n)
    return n, y, s.gen("y", max_tokens=2)


@JittedFunction
def descend(s, word: str, depth: int = 0):
    s += word
    x = s.gen("x", max_tokens=2, temperature=1.0)
    effect(x)
    if "e" in x and depth < 5:
        x = descend(x, depth + 1)
    return x + "."


condition("deep")(descend)  # the stack of the caller decides which limit it meets


@condition()
def a_recursion_of_known_depth(s, a: str):
    def walk(depth):
        x = s.gen("x", max_tokens=9, temperature=1.0)
        if depth == 0:
            return x
        if "e" in x:
            effect(depth)
            y = walk(depth - 1)
        else:
            y = "stopped"
        return y + "."

    s += a
    return walk(3)


@condition()
def a_generator_with_conditions(s, a: str):
    def words(text):
        for letter in ["e", "t", "o"]:
            found = "yes" if letter in text else "no"
            yield letter + found

    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        for word in words(x):
            s += word
    return list(words(x)), s.gen("y", max_tokens=2)


@condition()
def a_generator_with_a_condition(s, a: str):
    def words(text):
        for letter in ["e", "t", "o"]:
            if letter in text:
                yield letter

    s += a
    x = s.gen("x", max_tokens=4)
    for word in words(x):
        s += word
    return s.gen("y", max_tokens=2)


@condition(never=("while True:", 's += "on"'))
def a_way_that_does_not_end(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "0" in x and "1" in x and "2" in x and "3" in x:
        while True:
            s += "on"
    return s.gen("y", max_tokens=2)
