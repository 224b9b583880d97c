"""Lists whose length only a run decides are the lists that plain Python has."""

# Programs as users write them.
# ruff: noqa: B007, E741, PERF401, RUF005, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false

import json

import pytest

from lmc import jit, tool
from tests.frontend.harness import check, check_whole, effect


@jit
def grows_in_a_loop(s, q: str):
    s += q
    out = []
    while True:
        x = s.gen("x", max_tokens=3)
        out.append(x)
        if "a" in x or len(out) > 5:
            break
    return out, len(out), "-".join(out)


@jit
def grows_in_arms(s, q: str):
    s += q
    out = ["first"]
    for i in range(4):
        x = s.gen("x", max_tokens=3)
        if "e" in x:
            out.append(x)
        elif "t" in x:
            out += [x, str(i)]
    for y in out:
        s += y + s.gen(max_tokens=1)
    return sorted(out), out[-1], out


@jit
def swaps_and_keeps_the_best(s, q: str):
    a, b = q, "y"
    best = (0, "")
    n = 0
    while "k" not in b and n < 5:
        s += a
        a, b = b, s.gen("b", max_tokens=3)
        n += 1
        if len(b) > best[0]:
            best = (len(b), b)
    return a, b, best, n


@jit
def has_two_names(s, q: str):
    s += q
    one = []
    two = one
    d = {"n": 0, "last": ""}
    while len(one) < 4:
        x = s.gen("x", max_tokens=3)
        if "s" in x:
            return one, d
        two.append((x, len(one)))
        d["n"] += 1
        d["last"] = x
    one.append(("end", 0))
    return two, d, one == two, q in d["last"]


@jit
def takes_in_others(s, q: str):
    s += q
    words = s.gen("x", max_tokens=6).split("e")
    out = [w.upper() for w in ["a", "b"]]
    for i, w in enumerate(["p", "q"]):
        out.extend(words)
        if i == 1 and "t" in q:
            out = []
    notes = [*words, "x"]
    for w in words:
        if not w:
            continue
        effect(w)
        notes.append(f"{w}!")
    return out, notes, len(notes), list(words)


@jit
def is_bound_anew(s, q: str):
    s += q
    h = []
    seen = ["z"]
    n = 0
    while n < 4 and "k" not in q:
        x = s.gen("x", max_tokens=3)
        h = h + [x]
        if "e" in x:
            seen = [*seen, x]
            if len(seen) > 2:
                break
        n += 1
    return h, seen, [len(w) for w in ["a"]]


@jit
def changes_an_item_and_grows(s, q: str):
    s += q
    l = ["a", "b"]
    k = l
    i = 0
    while True:
        x = s.gen(max_tokens=2)
        l[0] = x
        if "e" in x:
            k.append(x)
        i += 1
        if i > 3:
            return l, k[0], l is k


@jit
def compares_with_python(s, q: str):
    s += q
    out = []
    for word in s.gen("x", max_tokens=6).split("e"):
        out.append(word)
    return sorted([out, ["a"]], key=len)


@jit
def takes_one_out(s, q: str):
    s += q
    out = ["a", *s.gen("x", max_tokens=6).split("e")]
    return out.pop(), out


@jit
def keeps_lists(s, q: str):
    s += q
    out = []
    for word in s.gen("x", max_tokens=6).split("e"):
        out.append([word])
    return out


@jit
def keeps_records(s, q: str):
    s += q
    out = []
    while len(out) < 3:
        x = s.gen("x", max_tokens=3)
        out.append({"text": x, "tags": [x, (q, len(out))]})
        if "e" in x:
            break
    s += "/".join(record["text"] for record in out)
    return out, [record["tags"][0] for record in out], s.gen(max_tokens=2)


@jit
def asks_a_method_for_its_length(s, q: str):
    s += q
    out = []
    length = out.__len__
    for word in s.gen("x", max_tokens=6).split("e"):
        out.append(word)
    return length()


@jit
def keeps_one_record_in_each_round(s, q: str):
    s += q
    out = []
    record = {"text": ""}
    while len(out) < 3:
        record["text"] = s.gen("x", max_tokens=3)
        out.append(record)
        if "e" in record["text"]:
            break
    return out


@jit
def changes_a_record_later(s, q: str):
    s += q
    out = []
    for word in s.gen("x", max_tokens=6).split("e"):
        record = {"text": word}
        out.append(record)
        if "t" in word:
            record["text"] = "t"
    last = {"text": "last"}
    out.append(last)
    out.append({"text": s.gen(max_tokens=1)})
    if "e" in out[-1]["text"]:
        out.append({})
    last["text"] = "changed"
    return out


@jit
def keeps_states(s, q: str):
    s += q
    out = []
    for word in s.gen("x", max_tokens=6).split("e"):
        out.append(s.copy())
    return len(out)


WHOLE = (
    grows_in_a_loop,
    grows_in_arms,
    swaps_and_keeps_the_best,
    has_two_names,
    keeps_one_record_in_each_round,
    takes_in_others,
    is_bound_anew,
    changes_an_item_and_grows,
    takes_one_out,
    compares_with_python,
    keeps_lists,
    keeps_records,
)
INPUTS = ("hello", "x", "abc", "what is this", "t", "u", "k")


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.name)
def test_every_length_is_that_of_plain_python(program):
    check_whole(program, INPUTS)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (asks_a_method_for_its_length, "the method '__len__' of a list"),
        (keeps_states, "can't become one value"),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_what_has_no_counterpart_ends_the_capture(program, cause):
    for text in INPUTS:
        (found,) = check(program, (text,)).breaks
        assert cause in found.cause


def test_a_record_that_changes_after_it_was_kept_is_seen_to():
    for text in INPUTS:
        check(changes_a_record_later, (text,))


@jit
def keeps_what_an_arm_changed(s, q: str):
    s += q
    record = {"text": "first"}
    out: list[object] = [1]
    x = s.gen("x", max_tokens=3)
    if "e" in x:
        record["text"] = x
        out.append(record)
    elif "t" in x:
        out.append([record["text"], "t"])
    else:
        record["text"] = "other"
    return out, record


def test_a_record_that_an_arm_changes_and_keeps_is_what_it_became():
    for text in INPUTS:
        check(keeps_what_an_arm_changed, (text,))


@jit
def formats_lists(s, q: str):
    s += q
    x = s.gen("x", max_tokens=2)
    return f"{[x, q]!r}", f"{(x,)!r:>9}", f"{[x]!s:>12}", f"{[x]}", f"{ {'a': x}!a}", f"{[x]:>5}" if "e" in q else ""


def test_lists_in_texts_are_printed_as_python_does():
    for text in INPUTS:
        assert not check(formats_lists, (text,)).breaks


@tool(effect="pure")
def size(value) -> int:
    return len(json.dumps(value))


@jit
def hands_them_over(s, q: str):
    s += q
    first = {"text": s.gen("f", max_tokens=2)}
    out = [first]
    x = s.gen("x", max_tokens=3)
    if "e" in x or "t" in x:
        out.append({"text": x})
    return out, first, size(out), size(first), json.dumps(out), effect([*out]), len(out)


@jit
def hands_over_what_may_be_kept(s, q: str):
    s += q
    out = ["a"]
    if "e" in s.gen("x", max_tokens=3):
        out.append("e")
    effect(out)
    return out


def test_functions_are_given_lists_that_grow_as_python_gives_them():
    for text in INPUTS:
        (found,) = check(hands_over_what_may_be_kept, (text,)).breaks
        assert "might change or keep" in found.cause
        check(hands_them_over, (text,))
