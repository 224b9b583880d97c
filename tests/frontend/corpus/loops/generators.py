"""Generators and comprehensions over what only a run knows, and orders by what a function says of each item."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C400, C416, RET504, RUF005, C401, C402, C408, C414, C416, C419, C420, E731, F841, PLC3002, PLW2901, RUF034
# ruff: noqa: RUF059, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.host_functions import find
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@JittedFunction
def asked(s, text: str):
    s += text
    return s.gen("verdict", max_tokens=2)


@tool(effect="pure")
def choices_by(text):
    return text if type(text) is int else ["red", text + "blue"]


@looped()
def a_sum_of_generated_lengths(s, a: str):
    s += a
    total = sum(len(word) for word in s.gen("x", max_tokens=8).split())
    return total, sum(len(asked(word)) for word in s["x"].split() if "e" in word)


@looped()
def any_of_generated_words(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    some = any(asked(word) > "h" for word in words)
    every = all(asked(word) > "a" for word in words if word > "b")
    s += f"{some}{every}"
    return some, every, s.gen("y", max_tokens=2)


@looped()
def any_that_decides_a_condition(s, a: str):
    s += a
    if any(letter in "aeiou" for letter in s.gen("x", max_tokens=3)):
        s += "vowel"
    if all(letter.isalpha() for letter in s["x"]) or not any(letter == " " for letter in a):
        s += "word"
    return s.gen("y", max_tokens=2)


@looped()
def effects_until_it_is_decided(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    found = any(len(find(word)) > 1 for word in words)
    effect("found", found)
    return found, s.gen("y", max_tokens=2)


@looped()
def joined_and_sorted_generators(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    ordered = sorted(word.upper() for word in words)
    s += "-".join(word[0] for word in words)
    longest = max((len(word) for word in words), default=0)
    return ordered, longest, tuple(word for word in words), list(word for word in words if word > "h")


@looped()
def a_dict_of_answers(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    answers = {word: asked(word) for word in words}
    sizes = dict((word, len(word)) for word in words)
    s += str(len(answers))
    return answers, sizes, {word for word in words} == set(words)


@looped()
def a_dict_with_generated_keys(s, a: str):
    s += a
    first, second = s.gen("x", max_tokens=2), s.gen("y", max_tokens=2)
    for letter in first:
        s += letter
    found = {name: len(name) for name in (first, second, a)}
    known = {number: first for number in range(3)}
    return found, known, found[first], known[2]


@looped()
def a_dict_that_is_looked_up(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    sizes = {word: index for index, word in enumerate(words)}
    out = []
    for word in words:
        out.append(sizes[word])
    return out, "zebra" in sizes


@looped()
def sorted_by_length(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    by_size = sorted(words, key=len)
    down = sorted(words, key=lambda word: (len(word), word), reverse=True)
    for word in by_size:
        s += word
    return by_size, down, s.text()


@looped()
def sorted_by_a_judge(s, a: str):
    s += a
    words = s.gen("x", max_tokens=8).split()
    ranked = sorted(words, key=lambda word: asked(word))
    best = max(words, key=lambda word: asked(word), default="none")
    return ranked, best


@looped()
def the_best_of_known_drafts(s, a: str):
    s += a
    drafts = [s.gen("x", max_tokens=4), s.gen("y", max_tokens=4), a]
    for letter in drafts[0]:
        s += letter
    best = max(drafts, key=len)
    worst = min(drafts, key=lambda draft: len(draft))
    ordered = sorted(drafts, key=lambda draft: draft.lower())
    first, *_ = ordered
    pairs = sorted([(len(draft), draft) for draft in drafts], key=lambda pair: -pair[0])
    return best, worst, ordered, first, pairs[0][1], [draft for _, draft in pairs]


@looped()
def the_best_branch_by_its_number(s, a: str):
    s += a
    forks = s.fork(3)
    for index, f in enumerate(forks):
        f += str(index)
        f.gen("x", max_tokens=3)
    lengths = [len(f["x"]) for f in forks]
    for letter in forks[0]["x"]:
        s += letter
    number = max(range(3), key=lambda index: lengths[index])
    texts = [f["x"] for f in forks]
    return number, texts[number]


@looped()
def the_best_branch_itself(s, a: str):
    s += a
    forks = s.fork(2)
    for f in forks:
        f.gen("x", max_tokens=3, temperature=1.0)
    best = max(forks, key=lambda f: f["x"])
    return best["x"]


@looped()
def keys_known_at_once(s, a: str):
    s += a
    order = sorted(["bb", "a", "ccc"], key=lambda word: -len(word))
    for letter in s.gen("x", max_tokens=2):
        s += letter
    effect("ordered", str(order))
    return order, min(3, 1, 2, key=lambda number: abs(number - 2)), s.text()


@looped()
def generators_of_tools(s, a: str):
    s += a
    found = sum(len(row) for row in find(s.gen("x", max_tokens=4)))
    return found, max((row for row in find(a)), key=lambda row: len(row), default="-")


@looped()
def a_search_in_each_round(s, a: str):
    s += a
    out = []
    for word in s.gen("x", max_tokens=8).split():
        out.append(any(asked(letter) > "m" for letter in word))
        if all(letter > "c" for letter in word):
            out.append(sum(1 for letter in word))
    return out


@looped(never=("return total",))
def what_raises_in_a_generator(s, a: str):
    s += a
    total = sum(int(word) for word in s.gen("x", max_tokens=8).split() + [a])
    return total


@looped()
def any_of_known_conditions(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=2):
        s += letter
    words = [s.gen("y", max_tokens=2), s.gen("z", max_tokens=2), a]
    some = any(word > "m" for word in words)
    every = all(len(word) > 2 for word in words)
    s += f"{some} {every}"
    return some, every, s.gen("end", max_tokens=1)


@looped()
def any_of_known_calls(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=2):
        s += letter
    return any(asked(word) > "m" for word in [s["x"], a, "c"])


@looped()
def choices_of_a_run(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()] + ["none"]
    s.select("one", sorted(set(words)))
    s += s.select("other", choices_by(a))
    return s["one"], s["other"]


@looped(never=("return",))
def choices_that_are_none(s, a: str):
    s += a
    for word in s.gen("x", max_tokens=2).split():
        s += word
    s.select("one", choices_by(3))
    return
