"""`raise` on one way through a condition: the graph raises it there, and the rest belongs to the other way."""

from lmc.ir.errors import InputError
from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.conditions.errors import CountedError, RefusedError, RejectedError, Stop, stored
from tests.frontend.harness import effect

KNOWN = RefusedError("always the same")


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
