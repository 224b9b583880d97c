"""Text of every kind."""

# Programs as users write them.
# ruff: noqa: UP031, UP032

from lmc.frontend.language.messages import assistant, gen, select, system, user
from tests.frontend.corpus.cases import case

TEMPLATE = "Q: %s\nA:"


@case("the sea")
def straight_line(s, topic: str):
    s += system("You are brief.")
    s += user(f"Write about {topic}.")
    s += assistant(gen("text", max_tokens=8))
    return s["text"]


@case("x", 3, 2.5)
def fstrings(s, a: str, n: int, x: float):
    s += f"{a}|{a!r}|{a:>5}|{n}|{n:03d}|{x:.2f}|{x!s:>8}|{n + 1}|{a + 'b'}|{n!r:>{n}}|{{}}"
    return s.gen("g", max_tokens=4)


@case("abc", 4)
def percent_and_format(s, a: str, n: int):
    s += "%s and %d%%, %5s" % (a, n, a)
    s += " %s" % a
    s += " %(a)s" % {"a": a}
    s += " {} {0}".replace("{0}", "{}").format(a, n)
    s += " {x:>4} {0!r}".format(a, x=n)
    s += TEMPLATE % a
    s.gen("g", max_tokens=3)
    return a % () if False else s.text()


@case("  Some Text, with: parts  ")
def text_methods(s, a: str):
    b = a.strip().lower().replace(",", ";")
    s += b.title() + b.upper()[2:8] + b[-1] + b[::2]
    s += str(b.count("t")) + str(b.find("with")) + f"{b.startswith('some')}"
    s += "-".join(b.split()) + "|".join(sorted(b.split(":")))
    head, _, tail = b.partition(":")
    s += head + tail
    return [b.split(";")[0], len(b), b.isdigit()]


@case("one two")
def generated_text_methods(s, a: str):
    s += a
    first = s.gen("first", max_tokens=12)
    s += user_note(first) if False else first.strip().upper()
    words = first.split()
    s += f" {len(words)} {first[:3]} {first[-2:]!r} {'e' in first} {first == a}"
    return {"n": len(first), "has": "e" in first, "same": first == "x", "not": not first, "up": first.title()}


def user_note(x):
    return x


@case("a", "b")
def appending(s, a: str, b: str):
    s += "bare "
    s += a + " " + b
    s += gen("x", max_tokens=3) + " then " + gen("y", max_tokens=3)
    s += "start: " + select("z", ["p", "q"])
    return s["x"] + s["y"] + s["z"]


@case("a")
def roles(s, a: str):
    with s.system():
        s += "be good"
    with s.user():
        s += "say "
        s += a
    with s.assistant():
        s += "well, "
        s.gen("x", max_tokens=4)
    s += user("more")
    s.user("and " + a)
    s += assistant("ok " + gen("y", max_tokens=2) + "!")
    return s.text()


@case("a")
def implicit_turn(s, a: str):
    s += user(a)
    s += "Answer: "
    s.gen("x", max_tokens=4)
    s += ". And: "
    s.gen("x", max_tokens=4)
    return s["x"]


@case(["the", "cat", "sat"])
def joined_list(s, words: list[str]):
    s += " ".join(words)
    s += words[0] + words[-1]
    s.gen("g", max_tokens=4)
    return words[1]


@case("k", 7)
def numbers(s, a: str, n: int):
    s += f"{n * 2 + 1} {n / 2} {n // 2} {n % 3} {-n} {abs(-n)} {n**2} {round(n / 3, 2)} {a * 2} {min(n, 3)} {max(n, 3)}"
    s += str(int("12") + n) + str(float(n))
    return (n + 1, n > 3, n == 7, divmod(9, 4))
