"""`raise` in rounds of loops, and conversions in a `try` in them."""

import lmc
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


class RefusedError(Exception):
    """A class without anything of its own."""


class CountedError(Exception):
    def __init__(self, text: str) -> None:
        effect("made", text)
        super().__init__(text)


@lmc.tool
def stored(text: str) -> str:
    effect("stored", text)
    return text + "!"


@looped()
def the_first_bad_item(s, a: str):
    s += a
    n = 0
    for letter in s.gen("x", max_tokens=6):
        effect("round", letter)
        if letter == "e":
            raise ValueError(f"no {letter} after {n}")
        n += 1
        stored(letter)
    return n, s.gen("y", max_tokens=2)


@looped()
def raises_at_the_end_of_a_round(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=6):
        s += letter
        x = s.gen("y", max_tokens=2)
        if "t" in x:
            if "e" in x:
                raise CountedError(x)
            raise RefusedError(letter, x)
    return s.gen("z", max_tokens=2)


@looped()
def raises_between_other_ends(s, a: str):
    s += a
    found = []
    for letter in s.gen("x", max_tokens=8):
        if letter == "o":
            continue
        if letter == "s":
            break
        if letter == "e":
            raise KeyError(letter) from None
        if letter == "t":
            return found
        found.append(letter)
    else:
        raise RefusedError(len(found))
    return found, s.gen("y", max_tokens=2)


@looped()
def in_a_while(s, a: str):
    s += a
    rounds = 0
    text = s.gen("x", max_tokens=2)
    while "s" not in text:
        rounds += 1
        if rounds > 3:
            raise RuntimeError("too long", rounds)
        s += text
        text = s.gen("x", max_tokens=2)
    return rounds, text


@looped()
def in_an_endless_while(s, a: str):
    s += a
    rounds = 0
    while True:
        rounds += 1
        text = s.gen("x", max_tokens=2)
        if "e" in text:
            raise RefusedError(rounds, text)
        if "t" in text:
            return rounds
        s += "again"


@looped()
def in_loops_in_loops(s, a: str):
    s += a
    count = 0
    for word in s.gen("x", max_tokens=6).split("e"):
        for letter in word:
            if letter == "t":
                raise RefusedError(word, count)
            count += 1
        s += word
    return count, s.gen("y", max_tokens=2)


@looped()
def by_a_function_in_rounds(s, a: str):
    def sure(letter):
        if letter == "e":
            raise RefusedError(letter)
        return letter.upper()

    s += a
    found = [sure(letter) for letter in s.gen("w", max_tokens=2)]
    for letter in s.gen("x", max_tokens=4):
        found.append(sure(letter))
    return found, s.gen("y", max_tokens=2)


@looped()
def what_rounds_carry_is_raised(s, a: str):
    s += a
    total, words = 0, []
    for letter in s.gen("x", max_tokens=6):
        total += 1
        words.append(letter)
        if total > 2 and "e" in words:
            raise ValueError(total, "-".join(words))
    return total, words


@looped()
def a_number_in_each_round(s, a: str):
    s += a
    total, unclear = 0, []
    for letter in s.gen("x", regex="[0-9a-c]{1,5}"):
        try:
            total += int(letter)
        except ValueError:
            unclear.append(letter)
    return total, unclear, s.gen("y", max_tokens=2)


@looped()
def a_number_of_a_part_in_each_round(s, a: str):
    s += a
    total, unclear = 0, 0
    for word in s.gen("x", max_tokens=12).split("e"):
        try:
            total += int(word.strip().partition(" ")[0])
        except ValueError:
            unclear += 1
    return total, unclear, s.gen("y", max_tokens=2)


@looped()
def a_number_in_an_expression_in_each_round(s, a: str):
    s += a
    total = 0.0
    best = "none"
    for letter in s.gen("x", regex="[0-9a-c]{1,5}"):
        try:
            total = total + float(letter) * 2
            best = letter
        except (TypeError, ValueError):
            s += letter
    return total, best, s.gen("y", max_tokens=2)


@looped()
def a_number_that_is_needed_in_each_round(s, a: str):
    s += a
    total = 0
    for letter in s.gen("x", regex="[0-9a-c]{1,5}"):
        try:
            total += int(letter)
        except ValueError as error:
            raise RefusedError(f"not a number: {letter}") from error
    return total, s.gen("y", max_tokens=2)


@looped()
def a_number_without_which_the_rounds_end(s, a: str):
    s += a
    total = 0
    for letter in s.gen("x", regex="[0-9a-c]{1,5}"):
        try:
            number = int(letter)
        except ValueError:
            if letter == "a":
                raise
            break
        total += number
    else:
        total = -1
    return total, s.gen("y", max_tokens=2)


@looped()
def numbers_in_a_while(s, a: str):
    s += a
    rounds = 0
    number = -1
    while number < 0:
        rounds += 1
        try:
            number = int(s.gen("x", regex="[0-9a-c]"))
        except ValueError as error:
            s += str(error)
            if rounds > 1:
                raise RuntimeError("no number") from error
    return number, rounds
