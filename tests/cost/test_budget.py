import threading
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from lmc.cost.budget import Amount, Budget, BudgetLedger, Reservation
from lmc.ir.errors import BudgetError, InputError

amounts = st.builds(Amount, st.decimals(0, 4, places=3), st.integers(0, 40), st.integers(0, 4))


class AnyOrder(RuleBasedStateMachine):
    """Requests that reserve, leave, end and are withdrawn, and answers of earlier ones that are fetched, in any order.

    An answer is ``counted`` at its worst case, ``held`` while its cost is found out, or ``known``.
    """

    requests, answers = Bundle("requests"), Bundle("answers")
    has_refused = False

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(usd="9.5", tokens=100, calls=10)
        self.ledger = BudgetLedger(self.budget)
        self.decisions: dict[Reservation, BudgetError | None] = {}
        self.order: list[Reservation] = []
        self.settled: set[Reservation] = set()
        self.withdrawn: set[Reservation] = set()
        self.fetchable: dict[Reservation, str] = {}
        self.paid = Amount()

    @rule(target=requests, worst=amounts, rank=st.integers(0, 2))
    def reserve(self, worst: Amount, rank: int) -> Reservation:
        reservation = self.ledger.reserve(worst, self._decided, rank)
        self.order.append(reservation)
        return reservation

    def _decided(self, error: BudgetError | None, reservation: Reservation) -> None:
        assert reservation not in self.decisions
        turn = self._turn(reservation)
        assert all(turn <= self._turn(each) for each in self._waiting()), "the lowest rank is first, then what came"
        self.decisions[reservation] = error
        if error is not None and not self.has_refused:
            assert "counted" not in self.fetchable.values(), "their costs are found out before"
        self.has_refused = self.has_refused or error is not None

    @precondition(lambda self: not self.ledger.is_over)
    @rule(target=answers, worst=amounts)
    def add_fetchable(self, worst: Amount) -> Reservation:
        if not (self.ledger.promised + worst).fits(self.budget):
            worst = Amount()
        answer = self.ledger.add_fetchable(worst, self._found)
        self.fetchable[answer] = "counted"
        return answer

    def _found(self, error: BudgetError | None, answer: Reservation) -> None:
        assert error is None
        assert self.fetchable[answer] == "counted"
        self.fetchable[answer] = "held"

    @rule(answer=answers)
    def fetch(self, answer: Reservation) -> None:
        self.ledger.reopen(answer)
        if self.fetchable[answer] == "counted":
            self.fetchable[answer] = "held"

    @rule(answer=answers, way=st.sampled_from(["found", "unknown", "later"]))
    def end_fetch(self, answer: Reservation, way: str) -> None:
        if self.fetchable[answer] == "held":
            self.fetchable[answer] = "counted" if way == "later" else "known"
            if way != "later":
                self.paid += answer.worst if way == "unknown" else Amount()
        if way == "later":
            self.ledger.postpone(answer)
        else:
            self.ledger.settle(answer, answer.worst if way == "unknown" else Amount())

    @rule(request=consumes(requests), share=st.integers(0, 4), unknown=st.booleans())
    def settle(self, request: Reservation, share: int, unknown: bool) -> None:
        if self.decisions.get(request, 1) is not None or request in self.settled:
            return
        worst = request.worst
        actual = (
            worst if unknown else Amount(worst.usd * share / 4, worst.tokens * share // 4, worst.calls * share // 4)
        )
        self.paid += actual
        self.settled.add(request)
        self.ledger.settle(request, actual, int(unknown))
        self.ledger.settle(request, worst)  # once only

    @rule(request=consumes(requests))
    def withdraw(self, request: Reservation) -> None:
        was_decided = request in self.decisions
        if not was_decided:
            self.withdrawn.add(request)
        assert self.ledger.withdraw(request) == (not was_decided)

    @invariant()
    def the_budget_is_never_exceeded(self) -> None:
        spent = self.paid + self._sum_of("counted")
        worst = sum((each.worst for each in self._held()), spent)
        assert worst.fits(self.budget)
        assert (self.ledger.spent, self.ledger.promised) == (spent, worst)
        assert self.ledger.fetchable == self._sum_of("counted")

    def _held(self) -> list[Reservation]:
        requests = [each for each, error in self.decisions.items() if error is None and each not in self.settled]
        return [*requests, *(each for each, state in self.fetchable.items() if state == "held")]

    def _sum_of(self, wanted: str) -> Amount:
        return sum((each.worst for each, state in self.fetchable.items() if state == wanted), Amount())

    def _turn(self, request: Reservation) -> tuple[int, int]:
        """Rank and arrival. One that is decided before it is returned came last."""
        return request.rank, self.order.index(request) if request in self.order else len(self.order)

    def _waiting(self) -> list[Reservation]:
        return [each for each in self.order if each not in self.decisions and each not in self.withdrawn]

    @invariant()
    def none_waits_for_nothing(self) -> None:
        waiting = self._waiting()
        assert not set(waiting) & self.settled
        assert not waiting or self._held()


TestAnyOrder = AnyOrder.TestCase


def test_engines_that_answer_at_once_do_not_nest():
    ledger = BudgetLedger(Budget(calls=5000))
    done: list[int] = []

    def decided(error: BudgetError | None, reservation: Reservation) -> None:
        assert error is None
        if len(done) < 4999:
            ledger.reserve(Amount(calls=1), decided)
        done.append(1)
        ledger.settle(reservation, Amount(calls=1))

    ledger.reserve(Amount(calls=1), decided)
    assert ledger.spent == Amount(calls=5000) == Amount(calls=len(done))


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_error_of_one_decision_keeps_no_other_waiting(error: BaseException):
    ledger = BudgetLedger(Budget(calls=6))
    decided: list[BudgetError | None] = []

    def failing(*_: object) -> None:
        ledger.reserve(Amount(calls=2), lambda error, _: decided.append(error))
        raise error

    with nullcontext() if isinstance(error, Exception) else pytest.raises(KeyboardInterrupt):
        ledger.reserve(Amount(calls=3), failing)
    assert decided == [None]
    assert (ledger.spent.calls, ledger.unknown) == (3, 1), "it counts at its worst case"
    ledger.reserve(Amount(calls=1), lambda error, _: decided.append(error))
    assert decided == [None, None]


def test_threads_share_a_budget():
    ledger = BudgetLedger(Budget(tokens=1000))
    sent: list[Any] = []

    def work() -> None:
        for _ in range(200):
            ended = threading.Event()

            def decided(error: BudgetError | None, reservation: Reservation, ended: threading.Event = ended) -> None:
                if error is None:
                    sent.append(reservation)
                    assert ledger.promised.tokens <= 1000
                    ledger.settle(reservation, Amount(tokens=2))
                ended.set()

            ledger.reserve(Amount(tokens=7), decided)
            assert ended.wait(20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent.tokens == 2 * len(sent) <= 1000
    assert ledger.is_over
    assert ledger.promised == ledger.spent


@pytest.mark.parametrize("calls", [1, 4])
def test_an_error_names_the_budget_and_what_is_missing(calls: int):
    ledger = BudgetLedger(Budget(usd="0.01", calls=3))
    found: list[BudgetError | None] = []
    ledger.reserve(Amount(Decimal("0.02"), 5, calls), lambda error, _: found.append(error))
    [error] = found
    text = str(error)
    assert "0.01 dollars, 3 calls" in text
    assert f"0.02 dollars, {calls} calls" in text
    assert "--resume" in text
    assert ("attempts" in text) == (calls > 1)


@pytest.mark.parametrize(
    "limits",
    [{}, {"usd": 0}, {"usd": -1}, {"usd": float("nan")}, {"usd": "x"}, {"usd": True}, {"tokens": 0}, {"calls": 1.5}],
)
def test_other_limits_are_errors(limits: dict[str, Any]):
    with pytest.raises(InputError, match="budget"):
        Budget(**limits)


def test_dollars_are_those_that_were_written():
    assert Budget(usd=0.1).usd == Decimal("0.1")
    assert Budget(usd=0.1) == Budget(usd="0.1")
