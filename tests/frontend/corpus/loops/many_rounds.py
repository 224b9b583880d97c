"""Loops over many known items that a run leaves early: too many for one condition inside the other."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect

NUMBERED = [f"w{number}" for number in range(70)]
NAMED = {f"k{number}": number for number in range(70)}


class Item:
    """An object that a graph can't make a list of."""

    def __init__(self, number):
        self.number = number


ITEMS = [Item(number) for number in range(70)]


def asked(s, letter):
    return letter in s.gen("x", max_tokens=2, temperature=1.0)


def first_of(s, number):
    if asked(s, "t"):
        return number
    return number + 1 if asked(s, "e") else 0


def numbers(s, most):
    for number in range(most):
        if asked(s, "q"):
            return
        yield number


@tool(effect="writes")
def noted(word: str) -> str:
    effect("noted", word)
    return word


@looped()
def a_range(s, a: str):
    s += a
    for number in range(70):
        x = s.gen("x", max_tokens=2, temperature=1.0)
        if "t" in x:
            break
    return number, x


@looped()
def a_list(s, a: str):
    for word in [f"{a}{number}" for number in range(70)]:
        s += word
        if asked(s, "t"):
            break
    return word


@looped()
def a_list_from_outside(s, a: str):
    s += a
    for word in NUMBERED:
        s += word
        if asked(s, "t"):
            break
    return word


@looped("is gone over in a loop whose calls may change it")
def a_list_from_outside_that_a_tool_may_change(s, a: str):
    s += a
    for word in NUMBERED:
        s += noted(word)
        if asked(s, "t"):
            break
    return word


@looped()
def items_of_a_dict(s, a: str):
    s += a
    own = {f"k{number}": a for number in range(70)}
    for key, word in own.items():
        own[key] = word + "!"
        if asked(s, "t"):
            break
    for name, number in NAMED.items():
        s += name
        if asked(s, "e"):
            break
    return key, list(own.items())[:9], name, number


@looped()
def an_enumerated_list_with_an_else(s, a: str):
    s += a
    for number, (word, name) in enumerate(zip(NUMBERED, NAMED), 3):
        s += word
        if asked(s, a[:2]):
            break
    else:
        s += "never"
    return number, word, name


@looped()
def letters_of_a_text(s, a: str):
    s += a
    for letter in "abcdefg" * 10:
        if asked(s, letter):
            break
    else:
        return "none"
    return letter


@looped("stand deeper than 60")
def an_iterator_that_goes_on(s, a: str):
    s += a
    rest = iter(NUMBERED)
    for word in rest:
        if asked(s, "t"):
            break
    return word, next(rest), len(list(rest))


@looped("over an iterator that has a name")
def an_iterator_of_a_list_that_grows(s, a: str):
    s += a
    words = [a]
    rest = iter(words)
    for word in rest:
        if asked(s, "e") and len(words) < 9:
            words.append(word + "y")
        if asked(s, "t"):
            break
    return word, list(rest), words


@looped()
def a_list_that_grows(s, a: str):
    s += a
    words = [a] * 65
    for word in words:
        if asked(s, "e") and len(words) < 69:
            words.append(word + "y")
        if asked(s, "t"):
            break
    return word, words


@looped()
def records_that_rounds_change(s, a: str):
    s += a
    records = [{"number": number, "text": a} for number in range(70)]
    for record in records:
        record["text"] += s.gen("x", max_tokens=2, temperature=1.0)
        if "t" in record["text"]:
            break
    return record, records[:9], record in records


@looped("stand deeper than 60")
def objects(s, a: str):
    s += a
    for item in ITEMS:
        if asked(s, str(item.number)):
            break
    return item.number


@looped("stand deeper than 60")
def names_of_generations(s, a: str):
    s += a
    for number in range(70):
        if "t" in s.gen(f"x{number}", max_tokens=2, temperature=1.0):
            break
    return number


@looped()
def an_early_return(s, a: str):
    s += a
    for number in range(70):
        if asked(s, a[:2]):
            return number
        if asked(s, "e"):
            continue
        s += "."
    return None


@looped()
def helpers_that_return_early(s, a: str):
    s += a
    total = 0
    for number in range(70):
        total += first_of(s, number)
        if total > 9:
            break
    return total


@looped()
def a_generator_that_ends_early(s, a: str):
    s += a
    for number in numbers(s, 70):
        if asked(s, "t"):
            break
    return number


@looped()
def rounds_with_errors(s, a: str):
    s += a
    for number in range(70):
        try:
            found = int(s.gen("x", max_tokens=2, temperature=1.0))
        except ValueError:
            s += "no"
            if asked(s, "t"):
                break
            continue
        if found > 3:
            break
    return number


@looped()
def rounds_with_a_finally(s, a: str):
    s += a
    count = 0
    for number in range(70):
        try:
            if asked(s, "t"):
                break
            int(s.gen("y", max_tokens=2, temperature=1.0))
        except ValueError as error:
            s += str(error)[:3]
        finally:
            count += 1
    return number, count


@looped()
def rounds_with_roles(s, a: str):
    s += a
    for number in range(70):
        with s.user():
            s += str(number)
        with s.assistant():
            if asked(s, "t"):
                break
    return number


@looped()
def loops_in_each_other(s, a: str):
    s += a
    for number in range(70):
        for word in NUMBERED:
            for letter in "abc" * 30:
                if asked(s, letter):
                    break
            if asked(s, "e"):
                break
        if asked(s, "e"):
            break
    return number, word, letter


@looped()
def a_short_loop_in_a_long_one(s, a: str):
    s += a
    count = 0
    for number in range(70):
        for name in ["u", "v"]:
            if "t" in s.gen(name, max_tokens=2, temperature=1.0):
                break
            count += 1
        if count > 5 and asked(s, "e"):
            break
    return number, name, count


@looped()
def a_while_with_many_ways_out(s, a: str):
    s += a
    number = 0
    while number < 20:
        number += 1
        try:
            for letter in "abcd":
                if asked(s, letter):
                    break
            if asked(s, "t"):
                break
            if asked(s, "o"):
                continue
            if asked(s, "e"):
                continue
            s += "u"
        finally:
            s += "f"
    return number
