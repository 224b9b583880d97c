"""Making the token index of a constraint: every state of its automaton, every token."""

from __future__ import annotations

import numpy as np

from lmc.grammar.automata.automaton import MAX_STATES, Automaton
from lmc.grammar.index.columns import byte_columns, forced_bytes
from lmc.grammar.index.composition import token_table
from lmc.grammar.index.index import TokenIndex, smallest
from lmc.grammar.index.tables import END
from lmc.grammar.vocabulary.vocabulary import Vocabulary


def build_index(automaton: Automaton, vocabulary: Vocabulary, *, max_states: int = MAX_STATES) -> TokenIndex:
    """The index of a constraint, whose automaton becomes complete on the way. The caller holds the automaton's lock.

    Raises:
        ConstraintError: there are more than ``max_states`` states, the index would be too large, or no output can be
            written with the tokens of this vocabulary.
    """
    automaton.expand_all(max_states)
    columns = byte_columns(automaton.rows[: len(automaton)])
    accepting = np.array([automaton.accepting(state) for state in columns.order.tolist()], np.bool_)
    table = token_table(vocabulary.trie, columns, accepting, all_bytes=vocabulary.has_all_bytes)
    table.class_of_token[list(vocabulary.eos_ids)] = END
    forced_byte, forced_delta = forced_bytes(columns, accepting)
    return TokenIndex(
        **{name: smallest(array) for name, array in table._asdict().items() if name != "bits_of_block"},
        bits_of_block=table.bits_of_block,
        forced_byte=forced_byte,
        forced_delta=smallest(forced_delta),
    )
