"""`try` around conversions of generated text, and what else may raise on one way."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

import sys

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import lookup, record
from tests.frontend.harness import effect


def reports(word):
    effect(word, repr(sys.exc_info()[1]))


@condition()
def a_number_or_a_default(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        n = -1
    s += f"{n}"
    return n, n + 1, s.gen("y", max_tokens=2)


@condition()
def a_number_in_bounds(s, a: str):
    s += a
    x = s.gen("x", regex=" ?[0-9]{1,3}%?")
    try:
        n = float(x.strip())
    except (ValueError, TypeError):
        s += "no number"
        n = 0.5
    return n, n > 3, s.gen("y", max_tokens=2)


@condition()
def returns_in_a_try(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        return int(x)
    except ValueError:
        return s.gen("y", max_tokens=3)


@condition()
def a_retry_with_a_fallback(s, a: str):
    s += a
    total = 0
    for turn in range(3):
        try:
            n = int(s.gen("n", regex="[0-9a-c]"))
        except ValueError:
            s += "again"
            continue
        total += n
        record(f"{turn}")
    return total, s.gen("y", max_tokens=2)


@condition()
def else_of_a_try(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        s += "bad"
        n = None
    else:
        s += "good"
        effect("good", n)
    return n, s.gen("y", max_tokens=2)


@condition(never=("except KeyError:", 'n = "key"', "except Exception:", 'n = "any"'))
def the_first_handler_that_fits(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except KeyError:
        n = "key"
    except ValueError:
        n = "value"
    except Exception:
        n = "any"
    return n, s.gen("y", max_tokens=2)


@condition()
def conversions_in_a_helper(s, a: str):
    def number(text, default=0):
        try:
            return int(text)
        except ValueError:
            return default

    s += a
    x = s.gen("x", regex="[0-9a-c]")
    y = s.gen("y", regex="[0-9a-c]")
    return number(x) + number(y, 10), number(a), s.gen("z", max_tokens=2)


@JittedFunction
def rated(s, text: str):
    s += text
    answer = s.gen("answer", regex="[0-9ab]")
    try:
        return int(answer)
    except ValueError:
        return 0


@condition()
def conversions_in_programs(s, a: str):
    total = rated(a) + rated(a + "!")
    if total > 5:
        s += "much"
    s += str(total)
    return total, s.gen("y", max_tokens=2)


@condition()
def what_is_done_with_the_number_may_raise(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = 10 // int(x)
    except ValueError:
        n = -1
    except ZeroDivisionError:
        n = -2
    return n, s.gen("y", max_tokens=2)


@condition()
def the_exception_is_looked_at(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError as error:
        n = str(error)
    return n, s.gen("y", max_tokens=2)


@condition("what exc_info() does is not known to the capture")
def the_exception_is_looked_at_by_a_function(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        reports("bad")
        n = 0
    return n, s.gen("y", max_tokens=2)


@condition()
def the_name_of_an_exception_that_nobody_reads(s, a: str):
    s += a
    error = "before"
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError as error:  # noqa: F811
        n = 0
    return n, s.gen("y", max_tokens=2)


@condition()
def two_numbers_in_one_try(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a]")
    y = s.gen("y", regex="[0-9a]")
    try:
        m = int(x)
        n = int(y)
    except ValueError:
        m = n = -1
    s += f"{m} {n}"
    return m, n, s.gen("z", max_tokens=2)


@condition()
def a_try_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]{2}")
    n = 0
    if "1" in x or "2" in x:
        try:
            n = int(x)
        except ValueError:
            s += "no number"
            return "none"
    else:
        s += "neither"
    return n, s.gen("y", max_tokens=2)


@condition()
def generations_and_a_conversion_in_a_try(s, a: str):
    s += a
    try:
        s += "How many? "
        x = s.gen("x", regex="[0-9a-c]")
        n = int(x)
    except ValueError:
        s += "None. "
        n = 0
    return n, s.gen("y", max_tokens=2)


@condition()
def a_conversion_of_an_argument(s, a: str):
    try:
        n = int(a)
    except ValueError:
        n = len(a)
    s += f"{n} "
    return n, s.gen("y", max_tokens=2)


@condition(never=("except ValueError:", 'n = "bad"'))
def shadowed_conversions(s, a: str):
    def int(text):  # noqa: A001
        return text + "!"

    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        n = "bad"
    return n, s.gen("y", max_tokens=2)


@condition(never=("except ValueError:", "n = -1"))
def a_function_that_may_be_tried_or_not(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    convert = float if len(a) > 2 else int
    try:
        n = convert("7")
    except ValueError:
        n = -1
    if x.isdigit():
        n = n + int(x)
    return n, lookup(x), s.gen("y", max_tokens=2)


@condition(never=("n = 1 / 0",))
def an_arm_that_raises_and_is_never_taken(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    n = 0
    if x == "zz":
        n = 1 / 0
    return n, s.gen("y", max_tokens=2)


@condition()
def an_assertion_about_generated_text(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    effect("asked")
    assert x != "0", f"no {x}"
    return x, s.gen("y", max_tokens=2)


@condition()
def a_retry_that_ends_with_success(s, a: str):
    s += a
    n = None
    for turn in range(3):
        x = s.gen("x", regex="[0-9a-f]")
        try:
            n = int(x)
            break
        except ValueError:
            s += f"again {turn}"
    else:
        s += "given up"
    return n, turn, s.gen("y", max_tokens=2)


@condition()
def a_retry_without_end(s, a: str):
    s += a
    turns = 0
    while True:
        turns += 1
        try:
            n = int(s.gen("x", regex="[0-9a-f]", temperature=1.0))
            found = n
            break
        except ValueError:
            if turns > 3:
                return "never"
            continue
    return found, turns, s.gen("y", max_tokens=2)


@condition()
def a_number_is_returned_under_its_name(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-f]")
    try:
        n = int(x)
        return n  # noqa: RET504
    except ValueError:
        pass
    return s.gen("y", max_tokens=2)


@condition()
def a_number_is_used_and_the_loop_left(s, a: str):
    s += a
    total = 0
    for _ in range(3):
        try:
            total = total + int(s.gen("x", regex="[0-9a-f]"))
            continue
        except ValueError:
            s += "no number"
        total = total - 1
    return total, s.gen("y", max_tokens=2)
