"""Lists, dicts, sets, tuples and aliases of them that rounds change, read or make."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from tests.frontend.corpus.host_functions import Item, find
from tests.frontend.corpus.loops.cases import looped


@looped()
def an_item_is_replaced_in_rounds(s, a: str):
    s += a
    xs = ["one", "two", "three"]
    for letter in s.gen("x", max_tokens=4):
        xs[0] = letter
        if letter == "e":
            xs[-1] = xs[0] + xs[1]
    s += ",".join(xs)
    return xs, s.gen("y", max_tokens=2)


@looped()
def items_rotate(s, a: str):
    s += a
    xs = ["a", "b", "c"]
    for letter in s.gen("x", max_tokens=4):
        xs[0], xs[1], xs[2] = xs[1], xs[2], xs[0] + letter
        xs.reverse()
    return xs


@looped()
def a_queue_of_the_same_length(s, a: str):
    s += a
    xs = ["a", "b", "c"]
    for letter in s.gen("x", max_tokens=5):
        xs.append(letter)
        xs.pop(0)
    return xs, "".join(xs)


@looped()
def a_dict_counts(s, a: str):
    s += a
    counts = {"e": 0, "t": 0, "other": 0}
    for letter in s.gen("x", max_tokens=12):
        if letter == "e":
            counts["e"] += 1
        elif letter == "t":
            counts["t"] += 1
        else:
            counts["other"] += 1
    s += f"{counts}"
    return counts, counts["e"] > counts["t"]


@looped()
def a_dict_keeps_the_last(s, a: str):
    s += a
    state = {"last": None, "n": 0, "text": ""}
    while state["n"] < 4 and state["last"] != "e":
        state["last"] = s.gen("x", max_tokens=1, temperature=1.0)
        state["n"] += 1
        state["text"] += state["last"]
    return state


@looped()
def nested_containers_are_changed(s, a: str):
    s += a
    d = {"a": [1, "x"], "b": {"c": 0}}
    for letter in s.gen("x", max_tokens=4):
        d["a"][1] = letter
        d["b"]["c"] += len(d["a"][1])
    return d


@looped()
def two_names_for_one_list(s, a: str):
    s += a
    xs = ["one", "two"]
    ys = xs
    zs = [xs, ys]
    for letter in s.gen("x", max_tokens=3):
        ys[0] = letter
        zs[1][1] = xs[0] + xs[1]
    return xs, ys, zs, xs is ys, zs[0] is xs


@looped()
def a_name_that_moves_between_lists(s, a: str):
    s += a
    xs, ys = ["one"], ["two"]
    zs = xs
    for letter in s.gen("x", max_tokens=3):
        zs[0] = letter
        zs = ys
    return xs, ys, zs


@looped()
def a_list_of_a_round_alone(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=4):
        parts = []
        parts.append(letter)
        if letter != "e":
            parts.append("!")
        parts += [s.gen("y", max_tokens=1)]
        out += "+".join(parts)
    return out


@looped()
def a_new_list_in_each_round(s, a: str):
    s += a
    xs = ["none", 0]
    for letter in s.gen("x", max_tokens=4):
        xs = [letter, xs[1] + 1]
    return xs


@looped()
def a_list_grows(s, a: str):
    s += a
    xs = []
    for letter in s.gen("x", max_tokens=4):
        xs.append(letter)
    return xs


@looped()
def a_list_grows_in_some_rounds(s, a: str):
    s += a
    xs = ["first"]
    for letter in s.gen("x", max_tokens=5):
        if letter == "e":
            xs.append(s.gen("y", max_tokens=2))
    return xs, len(xs)


@looped()
def a_dict_gets_entries(s, a: str):
    s += a
    d = {}
    for letter in s.gen("x", max_tokens=4):
        d[letter] = d.get(letter, 0) + 1
    return d


@looped()
def a_set_grows(s, a: str):
    s += a
    seen = set()
    for letter in s.gen("x", max_tokens=4):
        seen.add(letter)
    return len(seen)


@looped()
def a_stack_that_is_empty_after_each_round(s, a: str):
    s += a
    stack = []
    out = ""
    for letter in s.gen("x", max_tokens=4):
        stack.append(letter)
        stack.append("!")
        while stack:
            out += stack.pop()
    return out, stack


@looped()
def comprehensions_in_rounds(s, a: str):
    s += a
    out = ""
    xs = ["one", "two"]
    for letter in s.gen("x", max_tokens=4):
        xs = xs if letter == "e" else xs
        out += "".join([x[0] + letter for x in xs])
        out += str({x: letter for x in xs}["one"])
    return out


@looped()
def a_filter_in_rounds(s, a: str):
    s += a
    out = 0
    for letter in s.gen("x", max_tokens=4):
        out += sum(1 for x in ["e", "t"] if x == letter)
    return out


@looped()
def a_comprehension_over_an_unknown_list_in_rounds(s, a: str):
    s += a
    out = ""
    for word in s.gen("x", max_tokens=9).split():
        out += "-".join([letter.upper() for letter in word])
    return out


@looped()
def instances_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=3):
        item = Item(letter, 2)
        s += f"{item}"
        out += item.title
    return out


@looped()
def a_list_of_a_tool_in_each_round(s, a: str):
    s += a
    words = []
    n = 0
    while n < 3 and "".join(words) != "eE":
        words = find(s.gen("x", max_tokens=3))
        n += 1
        s += words[0]
    return words, n


@looped()
def an_index_into_an_own_list(s, a: str):
    s += a
    xs = ["a", "b", "c"]
    index = 0
    out = ""
    for letter in s.gen("x", max_tokens=4):
        index = (index + 1) % 3
        out += xs[0]
    return out, index


@looped()
def an_index_that_rounds_count_into_an_own_list(s, a: str):
    s += a
    xs = ["a", "b", "c"]
    index = 0
    out = ""
    while index < 3 and "e" not in s.gen("x", max_tokens=2):
        out += xs[index]
        index += 1
    return out, index


@looped()
def a_default_dict_of_flags(s, a: str):
    s += a
    d = dict(seen=False, word="")
    for word in s.gen("x", max_tokens=9).split():
        if not d["seen"]:
            d.update(seen="e" in word, word=word)
    return d["seen"], d["word"]


@looped()
def lists_of_the_same_length_are_sorted(s, a: str):
    s += a
    xs = ["b", "a"]
    for letter in s.gen("x", max_tokens=3):
        xs[0] = letter
        xs[:] = [xs[1], xs[0]]
    return xs


@looped()
def a_name_of_what_a_loop_goes_over_is_bound_anew(s, a: str):
    s += a
    xs = s.gen("x", max_tokens=4).split("e")
    out = []
    for x in xs:
        out.append(x)
        if len(xs) < 4:
            xs.append("n" + s.gen("y", max_tokens=1))
        xs = [x, "m"]
    return out, xs


@looped()
def the_names_of_a_form_that_is_changed_in_rounds(s, a: str):
    s += a
    form = {"name": s.gen("name", max_tokens=2), "city": s.gen("city", max_tokens=2)}
    wrong = [field for field, value in form.items() if "e" not in value]
    rounds = 0
    while wrong and rounds < 3:
        again = {}
        for field in wrong:
            again[field] = s.gen(field, max_tokens=2, temperature=1.0)
        form |= again
        wrong = [field for field, value in form.items() if "e" not in value]
        rounds += 1
    return form, wrong, s["name"]


@looped()
def a_container_of_a_tuple_is_changed(s, a: str):
    s += a
    first, second = {}, {"p": "k"}
    for letter in s.gen("x", max_tokens=4):
        (first, second)[s.gen(dtype=bool, temperature=1.0)][letter] = a
    return first, second


@looped()
def a_view_of_a_known_dict_is_put_into_a_set(s, a: str):
    s += a
    d = {"p": a}
    seen, pairs = set(), []
    while len(pairs) < 4 and "e" in s.gen("x", max_tokens=2, temperature=1.0):
        seen.update(d.keys())
        pairs.extend(d.items())
    return sorted(seen), pairs


@looped()
def a_text_put_together_and_the_letters_of_the_last_one(s, a: str):
    last, letters = f"{a}!", None
    for _ in s.gen("x", max_tokens=4):
        s += last
        last = s.gen("y", max_tokens=3)
        letters = list(last)
    return last, letters


@looped()
def words_take_the_place_of_a_text_put_together(s, a: str):
    last, letters = "{}:{:>4}".format(a, a.find("e")), None
    for last in s.gen("x", max_tokens=9).split():
        letters = list(last)
    return last, letters
