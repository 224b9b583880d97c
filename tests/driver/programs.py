"""Programs that the tests of driver, jit and command line run."""

import threading
import time

import lmc

SIDE_EFFECTS: list[str] = []
_LOCK = threading.Lock()


@lmc.jit
def judge(s: lmc.State, essay: str) -> tuple[str, str]:
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay: {essay}")
    views = s.fork(2)
    for number in range(2):
        views[number] += lmc.user(f"View {number}?")
        views[number].gen("view", max_tokens=6, temperature=1.0)
    s += lmc.user("Views: " + views[0]["view"] + views[1]["view"])
    return s.gen("verdict", max_tokens=6), s.select("choice", ["yes", "no"])


@lmc.tool
def note(text: str) -> str:
    with _LOCK:
        SIDE_EFFECTS.append(text)
    return f"noted {len(text)}"


@lmc.tool
def slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@lmc.jit
def breaks(s: lmc.State, topic: str, limit: int = 3) -> str:
    """Captured up to the `eval`; what stands before it must happen once."""
    s += topic
    first = s.gen("first", max_tokens=8)
    note(first)
    eval("0")
    if "e" in first:
        s += " with e "
    else:
        s += " without "
    if limit == 13:
        raise ValueError("thirteen")
    return first + s.gen("second", max_tokens=limit, temperature=1.0)


@lmc.jit
def fails(s: lmc.State, number: str) -> int:
    s += number
    s.gen("some", max_tokens=2)
    return int(number)


@lmc.jit
def turns(s: lmc.State, questions: list[str]) -> list[str]:
    answers: list[str] = []
    for question in questions:
        s += lmc.user(question)
        answers.append(s.gen("answer", max_tokens=4))
    return answers


@lmc.jit
def sleeps(s: lmc.State, seconds: float) -> str:
    slow(seconds)
    s += "done"
    return s.gen("a", max_tokens=2)


@lmc.jit
def constrained(s: lmc.State, topic: str) -> str:
    s += topic
    return s.gen("word", regex="[a-z]+")


@lmc.jit
def wrong(s: lmc.State, topic: str) -> str:
    s += topic
    return s.gen("word", max_tokens=0)


@lmc.jit
def retries(s: lmc.State, card: str) -> str:
    """Captured up to the `eval`; a failure of the model is tried again, and the card charged in the end."""
    s += card
    eval("0")
    for _ in range(3):
        try:
            s.gen("answer", max_tokens=2)
            break
        except Exception:
            note("tried again")
        finally:
            note("tidied up")
    note("charged " + card)
    return card
