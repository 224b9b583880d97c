"""Contexts, variables, branches, roles and ids of states in rounds."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false

from lmc.frontend.language.messages import assistant, gen, system, user
from lmc.frontend.program.function import JittedFunction
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@looped()
def a_growing_context(s, a: str):
    s += a
    for word in s.gen("words", max_tokens=8).split():
        s += f" {word}: " + gen("more", max_tokens=2)
    return s["words"], s.get("more", "none"), s.text()


@looped()
def roles_in_each_round(s, a: str):
    s += system("be kind")
    s += user(a)
    s += assistant(gen("x", max_tokens=4))
    n = 0
    while "e" not in s["x"] and n < 4:
        s += user(f"try {n}")
        s += assistant(gen("x", max_tokens=4))
        n += 1
    s += user("done")
    return n, s["x"], s.text()


@looped()
def a_turn_left_open_by_rounds(s, a: str):
    s += user(a)
    x = "-"
    n = 0
    while "e" not in x and n < 3:
        x = s.gen("x", max_tokens=2)
        s += "and"
        n += 1
    s += user("end")
    return s.text()


@looped()
def chat_or_not_depends_on_rounds(s, a: str):
    other = s.copy()
    other += a
    for letter in other.gen("x", max_tokens=2):
        s += user(letter)
    s += user(a)
    return s.text()


@looped()
def the_same_name_before_in_and_behind(s, a: str):
    s += a
    one = s.gen("x", max_tokens=3, temperature=1.0)
    s.gen("x", max_tokens=2, temperature=1.0)
    for letter in one:
        s.gen("x", max_tokens=2, temperature=1.0)
        if letter == "e":
            s.gen("x", max_tokens=1, temperature=1.0)
        s.gen("y", max_tokens=1, temperature=1.0)
    return s.gen("x", max_tokens=3, temperature=1.0), s.gen("y", max_tokens=3, temperature=1.0), s["x"], s["y"]


@looped()
def unnamed_generations_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen(max_tokens=3):
        out += s.gen(max_tokens=2, temperature=1.0)
    return out + s.gen(max_tokens=2, temperature=1.0)


@looped()
def names_with_special_characters(s, a: str):
    s += a
    out = ""
    for letter in s.gen("a*b", max_tokens=3):
        out += s.gen("a*b", max_tokens=2, temperature=1.0) + s.gen("c$#1", max_tokens=1, temperature=1.0)
    return out + s.gen("c$#1", max_tokens=2, temperature=1.0)


@looped()
def a_variable_that_is_chosen_in_rounds(s, a: str):
    s += a
    s.select("n", ["one", "two"])
    for letter in s.gen("x", max_tokens=4):
        s += letter
        s.select("n", ["one", "two", s["n"] + letter])
        if letter == "e":
            s.select("last", [s["n"], "end"])
    return s["n"], s.get("last", "not set"), "last" in s


@looped()
def a_variable_of_rounds_is_read_behind(s, a: str):
    s += a
    for letter in s.gen("x", max_tokens=3):
        s += letter
        s.gen("y", max_tokens=2)
    s += "then"
    return s["y"]


@looped()
def variables_read_before_they_are_set(s, a: str):
    s += a
    s.gen("y", max_tokens=2)
    out = ""
    for letter in s.gen("x", max_tokens=4):
        out += s["y"]
        s.gen("y", max_tokens=2)
    return out, s["y"]


@looped()
def a_variable_seen_only_from_the_second_round_on(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=4):
        if "y" in s:
            out += "again"
        s += letter
        s.gen("y", max_tokens=2)
    return out, s.get("y", "none")


@looped()
def a_select_in_each_round(s, a: str):
    s += a
    n = 0
    while n < 5 and s.select("go on", ["yes", "no", "perhaps"]) != "no":
        n += 1
        s += f" {n} "
        s.gen("x", max_tokens=2)
    return n, s["go on"]


@looped()
def forks_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=3):
        views = s.fork(2)
        views[0] += letter
        views[1] += letter.upper()
        for view in views:
            view.gen("v", max_tokens=2, temperature=1.0)
        out += "/".join(views["v"])
        s += out
    return out, s.fork(1)[0].gen("v", max_tokens=2, temperature=1.0)


@looped()
def a_fork_made_before_and_used_in_rounds(s, a: str):
    s += a
    views = s.fork(2)
    for letter in s.gen("x", max_tokens=4):
        views[0] += letter
        views[1].gen("y", max_tokens=1, temperature=1.0)
        s += views[1]["y"]
    return views[0].text(), views[1].get("y", "none"), s.gen("y", max_tokens=2, temperature=1.0)


@looped()
def two_states_swap(s, a: str):
    s += a
    other = s.copy()
    x = s.gen("x", max_tokens=3)
    one, two = s, other
    for letter in x:
        one += letter
        two.gen("y", max_tokens=1)
    return one.text(), two.text()


@looped()
def two_states_swap_names(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    one, two = s.copy(), s.copy()
    for letter in x:
        one += letter
        one, two = two, one
    return one.text(), two.text()


@looped()
def a_copy_in_each_round(s, a: str):
    s += a
    best = ""
    for letter in s.gen("x", max_tokens=4):
        t = s.copy()
        t += letter
        y = t.gen("y", max_tokens=2)
        best = max(best, y)
    return best, s.gen("y", max_tokens=2)


@looped()
def a_copy_kept_from_a_round(s, a: str):
    s += a
    kept = s.copy()
    for letter in s.gen("x", max_tokens=3):
        kept = s.copy()
        kept += letter
    return kept.gen("y", max_tokens=2)


@JittedFunction
def judged(s, text: str):
    s += text
    verdict = s.gen("v", max_tokens=3, temperature=1.0)
    if "e" in verdict:
        effect("good", text)
        return True
    s += "none"
    return "t" in s.gen("v", max_tokens=2, temperature=1.0)


@looped()
def sub_programs_in_rounds(s, a: str):
    s += a
    good = 0
    for word in s.gen("words", max_tokens=8).split():
        if judged(word):
            good += 1
        if judged.on_state(s, word):
            s += "!"
    return good, judged(a), s.gen("v", max_tokens=2, temperature=1.0)


@looped()
def a_loop_in_a_branch(s, a: str):
    s += a
    x = s.gen("x", max_tokens=3)
    for view in s.fork(2):
        for letter in x:
            view += letter
            view.gen("y", max_tokens=1, temperature=1.0)
        effect(view.get("y", "none"))
    return s.gen("y", max_tokens=1, temperature=1.0)


@looped()
def a_fork_of_a_fork_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=2):
        for view in s.fork(2):
            view += letter
            for deeper in view.fork(2):
                for again in view.gen("z", max_tokens=2, temperature=1.0):
                    out += deeper.gen("y", max_tokens=1, temperature=1.0)
    return out


@looped()
def samples_in_rounds(s, a: str):
    s += a
    out = ""
    for letter in s.gen("x", max_tokens=3):
        s += letter
        out += "/".join(s.gen("y", max_tokens=2, temperature=1.0, n=2))
    return out, s.get("y", "none")


@looped()
def constrained_generations_in_rounds(s, a: str):
    s += a
    total = 0
    while total < 12 and s.gen("more", dtype=bool):
        total += int(s.gen("n", regex="[1-9]"))
        s += f"={total};"
    return total


@looped()
def meta_data_of_rounds(s, a: str):
    s += a
    out = 0
    for letter in s.gen("x", max_tokens=3):
        s.gen("y", max_tokens=2, logprobs=1)
        out += 1
    return out, s.get("y", "none")


@looped()
def the_text_of_the_state_decides(s, a: str):
    s += a
    n = 0
    while len(s.text()) < 14:
        s.gen("x", max_tokens=2)
        s += "."
        n += 1
    return n, s.text()


@looped(never=('s += "never"', 'x = "stop"'))
def a_loop_without_rounds(s, a: str):
    s += a
    x = s.gen("x", max_tokens=2)
    for letter in x:
        pass
    while "never" in x:
        s += "never"
        x = "stop"
    return s.gen("x", max_tokens=2)
