"""Plain loops: counters, swaps, names that are first bound in a round, targets that are read afterwards."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from tests.frontend.corpus.host_functions import find
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@looped()
def asks_until_it_is_there(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    rounds = 0
    while "e" not in x and rounds < 6:
        s += f" again {rounds}: "
        x = s.gen("x", max_tokens=3)
        rounds += 1
    return x, rounds, s.gen("end", max_tokens=2)


@looped()
def a_walrus_in_the_condition(s, a: str):
    s += a
    seen = ""
    while "e" not in (x := s.gen("x", max_tokens=2, temperature=1.0)):
        seen = f"{seen}{x}|"
        s += "next"
        if len(seen) > 12:
            break
    return seen, x


@looped()
def swaps(s, a: str):
    s += a
    x, y, z = "one", 2, "three"
    n = s.gen("n", regex="[0-5]")
    while len(n) < 5 and n[0] > "1":
        x, y = y, x
        z, x = f"{x}", z
        n += s.gen("n", regex="[0-5]")
    return x, y, z, n


@looped()
def three_rotate(s, a: str):
    s += a
    a1, b1, c1 = "a", "b", "c"
    text = s.gen("text", max_tokens=6)
    for letter in text:
        a1, b1, c1 = b1, c1, a1 + letter
    return a1, b1, c1


@looped()
def first_bound_in_a_round(s, a: str):
    s += a
    found = "none"
    for word in s.gen("words", max_tokens=12).split():
        last = word
        found = last + "!"
    return found


@looped()
def first_bound_in_a_round_and_read_behind(s, a: str):
    s += a
    text = s.gen("words", max_tokens=4)
    for word in text.split("e"):
        last = word
    s += "then"
    return last, word


@looped()
def perhaps_unbound_and_asked_behind(s, a: str):
    s += a
    text = s.gen("words", max_tokens=4)
    some = False
    for letter in text:
        last = letter
        some = True
    if some:
        s += "some"
    return some, s.gen("end", max_tokens=2)


@looped()
def a_target_bound_before_and_read_behind(s, a: str):
    s += a
    letter = "before"
    n = -1
    for n, letter in enumerate(s.gen("word", max_tokens=5)):
        s += letter
    return n, letter


@looped()
def the_target_is_bound_anew_in_the_round(s, a: str):
    s += a
    total = ""
    word = ""
    for word in s.gen("words", max_tokens=8).split(" "):
        word = word.upper()
        if "E" in word:
            word = word + word
        total += word
    return total, word


@looped()
def zero_one_and_many_rounds(s, a: str):
    s += a
    count = 0
    text = "-"
    for word in s.gen("words", max_tokens=7).split():
        count += 1
        text = word
        effect(word)
    if count == 0:
        s += "none"
    elif count == 1:
        s += "one"
    else:
        s += "many"
    return count, text, s.gen("end", max_tokens=2)


@looped()
def an_int_becomes_a_float(s, a: str):
    s += a
    total = 0
    half = 1
    for letter in s.gen("word", max_tokens=6):
        if letter == "e":
            total = total + 0.5
        half = half / 2
    return total, half, f"{total}", total == 0


@looped()
def a_text_becomes_a_number(s, a: str):
    s += a
    value = "none"
    for letter in s.gen("word", max_tokens=6):
        if letter in "te":
            value = 3
        elif letter in "ao":
            value = None
    return value, f"<{value}>", value == 3


@looped()
def none_or_text(s, a: str):
    s += a
    best = None
    for letter in s.gen("word", max_tokens=6):
        if best is None or letter > best:
            best = letter
    if best is None:
        return "nothing"
    s += f"best {best}"
    return best, s.gen("end", max_tokens=2)


@looped()
def counts_and_collects(s, a: str):
    s += a
    vowels = others = 0
    kept = ""
    for letter in s.gen("word", max_tokens=9):
        if letter in "eaiou":
            vowels += 1
        else:
            others += 1
            kept = letter + kept
    return vowels, others, kept, vowels - others > 0


@looped()
def a_tuple_that_is_carried(s, a: str):
    s += a
    x, y = "", 0
    for pair in enumerate(s.gen("word", max_tokens=4)):
        x = f"{x}{pair[1]}"
        y += pair[0]
    return x, y


@looped()
def a_tuple_bound_in_each_round(s, a: str):
    s += a
    pair = ("", 0)
    for letter in s.gen("word", max_tokens=4):
        pair = (pair[0] + letter, pair[1] + 1)
    return pair


@looped()
def a_value_deleted_in_each_round(s, a: str):
    s += a
    text = ""
    for letter in s.gen("word", max_tokens=4):
        part = letter + "."
        text += part
        del part
    return text, s.gen("end", max_tokens=2)


@looped()
def a_constant_condition_of_an_argument(s, a: str):
    s += a
    n = 0
    while n < len(a):
        n += 1
        s.gen("x", max_tokens=1)
    text = s.gen("y", max_tokens=4)
    while n < len(text):
        n += 1
        s += "."
    return n


@looped()
def shadowed_names(s, a: str):
    s += a
    text = s.gen("text", max_tokens=4)
    len_ = 0
    for a in text:
        len_ += 1
        for a in a.upper():
            len_ += 1
    return a, len_


@looped()
def a_comparison_chain_ends_it(s, a: str):
    s += a
    low, high = 0, 40
    x = s.gen("x", max_tokens=3)
    while 0 <= low < high and "e" not in x:
        low, high = low + len(x), high - 7
        x = s.gen("x", max_tokens=3)
    return low, high


@looped()
def and_or_not_in_the_condition(s, a: str):
    s += a
    n = 0
    x = y = ""
    while (n < 5 and not ("e" in x and "t" in y)) or n < 2:
        x = s.gen("x", max_tokens=2)
        y = s.gen("y", max_tokens=2) or "empty"
        n += 1
    return n, x, y


@looped()
def conditional_expressions_in_rounds(s, a: str):
    s += a
    text = ""
    for letter in s.gen("word", max_tokens=6):
        text += letter.upper() if letter in "aeiou" else "-" if letter == " " else letter
    return text


@looped()
def over_a_tool_result(s, a: str):
    s += a
    text = ""
    for word in find(s.gen("x", max_tokens=2)):
        s += word
        text += s.gen("y", max_tokens=2)
    return text


@looped()
def over_several_unknown_lists(s, a: str):
    s += a
    text = s.gen("text", max_tokens=10)
    out = ""
    for word in text.split("e"):
        out += word[:1]
    for line in text.splitlines():
        out += line[-1:]
    for letter in list(text):
        out += letter
    return out


@looped()
def enumerate_zip_range_reversed(s, a: str):
    s += a
    text = s.gen("text", max_tokens=6)
    words = text.split(" ")
    out = ""
    for index, word in enumerate(words):
        out += f"{index}{word}"
    for index in range(len(text)):
        out += f"{index}"
    for word in reversed(words):
        out += word
    for word, letter in zip(words, text):
        out += word + letter
    return out


@looped()
def a_range_of_a_generated_number(s, a: str):
    s += a
    n = int(s.gen("n", regex="[0-4]"))
    out = ""
    for index in range(n):
        out += s.gen("x", max_tokens=2, temperature=1.0) + str(index)
    return out


@looped()
def a_generated_int_counts_down(s, a: str):
    s += a
    n = int(s.gen("n", regex="[0-4]"))
    while n > 0:
        s += f"{n} "
        s.gen("x", max_tokens=1)
        n -= 1
    return n, s.gen("end", max_tokens=2)


@looped()
def while_a_text_is_not_empty(s, a: str):
    s += a
    rest = s.gen("x", max_tokens=5)
    seen = ""
    while rest:
        seen = rest[0] + seen
        rest = rest[1:]
    return seen, rest


@looped()
def many_rounds_at_run_time(s, a: str):
    s += a
    n = 0
    x = s.gen("x", max_tokens=4)
    limit = 2000 + len(x)
    while n < limit:
        n += 1
    return n - limit
