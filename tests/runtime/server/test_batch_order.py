"""The order of the lines of a batch."""

import random
from itertools import pairwise

import numpy as np

from lmc.runtime.server.batches.order import PreparedLine, in_order


def line_of(number: int, group: int, length: int, most: int) -> PreparedLine:
    prompt = [group] * 40 + [1000 + number] * length
    return PreparedLine(number, (np.array(prompt, np.int32),), most)


def test_lines_that_share_a_prefix_are_beside_each_other_and_invalid_ones_come_first():
    lines = [line_of(number, number % 7, 5, 8) for number in range(140)] + [PreparedLine(200), PreparedLine(201)]
    random.Random(1).shuffle(lines)
    for kv_tokens in (None, 300):
        found = in_order(lines, kv_tokens, 8)
        assert sorted(line.number for line in found) == sorted(line.number for line in lines)
        assert {line.number for line in found[:2]} == {200, 201}
        groups = [line.number % 7 for line in found[2:]]
        assert sum(left != right for left, right in pairwise(groups)) == 6


def test_lines_that_read_much_and_lines_that_write_much_are_mixed():
    reading = [line_of(number, number, 900, 4) for number in range(60)]
    writing = [line_of(number, number, 5, 400) for number in range(100, 160)]
    found = in_order(reading + writing, 20_000, 16)
    kinds = [line.number < 100 for line in found]
    assert sum(left != right for left, right in pairwise(kinds)) > 20
    assert in_order([], 100, 4) == []
    assert in_order(reading[:1], 100, 4) == reading[:1]
