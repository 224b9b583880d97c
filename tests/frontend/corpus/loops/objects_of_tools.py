"""Loops over what tools give without saying what it is."""

# Programs as users write them.
# ruff: noqa: B007, B020, B023, B905, C400, C416, RET504, RUF005, C408, C420, E731, F841, PLC3002, PLW2901, RUF034, RUF059, RUF100
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportOperatorIssue=false, reportIndexIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.loops.cases import looped
from tests.frontend.harness import effect


@tool(effect="reads")
def rows_of(text):
    effect("rows", text)
    return [{"name": word, "size": len(word)} for word in text.split()]


@tool(effect="reads")
def table_of(text):
    return {word: len(word) for word in text.split()}


@tool(effect="pure")
def pairs_of(text):
    return tuple(enumerate(text))


@tool(effect="pure")
def number_of(text):
    return len(text)


def unsaid(text):
    effect("unsaid", text)
    return text.split()


@looped()
def rows_of_a_tool(s, a: str):
    s += a
    out = []
    for row in rows_of(s.gen("x", max_tokens=6)):
        s += row["name"]
        out.append(f"{row['name']}-{row['size']}")
    return out, s.gen("y", max_tokens=2)


@looped()
def keys_and_values_of_a_tool(s, a: str):
    s += a
    total = 0
    for name, size in table_of(s.gen("x", max_tokens=6) + " one").items():
        s += f"{name}={size}"
        total = total + size
    return total, s.text()


@looped()
def keys_of_a_tool(s, a: str):
    s += a
    names = [name for name in table_of(s.gen("x", max_tokens=6))]
    for name in table_of(a + " b"):
        s += name
    return names, s.text()


@looped()
def pairs_of_a_tool(s, a: str):
    s += a
    out = []
    for index, letter in pairs_of(s.gen("x", max_tokens=6)):
        out.append(letter * index)
    for number, (index, letter) in enumerate(pairs_of(a)):
        out.append(f"{number}{index}{letter}")
    return out


@looped(never=("out = out", "return out"))
def what_is_no_list(s, a: str):
    s += a
    out = ""
    for part in number_of(s.gen("x", max_tokens=6)):
        out = out + part
    return out


@looped()
def a_list_of_an_undeclared_function(s, a: str):
    s += a
    out = []
    for word in unsaid(s.gen("x", max_tokens=6)):
        out.append(s.gen("y", max_tokens=1) + word)
    return out


@looped()
def zipped_with_a_tool(s, a: str):
    s += a
    out = []
    for word, row in zip(s.gen("x", max_tokens=6).split(), rows_of(a)):
        out.append(word + row["name"])
    return out


@looped()
def changed_while_gone_over(s, a: str):
    s += a
    items = unsaid(s.gen("x", max_tokens=6))
    for word in items:
        effect("saw", word, len(items))
    return "done"


@looped()
def a_copy_of_what_a_tool_gave(s, a: str):
    s += a
    items = unsaid(s.gen("x", max_tokens=6))
    for word in list(items):
        effect("saw", word, len(items))
    return "done"


@looped(stops="the variable 'y' may be missing in some branches, and is asked of all,")
def branches_for_the_rows_of_a_tool(s, a: str):
    s += a
    rows = rows_of(s.gen("x", max_tokens=6) + " one")
    forks = s.fork(len(rows))
    for f, row in zip(forks, rows):
        f += row["name"]
        f.gen("y", max_tokens=2)
    return forks["y"]
