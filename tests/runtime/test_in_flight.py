from lmc.runtime.in_flight import InFlight


def test_who_waits_is_served_in_order_and_within_the_bound():
    bound = InFlight(2)
    started: list[str] = []

    def start(name: str) -> bool:
        started.append(name)
        return True

    for name, priority in (("a", (5, 0, 0)), ("b", (4, 0, 0)), ("c", (3, 0, 0)), ("d", (1, 2, 0)), ("e", (1, 1, 0))):
        bound.request(priority, lambda name=name: start(name))
    assert started == ["a", "b"]
    bound.release()
    assert started == ["a", "b", "e"]
    bound.release()
    bound.release()
    assert started == ["a", "b", "e", "d", "c"]


def test_what_no_longer_wants_to_start_takes_no_room():
    bound = InFlight(1)
    started: list[int] = []
    bound.request((0, 0, 0), lambda: False)
    bound.request((0, 0, 1), lambda: started.append(1) is None)
    bound.request((0, 0, 2), lambda: False)
    bound.request((0, 0, 3), lambda: started.append(3) is None)
    bound.release()
    assert started == [1, 3]


def test_requests_that_end_at_once_and_make_new_ones_never_recurse():
    bound = InFlight(1)
    count = 0

    def start() -> bool:
        nonlocal count
        count += 1
        bound.release()
        if count < 20_000:
            bound.request((0, count, 0), start)
        return True

    bound.request((0, 0, 0), start)
    assert count == 20_000
