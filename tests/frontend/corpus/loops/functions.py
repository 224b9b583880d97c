"""Functions, closures, generators, methods and recursions with loops, and in loops."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.host_functions import find
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@looped()
def a_closure_made_in_each_round(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=4):

        def put(text):
            return text + letter

        out = put(out)
    return out


@looped("differs between the ways through the condition or loop")
def a_closure_kept_from_a_round(s, a: str):
    s += a
    put = None
    for letter in s.gen("x", max_tokens=4):
        put = lambda text: text + letter
    return put("k") if put is not None else "none"


@looped()
def a_closure_reads_what_rounds_change(s, a: str):
    s += a
    total = ""

    def look():
        return total + "?"

    for letter in s.gen("x", max_tokens=4):
        total = look() + letter
    return look()


@looped()
def nonlocal_in_rounds(s, a: str):
    s += a
    total = 0

    def add():
        nonlocal total
        total += 1

    for letter in s.gen("x", max_tokens=4):
        add()
    return total


@looped()
def default_arguments_of_a_round(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=4):

        def put(text, end=letter, *, times=2):
            return text + end * times

        out = put(out) + put("", times=1)
    return out


@looped()
def a_helper_with_a_loop_is_called_in_rounds(s, a: str):
    def count(letter, text):
        n = 0
        for found in text:
            if found == letter:
                n += 1
        return n

    s += a
    text = s.gen("x", max_tokens=6)
    out = 0
    for letter in text:
        out += count(letter, text)
        if out > 9:
            break
    return out


@looped()
def a_recursion_with_a_loop(s, a: str):
    def walk(depth, text):
        n = 0
        for letter in text:
            if letter == "e":
                n += 1
                s.gen("x", max_tokens=1)
        return n if depth == 0 else n + walk(depth - 1, s.gen("y", max_tokens=3))

    s += a
    return walk(2, s.gen("y", max_tokens=3)), s.gen("x", max_tokens=2)


@looped("deeper than")
def a_recursion_in_a_loop(s, a: str):
    def walk(text):
        n = 0
        for letter in text:
            if letter == "e":
                n += 1 + walk(s.gen("x", max_tokens=2))
            if n > 1:
                break
        return n

    s += a
    return walk(s.gen("y", max_tokens=3))


@looped()
def a_generator_that_is_gone_over(s, a: str):
    def words(text):
        for letter in ["e", "t", "o"]:
            yield letter + text

    s += a
    out = ""
    for letter in s.gen("x", max_tokens=3):
        for word in words(letter):
            out += word
    return out


@looped()
def a_generator_over_an_unknown_text(s, a: str):
    def words(text):
        for letter in text:
            yield letter + "!"

    s += a
    out = ""
    for word in words(s.gen("x", max_tokens=3)):
        out += word
    return out


@looped("differs between the ways through the condition or loop")
def a_generator_made_before_and_advanced_in_rounds(s, a: str):
    s += a
    numbers = iter(["1", "2", "3", "4", "5", "6"])
    out = ""
    for letter in s.gen("x", max_tokens=3):
        out += next(numbers) + letter
    return out


@looped()
def any_and_all_in_rounds(s, a: str):
    s += a
    n = 0
    for word in s.gen("x", max_tokens=9).split():
        if any(letter in word for letter in ["e", "t"]):
            n += 1
        if all(letter in word for letter in ["e", "s"]):
            n += 10
    return n


@looped()
def methods_of_texts_in_rounds(s, a: str):
    s += a
    out = ""
    for word in s.gen("x", max_tokens=9).split():
        out = f"{out:>3}{word.strip('e'):<4}|{word.title()!r}" + out.join(["a", "b"]) if len(out) < 20 else out
    return out


@JittedFunction
def refined(s, text: str, rounds: int = 3):
    s += text
    draft = s.gen("draft", max_tokens=4)
    for _ in range(rounds):
        s += "critique: "
        critique = s.gen("critique", max_tokens=3)
        if "e" in critique:
            return draft
        s += "better: "
        draft = s.gen("draft", max_tokens=4)
    return draft


@looped()
def a_program_with_a_known_loop_in_rounds(s, a: str):
    s += a
    out = ""
    for word in s.gen("words", max_tokens=6).split():
        out += refined(word, 2)
    return out, refined(a)


@looped()
def the_program_is_called_in_a_while_condition(s, a: str):
    s += a
    n = 0
    while n < 3 and "e" in refined(s.gen("x", max_tokens=2), 1):
        n += 1
        effect(n)
    return n


@looped()
def lambdas_in_rounds(s, a: str):
    s += a
    out = ""
    put = lambda text, more: text + more
    for letter in s.gen("x", max_tokens=4):
        out = put(out, (lambda t: t.upper())(letter))
    return out


@looped()
def a_conversation(s, a: str):
    s += a
    plan = s.gen("plan", max_tokens=10)
    notes = "-"
    step = 0
    for line in plan.split():
        step += 1
        s += f"Step {step}: {line}\n"
        thought = s.gen("thought", max_tokens=3, stop=" ")
        action = s.select("action", ["search", "finish", "think"])
        if action == "finish":
            effect("finish", step)
            return notes, step
        if action == "search":
            for hit in find(thought):
                effect("hit", hit)
                s += hit
                notes = f"{notes}{hit}"
        else:
            retries = 0
            while "e" not in s.gen("deeper", max_tokens=2) and retries < 2:
                retries += 1
                s += "hm"
        s += "\n"
    return notes, step, s.gen("answer", max_tokens=3)
