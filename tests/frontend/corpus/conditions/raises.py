"""`raise` on one way through a condition: the graph raises it there, and the rest belongs to the other way."""

import lmc
from lmc.frontend.function import JittedFunction
from lmc.ir.errors import InputError
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


class RefusedError(Exception):
    """A class without anything of its own."""


class RejectedError(RefusedError, ValueError):
    """One with two bases."""


class CountedError(Exception):
    """One whose constructor is seen."""

    def __init__(self, text: str, *, code: int = 1) -> None:
        effect("made", text, code)
        super().__init__(text, code)
        self.code = code


class Stop(BaseException):
    """One that no `except Exception` takes."""


KNOWN = RefusedError("always the same")


@lmc.tool
def stored(text: str) -> str:
    effect("stored", text)
    return text + "!"


@condition()
def a_class_of_pythons(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise ValueError(f"refused: {x}")
    s += "..."
    return s.gen("y", max_tokens=3)


@condition()
def a_class_alone(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise KeyError
    if "t" in x:
        raise RefusedError
    return s.gen("y", max_tokens=3)


@condition()
def several_arguments(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise OSError(2, x)
    if "t" in x:
        raise LookupError(a, 1, None, 2.5)
    return s.gen("y", max_tokens=3)


@condition()
def a_class_of_the_users(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise RefusedError(x, 7)
    if "t" in x:
        raise RejectedError(a)
    return s.gen("y", max_tokens=3)


@condition()
def a_constructor_of_the_users(s, a: str):
    s += a
    effect("before")
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        effect("bad", x)
        raise CountedError(x, code=3)
    effect("good")
    return s.gen("y", max_tokens=3)


@condition("comes from outside the program")
def an_object_of_the_users(s, a: str):
    s += a
    if "e" in s.gen("x", max_tokens=4):
        raise KNOWN
    return s.gen("y", max_tokens=3)


@condition()
def what_is_made_before_is_raised(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    error = ValueError(x, "first")
    other = RefusedError(x)
    if "e" in x:
        raise error
    if "t" in x:
        raise other
    return s.gen("y", max_tokens=3)


@condition()
def an_exception_that_is_chosen(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    kind = RefusedError if len(a) > 1 else RejectedError
    if "e" in x:
        raise kind(x)
    return s.gen("y", max_tokens=3)


@condition()
def a_base_exception(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise SystemExit(3)
    if "t" in x:
        raise Stop(x)
    return s.gen("y", max_tokens=3)


@condition()
def the_end_of_an_iteration(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise StopIteration(x)
    return s.gen("y", max_tokens=3)


@condition()
def an_error_of_lmc(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise InputError(f"no {x}", remedy="say something else")
    return s.gen("y", max_tokens=3)


@condition()
def from_none(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise ValueError(x) from None
    return s.gen("y", max_tokens=3)


@condition()
def from_another_one(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise RefusedError(x) from KeyError(a)
    if "t" in x:
        raise KeyError(x) from CountedError(a)
    if "i" in x:
        raise KeyError(x) from RefusedError
    return s.gen("y", max_tokens=3)


@condition()
def what_is_no_exception(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise x
    return s.gen("y", max_tokens=3)


@condition()
def writes_behind_it_do_not_happen(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    stored("first")
    if "e" in x:
        raise ValueError(x)
    stored(x)
    y = s.gen("y", max_tokens=3)
    if "t" in y:
        raise RefusedError(y)
    stored(y)
    return x + y


@condition()
def in_both_arms_of_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    y = "none"
    if "e" in x:
        if "t" in x:
            raise ValueError(x)
        else:  # noqa: RET506
            raise KeyError(x)
    else:
        y = s.gen("y", max_tokens=2)
    s += y
    return s.gen("z", max_tokens=2)


@condition(never=('effect("never")',))
def in_both_arms_before_the_end_of_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x or "o" in x:
        effect("one")
        if "t" in x:
            raise ValueError(x)
        else:  # noqa: RET506
            raise KeyError(x)
        effect("never")
    return s.gen("z", max_tokens=2)


@condition()
def deep_in_arms(s, a: str):
    s += a
    x = s.gen("x", max_tokens=6)
    n = 0
    if "e" in x:
        n += 1
        if "t" in x:
            n += 10
            if "i" in x:
                raise RefusedError(n)
            n += 100
        s += str(n)
    return n, s.gen("y", max_tokens=2)


@condition()
def a_return_on_the_other_way(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        return x
    raise RefusedError(x)


@condition()
def returns_and_raises(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        if "t" in x:
            return "early"
        raise ValueError(x)
    elif "i" in x:  # noqa: RET506
        raise KeyError(x)
    elif "o" in x:
        return "o"
    s += x
    return s.gen("y", max_tokens=3)


@condition()
def names_and_lists_of_the_way_that_raises(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    found = ["first"]
    kept = found
    if "e" in x:
        found.append(x)
        found = [*found, "more"]
        late = "bound"
        raise ValueError(found, late)
    found.append("on")
    return found, kept, s.gen("y", max_tokens=2)


@condition()
def generations_of_the_way_that_raises(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4, temperature=1.0)
    if "e" in x:
        s += "why?"
        raise RefusedError(s.gen("y", max_tokens=3, temperature=1.0))
    return s.gen("y", max_tokens=3, temperature=1.0)


@condition()
def in_a_block(s, a: str):
    with s.user():
        s += a
    with s.assistant():
        x = s.gen("x", max_tokens=4)
        if "e" in x:
            raise ValueError(x)
        s += "on"
    return s.gen("y", max_tokens=3)


@condition()
def out_of_a_block_in_an_arm(s, a: str):
    with s.user():
        s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        with s.user():
            s += "no"
            raise ValueError(x)
    with s.user():
        s += "yes"
    return s.gen("y", max_tokens=3)


def checked(s, text: str) -> str:
    if "e" in text:
        raise ValueError(f"not {text}")
    s += "fine"
    return text.upper()


def refuse(s, text: str) -> None:
    effect("refuse")
    raise RefusedError(text)


def refuse_silently(_s, text: str) -> None:
    raise RefusedError(text)


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


@condition("by a function that it calls")
def by_a_function_that_always_does_in_an_expression(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "t" in x:
        s += "e"
        y = refuse(s, x) if "e" in x else "none"
    else:
        y = "t"
    return y, s.gen("y", max_tokens=2)


@condition("may raise inside a `try`")
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


@condition("may raise inside a `try`")
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


@condition("more than its arguments")
def an_exception_that_holds_more(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        raise AttributeError("bad", name="x")
    return s.gen("y", max_tokens=2)


@condition()
def in_rounds_whose_number_is_known(s, a: str):
    s += a
    for index in range(3):
        x = s.gen("x", max_tokens=2)
        if "e" in x:
            raise ValueError(index, x)
        effect("good", index)
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


@condition("may raise inside a `try`", never=('effect("no")',))
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


@condition("while another one is handled")
def a_handler_that_calls_what_raises(s, a: str):
    s += a
    x = s.gen("x", regex="[0-9a-c]")
    try:
        n = int(x)
    except ValueError:
        n = 0
        refuse(s, x)
    return n, s.gen("z", max_tokens=2)


@condition("while another one is handled")
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


@condition("may raise inside a `try`")
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
