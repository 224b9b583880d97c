"""Lists, dicts, sets, iterators and closures that the ways through a condition change or hand on."""

# Programs as users write them.
# ruff: noqa: B905, C420, F841, PLE0643, PLW0120, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOptionalIterable=false

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.corpus.host_functions import Item, details


@condition()
def an_item_is_replaced(s, a: str):
    s += a
    xs = ["one", "two"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs[0] = x
    else:
        xs[-1] = s.gen("y", max_tokens=2)
    s += ",".join(xs)
    return xs, s.gen("z", max_tokens=3)


@condition()
def a_list_of_an_arm_alone(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        parts = []
        parts.append("one")
        parts.append(s.gen("y", max_tokens=2))
        s += "+".join(parts)
    else:
        found = {}
        for letter in ["t", "o"]:
            found[letter] = letter in x
        s += f"{found}"
    return s.gen("z", max_tokens=3)


@condition()
def a_list_grows_in_one_arm(s, a: str):
    s += a
    xs = ["one"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs.append(x)
    return xs, s.gen("z", max_tokens=3)


@condition()
def a_list_of_objects_grows_in_one_arm(s, a: str):
    x = s.gen("x", max_tokens=4)
    xs = [details(x)]
    if "e" in x:
        xs.append(details(a))
    return xs, s.gen("z", max_tokens=3)


@condition()
def a_list_grows_in_both_arms(s, a: str):
    s += a
    xs = ["one"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs.append(x)
        xs.reverse()
    else:
        xs += ["none"]
    return xs, s.gen("z", max_tokens=3), len(xs)


@condition()
def aliases_of_an_older_list(s, a: str):
    s += a
    xs = ["one", "two"]
    ys = xs
    zs = [xs, ["three"]]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        ys[0] = "changed"
    else:
        zs[0][1] = x
        zs[1][0] = "also"
    xs[1] = f"{xs[1]}!"
    return xs, ys, zs, xs is ys


@condition()
def a_new_list_in_each_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs = ["one", x]
    else:
        xs = [s.gen("y", max_tokens=2), "none"]
    xs.append("end")
    s += ",".join(xs)
    return xs, s.gen("z", max_tokens=3)


@condition()
def a_new_dict_in_each_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d = {"kind": "e", "parts": [x, x]}
    else:
        d = {"kind": "none", "parts": ["no", "part"]}
    d["more"] = d["kind"]
    s += d["parts"][1]
    return d


@condition()
def new_lists_of_other_lengths(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs = [x]
    else:
        xs = []
    s += " and "
    return xs, s.gen("z", max_tokens=2)


@condition()
def one_new_list_twice_or_two(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs = ys = ["both"]
    else:
        xs = ["one"]
        ys = ["two"]
    xs.append("end")
    return xs, ys


@condition()
def one_new_list_under_two_names(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs = ys = ["both"]
    else:
        xs = ys = [x]
    xs.append("end")
    return xs, ys, xs is ys


@condition()
def a_new_list_in_an_old_one(s, a: str):
    s += a
    xs = []
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        inner = ["e"]
        xs.append(inner)
    else:
        inner = ["none"]
    inner.append("end")
    return xs, inner


@condition()
def new_lists_in_an_old_one(s, a: str):
    s += a
    xs = []
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        inner = ["e"]
        xs.append(inner)
    else:
        inner = ["none"]
        xs.append(inner)
    inner.append("end")
    return xs, inner


@condition()
def one_of_two_older_lists(s, a: str):
    s += a
    xs, ys = ["one"], ["two"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        zs = xs
    else:
        zs = ys
    zs.append("end")
    return xs, ys


@condition()
def an_older_list_or_a_new_one(s, a: str):
    s += a
    xs = ["one"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        zs = xs
    else:
        zs = ["one"]
    zs.append("end")
    return xs


@condition()
def a_function_in_an_older_list(s, a: str):
    s += a
    xs = [None, "two"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs[0] = lambda: 1
    return xs[0] is None, xs[1]


@condition()
def what_a_comprehension_makes_of_merged_values(s, a: str):
    s += a
    xs = ["one", "two", "three"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs[1] = x
        n = 2
    else:
        xs[1] = "other"
        n = 3
    return [w + str(n) for w in xs], {w: n for w in ["k"]}, [w for w in xs if w is not None], len(xs)


@condition()
def dicts_are_changed_in_arms(s, a: str):
    s += a
    d = {"a": 1, "b": {"c": "deep"}}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d["a"] = x
        d["b"]["c"] = 3
    else:
        d.update(a=None)
    s += f"{d}"
    return d, d["b"], s.gen("y", max_tokens=2)


@condition()
def a_dict_gets_a_key_in_one_arm(s, a: str):
    s += a
    d = {"a": 1}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d["e"] = x
    s += f"{d}"
    return d


@condition()
def keys_in_another_order(s, a: str):
    s += a
    d = {}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d["a"] = 1
        d["b"] = 2
    else:
        d["b"] = 2
        d["a"] = 1
    s += f"{d}"
    return d


@condition()
def keys_of_another_type(s, a: str):
    s += a
    d = {}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d[1] = "one"
    else:
        d[True] = "one"
    s += f"{d}"
    return d


@condition()
def sets_in_arms(s, a: str):
    s += a
    found = {1, 2}
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        found.add(3)
    return 3 in found, len(found)


@condition()
def an_instance_made_in_an_arm(s, a: str):
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        item = Item(x)
    else:
        item = Item("none", 3)
    s += f"{item}"
    return item.title, item.count, s.gen("y", max_tokens=2)


@condition()
def a_generator_made_in_an_arm(s, a: str):
    def words(text):
        def inner():
            yield text
            yield text + "!"

        return inner()

    s += a
    found = "e" in s.gen("x", max_tokens=4)
    d = None
    if found:
        d = words(s.gen("y", max_tokens=2))
    if found:
        for word in d:
            s += word
    return found, s.gen("z", max_tokens=2)
