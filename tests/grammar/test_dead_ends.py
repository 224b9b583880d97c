"""What it costs to find out where tokens lead, with a vocabulary that can't write every byte."""

import pytest

from lmc.grammar import facts as facts_module
from lmc.grammar.compiling import compile
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import bits


def test_an_end_that_is_deep_among_many_branches_is_found_in_few_steps() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"ab", b"<end>"], (), 3)
    constraint = compile(regex="(a|b)*a(a|b){300}", tokenizer=vocabulary)
    assert isinstance(constraint, RegularConstraint)
    assert constraint.automaton.work < 100_000
    assert bits(constraint.start().mask()) == [0, 1, 2]
    with pytest.raises(ConstraintError, match="can't be worked out in"):
        constraint.build()
    before = constraint.automaton.work
    assert constraint.facts().longest_tokens is None
    assert constraint.automaton.work - before < 2 * facts_module.MAX_WORK
