"""Scheduler and memory with drafts and rewritten tokens, without a model."""

from tests.cache.test_scheduler import SCRATCH, Simulation


def test_a_draft_is_computed_with_the_last_token_and_stays_out_of_the_tree() -> None:
    simulation = Simulation(200, 64, 10, 0)
    sequence = simulation.add((0, 1, 2), 20)
    sequence.propose((5, 6))
    (rows,) = simulation.scheduler.next_step()
    assert (rows.start, rows.end) == (0, 5)
    assert simulation.memory.radix.total_tokens == 3
    simulation.model.compute([rows])
    sequence.accept()
    sequence.drop_draft()
    sequence.append(9)
    simulation.memory.fit(sequence)
    assert (sequence.tokens.tolist(), sequence.computed, sequence.page_count) == ([0, 1, 2, 5, 9], 4, 5)
    sequence.propose((7, 7, 7))
    (rows,) = simulation.scheduler.next_step()
    assert (rows.start, rows.end) == (4, 8)
    simulation.model.compute([rows])
    simulation.scheduler.drop(sequence)
    assert simulation.memory.pool.used_count == simulation.memory.radix.total_tokens == 3


def test_drafts_leave_prompts_half_of_a_step_and_are_gone_on_with() -> None:
    simulation = Simulation(200, 8, 10, 0)
    sequence = simulation.add((0, 1, 2), 40)
    simulation.step()
    sequence.propose((5,) * 12)
    long = simulation.add(tuple([2] * 40), 1)
    found: list[dict[bool, int]] = []
    for _ in range(3):
        slices = simulation.scheduler.next_step()
        found.append({(each.sequence is long): each.end - each.start for each in slices})
        simulation.model.compute(slices)
        for _ in range(found[-1][False]):
            if sequence.drafted:
                sequence.accept()
    assert found == [{False: 5, True: 4}, {False: 5, True: 4}, {False: 3, True: 6}]


def test_nobody_is_preempted_for_a_draft() -> None:
    simulation = Simulation(40, 64, 10, 0)
    old, young = simulation.add((0,) * 10, 20), simulation.add((1,) * 10, 4)
    simulation.step()
    old.propose((2,) * 19)
    rows = {each.sequence: each.end - each.start for each in simulation.scheduler.next_step()}
    assert rows == {old: 19, young: 1}
    assert simulation.memory.available == 0
    assert simulation.scheduler.preemptions == 0


def test_tokens_that_are_rewritten_are_computed_again_also_where_they_were_cached() -> None:
    """What the tree has of the old ones stays there, for others."""
    simulation = Simulation(60, 64, 10, 0)
    sequence = simulation.add((0, 1, 2), 20)
    simulation.step()
    sequence.rewrite(3, (4, 5, 6))
    simulation.memory.fit(sequence)
    simulation.model.compute(simulation.scheduler.next_step())
    assert simulation.memory.radix.total_tokens == 6
    sequence.rewrite(4, (7, 8))
    simulation.memory.fit(sequence)
    simulation.memory.check_invariants([sequence])
    assert (sequence.computed, sequence.shared, sequence.page_count) == (4, 4, 4)
    (rows,) = simulation.scheduler.next_step()
    assert (rows.start, rows.end) == (4, 6)
    simulation.model.compute([rows])
    sequence.want_from(3)
    (rows,) = simulation.scheduler.next_step()
    assert (rows.start, rows.end) == (3, 6)
    assert rows.slots.tolist() == [SCRATCH] * 3  # all of them are in the tree
    simulation.model.compute([rows])
    simulation.scheduler.finish(sequence)
    assert simulation.memory.radix.total_tokens == 8
    assert simulation.memory.radix.pinned_tokens == 0


def test_rewritten_tokens_that_were_no_numbers_are_forgotten_and_those_of_others_are_not() -> None:
    simulation = Simulation(60, 64, 10, 0)
    simulation.add((0, 1, 2, 4, 5, 6), 0)
    simulation.run()
    sequence = simulation.add((0, 1, 2), 20)
    sequence.rewrite(3, (4, 5, 6))
    simulation.memory.fit(sequence)
    simulation.model.compute(simulation.scheduler.next_step())
    assert sequence.found == 6
    sequence.rewrite(4, (7, 8))
    simulation.memory.fit(sequence)
    simulation.model.compute(simulation.scheduler.next_step())
    simulation.scheduler.drop(sequence)
    simulation.scheduler.purge(sequence)
    lengths = [
        simulation.memory.radix.match_prefix(tokens, sequence.cache_key).length
        for tokens in ((0, 1, 2, 4, 7, 8), (0, 1, 2, 4, 5, 6))
    ]
    assert lengths == [4, 6]
