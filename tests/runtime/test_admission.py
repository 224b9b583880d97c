import asyncio

import pytest

from lmc.runtime.admission import Admission


def run(admission: Admission, sizes: list[int], *, grows: int = 0) -> tuple[list[int], int]:
    """Let instances of these sizes in; gives the order in which they started and the most that were under way."""
    order: list[int] = []
    most = 0

    async def instance(number: int, size: int) -> None:
        nonlocal most
        await admission.enter()
        order.append(number)
        most = max(most, admission._active)
        admission.seen(size)
        await asyncio.sleep(0.002)
        admission.seen(size + grows)
        await asyncio.sleep(0)
        admission.leave()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number, size in enumerate(sizes):
                group.create_task(instance(number, size))

    asyncio.run(main())
    assert admission._active == 0
    return order, most


@pytest.mark.parametrize(
    ("limit", "kv_tokens", "most"), [(3, None, 3), (8, 100, 5), (8, 40, 2), (8, 5, 1), (2, 10_000, 2)]
)
def test_no_more_than_the_limit_and_the_pool(limit: int, kv_tokens: int | None, most: int):
    assert run(Admission(limit, kv_tokens), [20] * 12) == (list(range(12)), most)


def test_the_largest_seen_counts_for_all():
    order, most = run(Admission(50, 100), [1] * 20, grows=49)
    assert order == list(range(20))
    assert most == 20  # nobody knew yet
    order, most = run(Admission(50, 100), [25] + [1] * 10)
    assert most == 4


def test_before_one_has_ended_each_counts_twice():
    admission = Admission(50, 100)

    async def main() -> int:
        for _ in range(2):
            await admission.enter()
            admission.seen(25)
        third = asyncio.ensure_future(admission.enter())
        await asyncio.sleep(0.01)
        assert not third.done()
        admission.leave()
        await asyncio.wait_for(third, 1)
        return admission._active

    assert asyncio.run(main()) == 2


def test_who_gives_up_waiting_leaves_no_gap():
    admission = Admission(1, None)

    async def main() -> None:
        await admission.enter()
        waiting = [asyncio.ensure_future(admission.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        admission.leave()
        waiting[1].cancel()  # it has been let in already, but does not know
        await asyncio.wait_for(waiting[2], 1)
        assert admission._active == 1

    asyncio.run(main())


def test_tokens_need_not_be_counted_without_a_bound():
    assert not Admission(3, None).counts_tokens
    assert Admission(3, 10).counts_tokens
