"""Exceptions of the program's own classes, raised in rounds of an unrolled loop."""

from tests.frontend.corpus.cases import case


class BudgetError(Exception):
    def __init__(self, used, limit):
        super().__init__(f"{used} > {limit}")
        self.used, self.limit = used, limit


@case("fix the bug", 2)
def the_fourth_part_is_too_long(s, a: str, n: int):
    ps = []

    def charge(t):
        if len(t) > n:
            raise BudgetError(len(t), n)
        return t

    try:
        for _ in range(4):
            ps.append(charge(s.gen("p", max_tokens=3)))
    except BudgetError as e:
        return e.used, ps
    return 0, ps


@case("fix the bug")
def parts_within_a_budget(s, a: str):
    used = 0

    def charge(t, limit=6):
        nonlocal used
        used += len(t)
        if used > limit:
            raise BudgetError(used, limit)
        return t

    parts = []
    try:
        for _ in range(4):
            parts.append(charge(s.gen("p", max_tokens=3)))
    except BudgetError as e:
        return {"parts": parts, "used": e.used, "over": e.used - e.limit, "why": str(e)}
    return {"parts": parts, "used": used}
