"""State that belongs to a thread: functions of a graph run in the threads of a pool, so none may leave any behind."""

# Programs as users write them.
# pyright: basic

import contextvars
import decimal
import sqlite3
import threading
from functools import lru_cache

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.cases import case

jit = JittedFunction
LOCAL = threading.local()
CURRENT = contextvars.ContextVar("CURRENT", default="nobody")


class Store:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def add(self, number):
        return self.connection.execute("select ? + 1", (number,)).fetchone()[0]


def put(value):
    LOCAL.value = value


def taken():
    return getattr(LOCAL, "value", None)


def enter(name):
    CURRENT.set(name)


def entered():
    return CURRENT.get()


@lru_cache
def rounded(digits):
    return str(decimal.Context(prec=digits).divide(decimal.Decimal(1), decimal.Decimal(3)))


def few_digits():
    decimal.getcontext().prec = 4


def third():
    return str(decimal.Decimal(1) / 3)


@tool
def looked_up(number: int) -> int:
    with sqlite3.connect(":memory:") as connection:
        return connection.execute("select ? * 2", (number,)).fetchone()[0]


@case("w", stops="what connect() does is not known to the capture")
def uses_a_database(s, a: str):
    database = sqlite3.connect(":memory:")
    database.execute("create table seen (word text)")
    s += a
    database.execute("insert into seen values (?)", (s.gen("x", max_tokens=2),))
    return database.execute("select word from seen").fetchall()


@case("w", stops="what connect() does is not known to the capture")
def uses_an_object_with_a_database(s, a: str):
    s += a
    store = Store()
    first = store.add(len(s.gen("x", max_tokens=2)))
    return store.add(first)


@case("w", stops="uses state of its thread")
def leaves_a_value_in_its_thread(s, a: str):
    s += a
    put(s.gen("x", max_tokens=2))
    s.gen("y", max_tokens=2)
    return taken()


@case("w", stops="of a ContextVar")
def sets_a_context_variable(s, a: str):
    s += a
    enter(s.gen("x", max_tokens=2))
    s.gen("y", max_tokens=2)
    return entered()


@case("w", stops="the method 'set' of a ContextVar can't be captured yet")
def sets_one_itself(s, a: str):
    s += a
    CURRENT.set(s.gen("x", max_tokens=2))
    s.gen("y", max_tokens=2)
    return CURRENT.get()


@case("w", stops="what localcontext() does is not known to the capture")
def sets_a_precision(s, a: str):
    with decimal.localcontext():
        few_digits()
        s += a
        return third(), s.gen("x", max_tokens=2)


@case("w")
def does_all_of_it_in_a_tool(s, a: str):
    s += a
    return looked_up(len(s.gen("x", max_tokens=2))), rounded(3)
