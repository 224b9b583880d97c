"""A program whose graph ends early."""

import lmc


@lmc.jit
def broken(s, topic: str):
    s += lmc.user(f"Name a fact about {topic}.")
    fact = s.gen("fact", max_tokens=16)
    if s.select("sure", ["yes", "no"]) == "yes":
        return fact
    length = eval("len")(fact)
    s += lmc.user(f"That has {length} characters.")
    return s.gen("other", max_tokens=16)
