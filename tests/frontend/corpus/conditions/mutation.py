"""Lists and dicts that arms change, under several names and in each other."""

# Programs as users write them.
# ruff: noqa: B006, B905, C420, F841, PLE0643, PLW0120, PLW0603, PLW2901, RET505, RUF100, SIM108
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false

from tests.frontend.corpus.conditions.cases import condition
from tests.frontend.harness import effect


@condition()
def lists_in_lists_are_changed(s, a: str):
    s += a
    grid = [["a", "b"], ["c", "d"]]
    row = grid[1]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        grid[0][1] = x
        row[0] = "row"
    else:
        grid[0], grid[1] = grid[1], grid[0]
    s += grid[0][0] + row[0]
    return grid, row, s.gen("y", max_tokens=2)


@condition()
def a_list_is_sorted_and_reversed_in_arms(s, a: str):
    s += a
    xs = ["c", "a", "b"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        xs.sort()
    elif "t" in x:
        xs.reverse()
    else:
        xs[:] = [x, "p", "q"]
    s += "".join(xs)
    return xs, xs[0], s.gen("y", max_tokens=2)


@condition()
def a_list_is_popped_in_both_arms(s, a: str):
    s += a
    xs = ["a", "b", "c"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        last = xs.pop()
    else:
        last = xs.pop(0)
        xs.insert(0, last + "!")
        del xs[1]
    s += last
    return xs, last, s.gen("y", max_tokens=2)


@condition()
def messages_are_collected_in_arms(s, a: str):
    s += a
    notes = []
    for letter in ["e", "t", "a"]:
        x = s.gen("x", max_tokens=3)
        if letter in x:
            notes.append(letter)
            s += "again"
        else:
            notes.append(x)
    return notes, "|".join(notes), s.gen("y", max_tokens=2)


@condition()
def a_list_that_grows_now_and_then(s, a: str):
    s += a
    notes = []
    for letter in ["e", "t", "a"]:
        x = s.gen("x", max_tokens=3)
        if letter in x:
            notes.append(letter + x)
    s += ",".join(notes)
    return notes, len(notes), s.gen("y", max_tokens=2)


@condition()
def a_dict_of_lists(s, a: str):
    s += a
    found = {"yes": [], "no": []}
    for letter in ["e", "t"]:
        x = s.gen("x", max_tokens=3)
        found["yes" if letter == "e" else "no"].append(x)
    if "e" in found["yes"][0]:
        found["no"][0] = "changed"
    s += found["no"][0]
    return found, s.gen("y", max_tokens=2)


@condition()
def counting_in_a_dict(s, a: str):
    s += a
    counts = {"e": 0, "other": 0}
    for _ in range(3):
        x = s.gen("x", max_tokens=3, temperature=1.0)
        if "e" in x:
            counts["e"] += 1
        else:
            counts["other"] += 1
    s += f"{counts['e']} of {sum(counts.values())}"
    return counts, s.gen("y", max_tokens=2)


@condition()
def aliases_that_part(s, a: str):
    s += a
    xs = ["one", "two"]
    ys = xs
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        ys[0] = "both"
    else:
        xs[1] = "both too"
    ys = list(ys)
    ys.append("ys alone")
    s += xs[0]
    return xs, ys, xs is ys


@condition()
def an_alias_of_one_arm(s, a: str):
    s += a
    xs = ["one", "two"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        ys = xs
    else:
        ys = list(xs)
    ys[0] = "changed"
    return xs, ys


@condition()
def tuples_of_lists(s, a: str):
    s += a
    pair = (["p"], {"k": "v"})
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        pair[0][0] = x
        pair = (pair[0], {"k": "new"})
    else:
        pair = (pair[0], {"k": x})
    s += pair[0][0] + pair[1]["k"]
    return pair, s.gen("y", max_tokens=2)


@condition()
def a_list_is_handed_to_a_function_in_an_arm(s, a: str):
    def fill(target, value):
        target[0] = value
        return target

    s += a
    xs = ["empty"]
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        same = fill(xs, x) is xs
    else:
        same = fill(["other"], x) is xs
    effect(same)
    return xs, same, s.gen("y", max_tokens=2)


@condition()
def a_dict_that_is_replaced_in_one_arm(s, a: str):
    s += a
    d = {"k": "old"}
    e = d
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        d = {"k": x}
    d["k"] = d["k"] + "!"
    return d, e
