"""`raise` in a `try`, and in handlers of conversions."""

# Programs as users write them.
# pyright: reportGeneralTypeIssues=false

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.conditions.errors import CountedError, RefusedError, RejectedError, refuse, refuse_silently
from tests.frontend.harness import effect


@condition()
def what_may_be_caught(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        if "e" in x:
            raise ValueError(x)
        n = 1
    except ValueError:
        n = 2
    return n, s.gen("y", max_tokens=2)


@condition()
def through_a_finally(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        if "e" in x:
            raise ValueError(x)
    finally:
        effect("finally")
    return s.gen("y", max_tokens=2)


@condition()
def a_list_of_the_programs_own(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    parts = [x, a]
    if "e" in x:
        raise ValueError(parts, {"a": x})
    return s.gen("y", max_tokens=2)


@condition()
def an_exception_that_holds_more(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise AttributeError("bad", name="x")
    return s.gen("y", max_tokens=2)


@condition(never=("n = 2",))
def what_no_handler_takes(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        if "e" in x:
            raise KeyError(x)
        if "t" in x:
            raise RefusedError(x)
        n = 1
    except (ValueError, IndexError):
        n = 2
    return n, s.gen("y", max_tokens=2)


@condition(never=("n = 3",))
def what_no_handler_takes_by_a_function(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    n = 0
    try:
        if "o" in x:
            n = 1
            refuse_silently(s, x)
        n += 2
    except LookupError:
        n = 3
    return n, s.gen("y", max_tokens=2)


@condition(never=('effect("no")',))
def what_one_of_the_handlers_around_may_take(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        try:
            if "e" in x:
                raise RejectedError(x)
        except KeyError:
            effect("no")
        effect("on")
    except ValueError:
        effect("caught")
    return s.gen("y", max_tokens=2)


@condition()
def a_number_by_which_something_is_divided(s, a: str):
    s += a
    x = s.gen("x", regex="[0-3a-c]")
    try:
        n = 10 // int(x)
    except ValueError:
        n = -1
    return n, s.gen("y", max_tokens=2)


@condition()
def an_item_in_a_block_that_catches_values(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    try:
        n = int(x.split("e")[1])
    except ValueError:
        n = -1
    return n, s.gen("y", max_tokens=2)


@condition()
def an_exception_of_a_number_that_is_none(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        raise RefusedError(f"not a number: {x}")  # noqa: B904
    return n, s.gen("y", max_tokens=2)


@condition()
def an_exception_from_that_of_a_number(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = float(x)
    except (TypeError, ValueError) as error:
        if len(a) > 1:
            raise KeyError(x) from None
        raise CountedError(f"bad: {error}") from error
    return n, s.gen("y", max_tokens=2)


@condition()
def the_exception_of_a_number_again(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError as error:
        effect("bad", x)
        if len(a) > 1:
            raise error
        raise
    return n, s.gen("y", max_tokens=2)


@condition()
def the_exception_of_the_second_number(s, a: str):
    s += a
    x, y = s.gen("x", regex="[0-9a-c]"), s.gen("y", regex="[0-9a-c]")
    try:
        n = int(x) + int(y)
    except ValueError as error:
        raise RefusedError(x, y, str(error), repr(error)) from error
    else:
        effect("both")
    return n, s.gen("z", max_tokens=2)


@condition()
def a_handler_that_raises_in_an_inner_function(s, a: str):
    def number(text):
        try:
            return int(text)
        except ValueError:
            raise RefusedError(text) from None

    s += a
    n = number(s.gen("x", regex="[0-9a-c]"))
    if n > 4:
        n += number(s.gen("y", regex="[0-9a-c]"))
    return n, s.gen("z", max_tokens=2)


@condition()
def a_handler_that_calls_what_raises(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        n = 0
        refuse(s, x)
    return n, s.gen("z", max_tokens=2)


@condition()
def a_handler_in_a_handler_that_raises(s, a: str):
    s += a
    x, y = s.gen("x", regex="[0-9a-c]"), s.gen("y", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        try:
            n = int(y)
        except ValueError:
            raise RefusedError(x, y)  # noqa: B904
    return n, s.gen("z", max_tokens=2)


@condition()
def a_number_that_is_refused_and_caught(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
        if n > 5:
            raise ValueError("too large")
    except ValueError:
        n = 0
    return n, s.gen("z", max_tokens=2)


@condition()
def what_is_no_exception_is_caught(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    try:
        if "e" in x:
            raise "a text"  # noqa: B016
        n = 1
    except TypeError:
        n = 2
    return n, s.gen("y", max_tokens=2)


@condition(never=("raise RefusedError(w)",))
def asked_before_an_error_in_a_round_of_two(s, a: str):
    s += a
    for w in ("e", "t"):
        x = s.gen("x", regex="[0-9e]", temperature=1.0)
        try:
            c = float(x)
        except ValueError:
            if w in s.gen("y", max_tokens=2, temperature=1.0):
                s.gen("v", max_tokens=2)
                raise RefusedError(w) from None
            c = -1.0
        s += f"{c}"
    return s.text()


@condition()
def asked_in_a_handler_that_returns_or_raises(s, a: str):
    s += a
    t = s.gen("h", max_tokens=2, temperature=1.0)
    x = s.gen("x", regex="[0-9e]", temperature=1.0)

    def parsed(q):
        try:
            n = float(x)
        except Exception as error:
            if "e" in t:
                effect("turned", q)
                found = q[::-1]
                if "e" in found:
                    return found
                s.gen("g", max_tokens=2, temperature=1.0)
            raise RefusedError(f"{error}") from error
        return str(n)

    r = parsed(a)
    return r, s.gen("g", max_tokens=4, temperature=1.0)


@condition()
def a_loop_in_a_handler_left_by_errors(s, a: str):
    words = a.split()

    def checked(w):
        if w == a:
            raise KeyError(a) from None
        return s.gen("h", max_tokens=2, temperature=1.0)

    x = s.gen("n", regex="[0-9e]", temperature=1.0)
    try:
        n = int(x)
    except ValueError:
        n = 0
        for w in words[:3]:
            n += len(checked(w))
    return n
