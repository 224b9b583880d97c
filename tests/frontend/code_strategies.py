"""Random programs that call helpers of every kind, and changes of the code that these helpers have."""

import re
from typing import Any

from hypothesis import strategies as st

from tests.frontend.strategies import HEADER, many

CODE_HEADER = (
    HEADER
    + """
import functools


def render(x, mark="!", *, sep="-"):
    return sep + x + mark


def render_2(x, mark="!", *, sep="-"):
    return mark + x.upper() + sep


def outer(x):
    return render(x) + "o"


def outer_2(x):
    return x * 2


def ask(s, x, most=2, *, before=" ask "):
    s += before + x
    return s.gen("asked", max_tokens=most)


def ask_2(s, x, most=2, *, before=" ask "):
    s += "other" + x
    s.gen("first", max_tokens=most)
    return s.gen("asked", max_tokens=1)


def close(word):
    held = ["h"]

    def inner(x):
        return x + word + held[0]

    def inner_2(x):
        return word + x.title() + held[0]

    return inner, inner_2


closed, closed_2 = close("w")


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * 2

    return wrapper


@doubled
def wrapped(x):
    return x + "1"


def wrapped_2(x):
    return x + "2"


def letters(x):
    for letter in x:
        yield letter + "."


def letters_2(x):
    yield x


def whole(x):
    effect("whole", x)
    return "w" + x


def whole_2(x):
    effect("other", x)
    return "v" + x


def by_length(x):
    return len(x)


def by_length_2(x):
    return -len(x)


partly = functools.partial(render, mark="?")
short = lambda x: x[:2]
short_2 = lambda x: x[:1]


@tool(effect="pure")
def measured(x: str) -> str:
    return str(len(x))


def measured_2(x: str) -> str:
    return str(-len(x))


def sub_2(s, text: str, times: int = 1):
    s += "two " + text
    return s.gen("inner", max_tokens=1)


def more_2(s):
    s += " less "
    return s.gen("m", max_tokens=1)


class Agent:
    mark = "m"

    def __init__(self):
        self.name = "n"

    def say(self, x, end="."):
        return self.name + x + end + self.mark

    def say_2(self, x, end="."):
        return x + end

    def talk(self, s, x):
        s += self.say(x)
        return s.gen("talk", max_tokens=2)

    def talk_2(self, s, x):
        s += x
        return s.gen("talk", max_tokens=1)

    @staticmethod
    def tag(x):
        return f"<{x}>"

    @classmethod
    def kind(cls, x):
        return cls.mark + x

    @property
    def long(self):
        return self.name * 2


def tag_2(x):
    return f"[{x}]"


def kind_2(cls, x):
    return x + cls.mark


loud_say = Agent.say


class Loud(Agent):
    def say(self, x, end="!"):
        return super().say(x, end).upper()

    def say_2(self, x, end="!"):
        return super().say(x, end).title()


agent = Agent()
loud = Loud()

"""
)

CALLS = many("""
    render({x})  render({x}, '?')  render({x}, sep='+')  outer({x})  ask(s, {x})  closed({x})  partly({x})
    wrapped({x})  list(letters({x}))  whole({x})  short({x})  measured({x})  sub({x})  more.on_state(s)
    agent.say({x})  agent.talk(s, {x})  Agent.tag({x})  agent.tag({x})  Agent.kind({x})  loud.say({x})
    agent.mark + {x}  sorted([{x}, 'ab'], key=by_length)  max([{x}, 'abc'], key=by_length)  list(map(outer, [{x}]))
    [render(q) for q in words]  loud.talk(s, {x})  Agent.say(loud, {x})  list(filter(by_length, [{x}, '']))
    """)
CHANGES = many("""
    render.__code__ = render_2.__code__  outer.__code__ = outer_2.__code__  ask.__code__ = ask_2.__code__
    closed.__code__ = closed_2.__code__  wrapped.__wrapped__.__code__ = wrapped_2.__code__
    letters.__code__ = letters_2.__code__  whole.__code__ = whole_2.__code__  short.__code__ = short_2.__code__
    by_length.__code__ = by_length_2.__code__  measured.function.__code__ = measured_2.__code__
    sub.function.__code__ = sub_2.__code__  more.function.__code__ = more_2.__code__
    Agent.say.__code__ = Agent.say_2.__code__  Agent.talk.__code__ = Agent.talk_2.__code__
    Agent.tag.__code__ = tag_2.__code__  Agent.kind.__func__.__code__ = kind_2.__code__
    Loud.say.__code__ = Loud.say_2.__code__  program.function.__code__ = changed.__code__
    render.__defaults__ = ('~',)  render.__kwdefaults__ = {'sep': '='}  render.__kwdefaults__['sep'] = '#'
    ask.__defaults__ = (1,)  ask.__kwdefaults__['before'] = ' new '  Agent.say.__defaults__ = (';',)
    sub.function.__defaults__ = (0,)  closed.__closure__[1].cell_contents = 'z'
    closed.__closure__[0].cell_contents[0] = 'i'  wrapped.__closure__[0].cell_contents = wrapped_2
    Agent.say = Agent.say_2  Agent.tag = staticmethod(tag_2)  Agent.kind = classmethod(kind_2)  Loud.say = loud_say
    agent.say = render_2  agent.name = 'o'  Agent.mark = 'k'  partly.keywords['mark'] = '*'
    globals().update(render=render_2)  globals().update(agent=loud)  agent.__class__ = Loud
    """)


def _calls_of(changes: list[str]) -> list[str]:
    """The calls that ``changes`` may concern."""
    names = {re.split(r"\W", change)[0].lower() for change in changes}
    return [call for call in CALLS if any(name in call.lower() for name in names)] or list(CALLS)


@st.composite
def changed_programs(draw: Any) -> tuple[str, list[str]]:
    """Source of a jitted ``program(s, a, b, n, words)``, and statements that change what it runs."""
    changes = draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3))
    calls = st.sampled_from(_calls_of(changes)) | st.sampled_from(CALLS)
    lines: list[str] = []
    for name in ("program", "changed"):
        lines += ["@jit"] if name == "program" else []
        lines += [f"def {name}(s, a: str, b: str, n: int, words: list[str]):", "    out = []", "    s += a"]
        for _ in range(draw(st.integers(1, 4))):
            x = draw(st.sampled_from(["a", "b", "'lit'", "s.gen('x', max_tokens=2)"]))
            call = f"out.append({draw(calls).format(x=x)})"
            form = draw(st.sampled_from(["", "", "", "if 'e' in s.gen('y', max_tokens=2):", "for _ in range(2):"]))
            lines += [f"    {form}", f"        {call}"] if form else [f"    {call}"]
        lines += ["    out.append(s.gen('last', max_tokens=2))", "    return out", ""]
    return "\n".join(lines), changes
