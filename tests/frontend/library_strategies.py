"""Random programs that process texts, numbers and lists with the standard library, as ordinary programs do."""

import re
from typing import ClassVar

from hypothesis import strategies as st

from tests.frontend.strategies import MOST_ITEMS, Topic, programs_of

LIBRARY_HEADER = """
import base64
import difflib
import functools
import hashlib
import heapq
import html
import itertools
import json
import logging
import math
import operator
import os.path
import random
import re
import statistics
import string
import textwrap
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from itertools import accumulate, chain, combinations, count, cycle, islice, pairwise, permutations, product
from itertools import starmap, takewhile, zip_longest
from lmc.frontend.program.function import JittedFunction as jit
from lmc.frontend.tools.tools import tool
from tests.frontend.harness import effect

LOG = logging.getLogger("lmc.test.programs")
WORD = re.compile(r"[a-z]+", re.IGNORECASE)
MARK = re.compile(r"(\\w)(\\W)?")
SWAPS = str.maketrans("ae", "ea", "x")


@tool(effect="reads")
def lookup(word: str) -> str:
    effect("lookup", word)
    return "<" + word + ">"


def loud(word):
    effect("loud", word)
    return word.upper()


"""

# By what an expression gives: T text, N int, F number, B bool, W list of texts, M list of numbers. ``{T}`` is a text.
_TEXTS: dict[str, str] = {
    "T": """
        {T}.strip()
        {T}.lower().title()
        {T}.replace({T}, "-")
        {T}.removeprefix("a").removesuffix({T})
        {T}.partition(",")[2]
        {T}.center({S}, "*")
        {T}.zfill({S})
        {T}.translate(SWAPS)
        {T}.casefold().swapcase()
        {T}[:{S}]
        ({T} * {S})
        {T}.format(1)
        ("%s-%5s" % ({T}, {N}))
        ("%d%%" % {N})
        "{{}}:{{:>4}}".format({T}, {N})
        "{{a}}{{b!r}}".format(a={T}, b={N})
        f"{{{T}!r:>8}}"
        f"{{{N}:+03d}}|{{{F}:.2f}}|{{{T}:<4}}"
        f"{{{T}:^{{{S}}}}}"
        str({N})
        repr({W})
        ",".join({W})
        " ".join(sorted({W}))
        " ".join(map(str, {M}))
        "".join(reversed({T}))
        "".join(c for c in {T} if c.isalnum())
        max({W}, key=len, default="-")
        min({T}, {T})
        re.sub(r"[aeiou]+", "_", {T})
        re.sub(r"(\\w)(\\w)", r"\\2\\1", {T}, count=1)
        WORD.sub("w", {T})
        re.escape({T})
        textwrap.shorten({T}, 9, placeholder="~")
        textwrap.fill({T}, 5)
        textwrap.indent({T}, "> ")
        textwrap.dedent({T})
        html.escape({T})
        html.unescape({T})
        json.dumps({W})
        json.dumps({{"t": {T}, "n": {N}}}, sort_keys=True)
        json.dumps({T}, ensure_ascii=False)
        string.capwords({T})
        base64.b64encode({T}.encode()).decode("ascii")
        hashlib.sha256({T}.encode("utf-8")).hexdigest()[:6]
        os.path.basename({T})
        os.path.join("a", {T})
        os.path.splitext({T})[1]
        difflib.get_close_matches({T}, ["lit", "abc"], n=1, cutoff=0.1)[0]
        reduce(lambda a, b: b + a, {W}, "")
        reduce(operator.add, {W}, "")
        functools.reduce(lambda a, b: a if len(a) > len(b) else b, {W})
        next(iter({W}), "none")
        next((w for w in {W} if len(w) > 1), "short")
        str(date(2024, 1, 28) + timedelta(days={S}))
        (date(2024, 2, 28) + timedelta({S})).strftime("%a %d")
        f"{{date(2024, 2, 28) + timedelta({S}):%Y-%m}}"
        date.fromisoformat("2024-01-0" + str({S} % 9 + 1)).isoformat()
        str(Decimal({N}) / 4)
        str(Fraction({N}, 3))
        (re.search(r"\\w+", {T}) or re.search("z", "z")).group()
        MARK.sub(r"<\\1>", {T})
        chr(97 + {S})
        hex({N})
        ascii({T})
        partial(str.replace, {T}, "a")("b")
        getattr({T}, "upper")()
        operator.concat({T}, {T})
        loud({T})
        lookup({T})
    """,
    "N": """
        len({T})
        len({W})
        {T}.count("a")
        {T}.find({T})
        {T}.index("a")
        sum({M})
        max({M})
        min({M}, default=0)
        max({N}, {N}, key=abs)
        sum(len(w) for w in {W})
        sum(map(len, {W}))
        int({T})
        int("1" + str({S}))
        ord({T}[0])
        abs({N})
        pow({S}, 2, 7)
        divmod({N}, 3)[1]
        divmod({N}, {N})[0]
        round({F})
        math.floor({F})
        math.gcd({N}, {N})
        math.factorial({S})
        math.comb({S}, 2)
        math.prod({M})
        (hash({T}) * 0)
        statistics.mode({M})
        operator.sub({N}, {N})
        reduce(lambda a, b: a * 2 + b, {M}, 1)
        len(list(itertools.product({W}, repeat=2)))
        len(list(takewhile(lambda n: n < 3, {M})))
        len(re.findall(r"\\w", {T}))
        (date(2024, 3, 1) - date(2024, 2, {S} + 1)).days
        (date(2024, 1, 1) + timedelta(days={S})).weekday()
        RNG.randint(0, {S})
        RNG.choice({M})
        ({N}).bit_length()
        ({S} if {B} else {N})
        int(hasattr({T}, "upper"))
        json.loads("[1, 2]")[1]
    """,
    "F": """
        {N}
        ({N} / 2)
        float({N})
        float({T})
        math.sqrt({S})
        math.log({S})
        math.hypot({N}, {N})
        round({N} / 7, 2)
        statistics.mean({M})
        statistics.median({M})
        statistics.fmean({M})
        statistics.pstdev({M})
        sum({M}) / len({M})
        difflib.SequenceMatcher(None, {T}, {T}).ratio()
        RNG.random()
        timedelta(minutes={N}).total_seconds()
        float(Fraction({N}, 4))
        math.inf
    """,
    "B": """
        {T}.startswith({T})
        {T}.isalpha()
        {T} in {W}
        {N} in {M}
        {N} > {N}
        {T} < {T}
        any({M})
        all(w for w in {W})
        any(len(w) > 2 for w in {W})
        bool(re.search("a", {T}))
        re.fullmatch(r"\\w*", {T}) is not None
        isinstance({N}, int)
        callable({T})
        math.isclose({F}, {F})
        {T} == {T}
        not {W}
    """,
    "W": """
        {T}.split()
        {T}.split(",", 1)
        {T}.splitlines()
        {T}.rsplit(maxsplit={S})
        list({T})
        sorted({W})
        sorted({W}, key=len)
        sorted({W}, key=lambda w: (-len(w), w), reverse=True)
        [w.upper() for w in {W}]
        [w for w in {W} if w]
        [loud(w) for w in {W}]
        list(map(str.strip, {W}))
        list(map(lambda w: w + "!", {W}))
        list(map(loud, {W}))
        list(filter(None, {W}))
        list(filter(lambda w: len(w) > 1, {W}))
        list(filter(str.isalpha, {W}))
        re.findall(r"\\w+", {T})
        WORD.findall({T})
        re.split(r"\\s+", {T})
        textwrap.wrap({T}, 4)
        [a + b for a, b in zip({W}, {W})]
        [f"{{i}}{{w}}" for i, w in enumerate({W}, 1)]
        [a + b for a, b in itertools.product(["x", {T}], "yz")]
        ["".join(p) for p in permutations(["x", {T}])]
        ["".join(p) for p in combinations(["x", {T}, "z"], 2)]
        list(chain({W}, ["end"]))
        list(islice(cycle(["l", {T}]), 3))
        list(islice({W}, {S}))
        list(accumulate({W}))
        [a + (b or "-") for a, b in zip_longest(["k", {T}], ["l"], fillvalue="")]
        [a + b for a, b in pairwise({W})]
        list(itertools.filterfalse(str.isdigit, {W}))
        heapq.nlargest(2, {W})
        heapq.nsmallest(1, {W}, key=len)
        list(dict.fromkeys({W}))
        difflib.get_close_matches({T}, {W})
        RNG.sample(["p", "q", {T}], 2)
        [{T}, {T}]
        {W}[::-1]
        ({W} + {W})
    """,
    "M": """
        [{N}, {N}]
        [len(w) for w in {W}]
        list(map(len, {W}))
        sorted({M}, reverse=True)
        list(range({S}))
        list(accumulate({M}))
        list(accumulate({M}, lambda a, b: max(a, b)))
        [n * 2 for n in {M} if n]
        list(starmap(pow, [(2, {S}), ({S}, 2)]))
        [n for _, n in zip("ab", count({N}))]
        sorted({M}, key=lambda n: -n)
        list(map(operator.neg, {M}))
        statistics.multimode({M})
        RNG.choices([1, 2], k=2)
    """,
}
TEMPLATES = {kind: [line.strip() for line in text.splitlines() if line.strip()] for kind, text in _TEXTS.items()}
LEAVES = {
    "T": ["a", "b", '"lit"', '"a, B c"', '"7"', '""'],
    "N": ["n", "3", "0", "-2"],
    "F": ["n", "2.5"],
    "B": ["True", 'a == "x"'],
    "W": ["words", 'a.split(",")', '["a", "bb"]'],
    "M": ["[3, 1, 2]", "[n, 2]"],
    "S": ["2", "1", "3", "len(a) % 5"],
}
NAMES = {"T": "texts", "N": "numbers", "F": "numbers", "W": "lists", "M": "numberlists"}
_HOLE = re.compile(r"\{([TNFBWMS])\}")


class Library(Topic):
    """Calls of the standard library over texts, numbers and lists of them."""

    SHOWN: ClassVar = {**Topic.SHOWN, **dict.fromkeys(("lists", "numberlists"), "list({})"), "values": "{}"}

    def prelude(self) -> list[str]:
        lines = ["RNG = random.Random(5)", *self.bind("texts", "t", "b"), *self.bind("numbers", "k", "1")]
        lines += [*self.bind("lists", "seen", '["w"]'), *self.bind("numberlists", "nums", "[2, 1]")]
        return [*lines, *self.bind("lists", "l", "list(words)")]

    def beginning(self) -> list[str]:
        return []

    def ending(self) -> list[str]:
        return []

    def expression(self, kind: str, depth: int = 2) -> str:
        """An expression that gives ``kind``."""
        known = self.names[NAMES[kind]] if kind in NAMES else []
        if depth == 0 or kind not in TEMPLATES or self.one_in(5):
            return self.pick(*LEAVES[kind], *known[-2:], *known)
        template = self.pick(*TEMPLATES[kind])
        # In an f-string another quote is needed; there only names stand.
        shown = template.startswith('f"')
        parts = _HOLE.split(template)
        return "".join(
            part.replace("{{", "{").replace("}}", "}")
            if index % 2 == 0
            else self.name(part)
            if shown
            else self.expression(part, depth - 1)
            for index, part in enumerate(parts)
        )

    def name(self, kind: str) -> str:
        return self.pick("3", "n % 4") if kind == "S" else self.pick(*self.names[NAMES[kind]])

    def text(self) -> str:
        return self.expression("T")

    def condition(self) -> str:
        return self.expression("B")

    def items(self) -> str:
        return self.expression("W")

    def errors(self) -> str:
        return self.pick("ValueError", "IndexError", "(ValueError, TypeError)", "Exception")

    def statement(self) -> list[str]:
        kinds = [*["bind"] * 8, "grow", "write", "gen", "call", "if", "for", "try", "found", "value"]
        return self.maker(*kinds, *["end"] * bool(self.loops), *["leave"] * (self.depth > 1))

    def _bind(self) -> list[str]:
        kind = self.pick("T", "T", "T", "N", "M", "W")
        own, value = self.own(NAMES[kind]), self.expression(kind)
        if kind == "T" and self.loops:
            value = f"({value})[:99]"
        return (
            [f"{self.pick(*own)} = {value}"] if own and self.one_in(2) else self.bind(NAMES[kind], kind.lower(), value)
        )

    def grow(self, text: str) -> str:
        """A line that makes a list longer; else a loop over it may never end."""
        xs = self.pick(*self.lists)
        return f"if len({xs}) < {MOST_ITEMS}: {xs}.append({text})"

    def _grow(self) -> list[str]:
        return [self.grow(self.text())]

    def _write(self) -> list[str]:
        return [f"s.append({self.text()})" if self.functions else f"s += {self.text()}"]

    def _gen(self) -> list[str]:
        return self.bind("texts", "t", 's.gen("x", max_tokens=3)')

    def _call(self) -> list[str]:
        xs = self.pick(*self.lists)
        return [self.pick(f'LOG.debug("%s", {self.pick(*self.texts)})', f"RNG.shuffle({xs})", f"{xs}.sort(key=len)")]

    def _found(self) -> list[str]:
        name = self.fresh("m")
        return [
            f"if ({name} := MARK.search({self.text()})) is not None:",
            f"    {self.grow(f'{name}.group(1) + str({name}.start())')}",
        ]

    def _value(self) -> list[str]:
        return self.bind("values", "x", self.expression(self.pick(*"TNFBWM")))


def library_programs() -> st.SearchStrategy[str]:
    """Source of a function ``program(s, a, b, n, words)``."""
    return programs_of(Library, budget=(3, 14))
