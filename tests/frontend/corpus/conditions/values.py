"""What values become behind a condition: types, constants, texts made of parts, expressions with conditions."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

import enum
import math

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@condition()
def mixed_types(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = None
    z = 1
    if "e" in x:
        y = 3
        z = "text"
    elif "t" in x:
        y = "found"
        z = 2.5
    s += f"{y} {z}"
    return y, z, y is None, z == 1, not y, [y, (z,)]


@condition()
def numbers_that_are_equal_but_not_the_same(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        one, zero, big = 1, 0.0, 10**18
    else:
        one, zero, big = True, -0.0, 1e18
    s += f"{one} {zero} {big}"
    return one, zero, math.copysign(1, zero), big


@condition()
def one_is_one_and_a_half(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        n = 1
    else:
        n = 1.0
    return n, n + 1, f"{n}", n == 1, str(n * 2)


@condition()
def none_or_text(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    found = None
    if "e" in x:
        found = x
    if found is None:
        s += "nothing"
    else:
        s += found
    if found:
        effect("found", found)
    return found, found is not None


@condition()
def none_and_a_value_of_the_users(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    mood = None
    if "e" in x:
        mood = Mood.GOOD
    s += "mood"
    return mood is None


@condition()
def moods_in_both_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        mood = Mood.GOOD
    else:
        mood = Mood.BAD
    s += f"{mood}"
    return mood, mood == Mood.GOOD


@condition()
def a_text_is_made_first_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    label = f"<{x}|{a}>"
    if "e" in x:
        s += label
        n = len(label)
        shown = label.upper()
    else:
        n = 0
        shown = ""
    s += label
    return label, n, shown, len(label), label + "!"


@condition()
def a_length_is_asked_for_first_in_an_arm(s, a: str):
    s += a
    xs = s.gen("xs", n=3, max_tokens=2, temperature=1.0)
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        n = len(xs) + len(x)
    return n, len(xs), len(x)


@condition()
def a_tuple_in_each_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    pair = ("none", 0)
    if "e" in x:
        pair = (x, len(x))
    text, n = pair
    return pair, text, n + 1


@condition()
def a_counter_in_arms(s, a: str):
    s += a
    count = 0
    for letter in ["e", "t", "a"]:
        x = s.gen("x", max_tokens=4)
        if letter in x:
            count += 1
            s += letter
    s += str(count)
    return count, s.gen("y", max_tokens=2)


@condition()
def text_grows_in_arms(s, a: str):
    s += a
    text = ""
    for letter in ["e", "t", "a"]:
        x = s.gen("x", max_tokens=4)
        if letter in x:
            text += letter + x
        else:
            text = text + "-"
    s += text
    return text, s.gen("y", max_tokens=2)


@condition()
def what_follows_from_the_arguments_inside(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        for index in range(len(a) % 3):
            n += index + 1
            s += f"{index}"
    else:
        n = 7 if a.startswith("t") else 8
    if len(a) > 2:
        s += "long"
    return n, s.gen("y", max_tokens=2)


@condition()
def twenty_one_elif(s, a: str):
    s += a
    x = s.gen("x", regex="[0-2][0-9]")
    if x == "00":
        y = "A"
    elif x == "01":
        y = "B"
    elif x == "02":
        return "C"
    elif x == "03":
        y = "D"
    elif x == "04":
        y = "E"
    elif x == "05":
        return "F"
    elif x == "06":
        y = "G"
    elif x == "07":
        y = "H"
    elif x == "08":
        y = "I"
    elif x == "09":
        return "J"
    elif x == "10":
        y = "K"
    elif x == "11":
        y = "L"
    elif x == "12":
        y = "M"
    elif x == "13":
        y = "N"
    elif x == "14":
        return s.gen("o", max_tokens=3)
    elif x == "15":
        y = "P"
    elif x == "16":
        y = "Q"
    elif x == "17":
        y = "R"
    elif x == "18":
        y = "S"
    elif x == "19":
        return "T"
    elif x == "20":
        y = "U"
    else:
        y = "other"
    s += y
    return y, s.gen("y", max_tokens=2)
