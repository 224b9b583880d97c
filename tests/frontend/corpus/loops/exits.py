"""Rounds that are left early: break, continue, else, return, at every depth."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@looped()
def break_and_continue(s, a: str):
    s += a
    kept = ""
    for letter in s.gen("word", max_tokens=8):
        if letter == " ":
            continue
        if letter in "t7":
            kept += "!"
            break
        kept += letter
    return kept, s.gen("end", max_tokens=2)


@looped()
def a_question_before_a_break_in_rounds_of_a_known_number(s, a: str):
    s += a
    word = s.gen("word", max_tokens=4)
    rounds = 0
    while rounds < 3:
        rounds += 1
        if "e" in word:
            if "l" in word:
                s.select("how", ["yes", "no"])
                break
            s += "x"
            if "3" in word:
                s.gen("how", max_tokens=2)
                return s.text()
        if "t" in word:
            s.select("how", ["so", "not"])
            break
    return rounds, s.text()


@looped()
def while_true_with_a_break(s, a: str):
    s += a
    n = 0
    while True:
        x = s.gen("x", max_tokens=2)
        n += 1
        if "e" in x or n > 5:
            break
        s += "on"
    return n, x


@looped()
def while_true_with_several_ends(s, a: str):
    s += a
    n = 0
    while True:
        n += 1
        x = s.gen("x", max_tokens=2, temperature=1.0)
        if n > 6:
            return "too many", n
        if " " in x:
            continue
        if "e" in x:
            break
        if "t" in x:
            return x, n
        effect(x)
    return n


@looped()
def an_else_that_runs_where_nothing_broke(s, a: str):
    s += a
    for letter in s.gen("word", max_tokens=5):
        if letter == "e":
            result = "found"
            break
        s += letter
    else:
        result = "not found"
        s.gen("other", max_tokens=2)
    return result, s.gen("end", max_tokens=2)


@looped()
def an_else_of_a_while(s, a: str):
    s += a
    n = 0
    while n < 4:
        x = s.gen("x", max_tokens=2)
        n += 1
        if "e" in x:
            effect("break", n)
            break
        if "t" in x:
            continue
        s += "."
    else:
        effect("else", n)
        n = -n
    return n


@looped()
def a_return_in_a_round(s, a: str):
    s += a
    for word in s.gen("words", max_tokens=9).split():
        s += word
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            return word, x
    return "none"


@looped()
def a_return_in_an_inner_loop(s, a: str):
    s += a
    text = s.gen("words", max_tokens=9)
    n = 0
    for word in text.split():
        for letter in word:
            n += 1
            if letter == "7":
                return "seven", n
            if letter in "et":
                break
        else:
            s += word
    s += str(n)
    return "none", s.gen("end", max_tokens=2)


@looped()
def breaks_of_nested_loops(s, a: str):
    s += a
    text = s.gen("words", max_tokens=12)
    out = ""
    for word in text.split():
        for letter in word:
            if letter == "e":
                break
            if letter == "s":
                continue
            out += letter
        else:
            out += "|"
            continue
        if len(out) > 3:
            break
        out += "/"
    else:
        out += "."
    return out


def first_with(letter, text):
    for found in text.split(" "):
        if letter in found:
            return found
    return "none"


def count_until(s, letter):
    n = 0
    while n < 4:
        x = s.gen("x", max_tokens=2)
        if letter in x:
            return n
        n += 1
    return -1


@looped()
def a_return_in_a_loop_of_an_inner_function(s, a: str):
    def first(letter, text):
        for found in text.split(" "):
            if letter in found:
                return found
        return "none"

    s += a
    text = s.gen("words", max_tokens=9)
    one = first("e", text)
    two = first("t", text + " tt")
    s += one + two
    return one, two, s.gen("end", max_tokens=2)


@looped()
def a_return_in_a_loop_of_a_helper_with_the_state(s, a: str):
    s += a
    n = count_until(s, "e")
    m = count_until(s, "t") if n >= 0 else 7
    return n, m, s.gen("x", max_tokens=2)


@JittedFunction
def searched(s, text: str, letter: str):
    s += text
    for word in text.split():
        s += word
        x = s.gen("found", max_tokens=2)
        if letter in x:
            return word + x
        if "7" in x:
            return None
    return "nowhere"


@looped()
def a_program_that_returns_in_a_loop(s, a: str):
    s += a
    text = s.gen("words", max_tokens=9)
    one = searched(text, "e")
    two = searched.on_state(s, text, "t")
    return one, two, s.gen("end", max_tokens=2)


@looped()
def returns_in_both_arms_of_a_round(s, a: str):
    s += a
    for letter in s.gen("word", max_tokens=4):
        s += letter
        if letter == " ":
            continue
        if letter in "et":
            return "e or t"
        return letter
    return "empty"


@looped()
def break_in_a_with(s, a: str):
    n = 0
    with s.user():
        s += a
    while n < 4:
        with s.assistant():
            x = s.gen("x", max_tokens=2)
            if "e" in x:
                break
            s += "no e"
        with s.user():
            s += f"again {n}"
        n += 1
    return n, s.text()


@looped()
def continue_in_a_try_finally(s, a: str):
    s += a
    n = 0
    for letter in s.gen("word", max_tokens=4):
        try:
            if letter == "e":
                continue
            n += 1
        finally:
            effect("finally", letter)
    return n


@looped(never=("raise AssertionError",))
def code_behind_a_break_is_never_run(s, a: str):
    s += a
    n = 0
    while "e" not in s.gen("x", max_tokens=2):
        n += 1
        if n == 3:
            break
        if n > 3:
            raise AssertionError
    return n


@looped()
def a_match_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen("word", max_tokens=8):
        match letter:
            case "e":
                out += "E"
            case " " | ".":
                continue
            case "7":
                break
            case other:
                out += other
    return out


@looped()
def flags_set_and_asked(s, a: str):
    s += a
    inside = False
    out = ""
    for letter in s.gen("word", max_tokens=12):
        if letter in "et":
            inside = not inside
        elif inside:
            out += letter
    return out, inside


@looped()
def a_loop_that_returns_or_goes_on_for_ever(s, a: str):
    s += a
    n = 0
    while True:
        n += 1
        if "e" in s.gen("x", max_tokens=3, temperature=1.0):
            return n


@looped()
def loops_in_arms_and_arms_in_loops(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    if "e" in x:
        for letter in x:
            if letter == "e":
                s += "E"
                n += 1
            else:
                s.gen("other", max_tokens=1)
    elif "t" in x:
        while n < len(x):
            n += 2
            if s.gen("other", max_tokens=2) == "":
                break
    else:
        n = -1
    return n, s.gen("other", max_tokens=2)


@looped()
def an_early_return_in_an_arm_around_a_loop(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        for letter in x:
            if letter == "t":
                return "t"
        return "no t"
    for letter in x:
        s += letter
    return s.gen("end", max_tokens=2)


@looped()
def deep_nesting(s, a: str):
    s += a
    text = s.gen("text", max_tokens=7)
    n = 0
    for word in text.split():
        if "e" in word:
            for letter in word:
                if letter != "e":
                    k = 0
                    while k < 3:
                        k += 1
                        if k == 2 and letter == "t":
                            break
                        for other in text.split("e"):
                            if other:
                                n += 1
                                if n > 30:
                                    return "many"
        else:
            n += 1
    return n


@looped()
def five_loops_in_each_other(s, a: str):
    s += a
    x = s.gen("text", max_tokens=2)
    n = 0
    for b in x:
        for c in x:
            for d in x:
                for e in x:
                    for f in x:
                        n += 1
                        s += f
                    n += 1
    return n, s.gen("end", max_tokens=2)
