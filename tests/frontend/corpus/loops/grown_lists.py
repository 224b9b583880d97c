"""Methods of lists whose items, or whose length, only a run knows."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C400, C416, RET504, RUF005, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF059, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.loops.cases import looped


@JittedFunction
def shortened(s, text: str):
    s += text
    return s.gen("short", max_tokens=1)


@looped()
def a_queue_of_work(s, a: str):
    s += a
    queue = [a + "!"]
    done = []
    while queue:
        word = queue.pop(0)
        done.append(word)
        for letter in shortened(word):
            if len(done) + len(queue) < 6:
                queue.append(letter)
    return done, queue


@looped()
def a_stack_of_work(s, a: str):
    s += a
    stack = list(s.gen("x", max_tokens=6).split())
    found = []
    while stack:
        word = stack.pop()
        found.append(word)
        if len(word) > 2:
            stack.append(word[1:])
    return found


@looped()
def put_in_front_and_taken_out(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()]
    words.insert(0, "first")
    words.insert(2, s["x"])
    words.append("last")
    words.remove("first")
    del words[0]
    words[-1] = "end"
    return words, len(words)


@looped()
def turned_and_sorted(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()]
    same = words
    words.reverse()
    turned = words.copy()
    words.sort()
    ordered = list(words)
    words.sort(reverse=True)
    words.sort(key=len)
    same.append("end")
    return turned, ordered, words


@looped()
def counted_and_looked_for(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()] + ["zebra"]
    place = words.index("zebra")
    seen = words.count(words[0])
    known = [s["x"], a, "k"]
    return place, seen, s["x"] in known[1:], known.index("k"), known.count(s["x"])


@looped()
def slices_of_a_list(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()]
    head, tail = words[:2], words[2:]
    head.append("and")
    tail += head
    return head, tail, words[::-1], words[-1:]


@looped()
def the_vote_of_a_majority(s, a: str):
    s += a
    votes = []
    for word in s.gen("x", max_tokens=8).split() + [a]:
        votes.append(shortened(word))
    return max(votes, key=lambda vote: votes.count(vote)), sorted(votes)


@looped()
def items_by_generated_numbers(s, a: str):
    s += a
    scores = [0, 0, 0]
    for letter in s.gen("x", max_tokens=8):
        scores[len(letter + a) % 3] += 1
    return scores, scores.index(max(scores))


@looped(never=("return",))
def what_is_not_there(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=8).split()]
    words.remove("nowhere")
    return


@looped(never=("return",))
def popped_from_nothing(s, a: str):
    s += a
    words = [word for word in s.gen("x", max_tokens=2).split() if word == "never"]
    words.pop()
    return


@looped()
def a_window_of_the_last(s, a: str):
    s += a
    history = []
    for word in s.gen("x", max_tokens=8).split():
        history.append(word)
        if len(history) > 2:
            history.pop(0)
        s += " ".join(history)
    history.clear()
    history.append("new")
    return history, s.text()


@looped()
def lists_of_pairs(s, a: str):
    s += a
    pairs = []
    for index, word in enumerate(s.gen("x", max_tokens=8).split()):
        pairs.append((len(word), index, word))
    pairs.sort(reverse=True)
    best = pairs[:1]
    return [word for _, _, word in pairs], best, (1, 0, "i") in pairs


@looped()
def seen_before(s, a: str):
    s += a
    seen = []
    for word in s.gen("x", max_tokens=8).split():
        if word not in seen:
            seen.append(word)
            s += shortened(word)
    return seen, s.gen("end", max_tokens=1)


@looped()
def taken_by_a_generated_place(s, a: str):
    s += a
    words = ["one", "two", "three", *s.gen("x", max_tokens=4).split()]
    out = []
    for word in s.gen("y", max_tokens=4).split():
        out.append(words.pop(len(word) % 3))
        words.append(word)
    return out, words
