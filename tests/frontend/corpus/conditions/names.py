"""Names, closures and iterators that the ways through a condition bind, delete or advance."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


@condition()
def a_function_of_one_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        f = lambda t: t + "!"  # noqa: E731
    else:
        f = lambda t: t + "?"  # noqa: E731
    return f(x)


@condition()
def a_closure_over_what_an_arm_binds(s, a: str):
    s += a
    word = "one"

    def shown():
        return word + "!"

    x = s.gen("x", max_tokens=4)
    before = shown()
    if "e" in x:
        word = x
        inside = shown()
    else:
        inside = "none"
    s += shown()
    return before, inside, shown(), s.gen("y", max_tokens=2)


@condition()
def nonlocal_in_an_arm(s, a: str):
    s += a
    count = 0

    def bump():
        nonlocal count
        count += 1

    x = s.gen("x", max_tokens=4)
    if "e" in x:
        bump()
    bump()
    return count


@condition("differs between the ways through the condition or loop")
def an_iterator_is_advanced_in_an_arm(s, a: str):
    s += a
    words = iter(["one", "two", "three"])
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += next(words)
    s += next(words)
    return list(words)


@condition("differs between the ways through the condition or loop")
def an_iterator_of_a_closure_is_advanced_in_an_arm(s, a: str):
    def counter():
        numbers = iter([1, 2, 3])

        def take():
            return next(numbers)

        return take

    s += a
    take = counter()
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        take()
    return take()


@condition("differs between the ways through the condition or loop")
def an_iterator_under_another_one_is_advanced_in_an_arm(s, a: str):
    s += a
    words = iter(["one", "two", "three", "four"])
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        for number, word in zip([1, 2], words):
            s += f"{number}{word}"
    return list(words)


@condition("`next` of a generator that has a name can't be captured yet")
def a_generator_is_advanced_in_an_arm(s, a: str):
    def words():
        for word in ["one", "two", "three"]:
            effect(word)
            yield word

    s += a
    found = words()
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        y = next(found, None)
    return list(found)


@condition("differs between the ways through the condition or loop")
def a_generator_expression_is_used_up_in_an_arm(s, a: str):
    s += a
    found = (word + "!" for word in ["one", "two"])
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += "".join(found)
    return list(found)


@condition(stops="`next` of a generator that has a name can't be captured yet")
def iterators_of_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        words = iter(["one", "two"])
        s += next(words)
        s += "".join(word + "!" for word in words)
    else:
        pairs = zip(["a", "b"], map(str.upper, ["c", "d"]))
        s += f"{next(pairs)[1]}{sum(1 for _ in pairs)}"
    return s.gen("y", max_tokens=2)


@condition()
def unpacking_and_deleting_in_arms(s, a: str):
    s += a
    old = "old"
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        first, *rest = [x, "two", "three"]
        del old
        old = "bound again"
    else:
        first, rest = "none", ["four", "five"]
    s += first + rest[1]
    return first, rest, old


@condition()
def a_name_of_one_arm_is_read(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        y = "found"
    s += "on"
    return y if False else s.gen("z", max_tokens=2), y


@condition(never=("y = 'found'",))
def a_name_of_one_arm_is_deleted(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        y = "found"
    s += "on"
    del y
    return s.gen("z", max_tokens=2)


@condition()
def a_name_of_one_arm_is_read_by_an_inner_function(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        y = "found"

    def shown():
        return y

    s += "on"
    return shown()


@condition()
def a_name_that_one_arm_deletes(s, a: str):
    s += a
    y = "old"
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        del y
    s += "on"
    return [y for _ in range(1)]
