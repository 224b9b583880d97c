from __future__ import annotations

import pytest

from lmc.passes.analysis.liveness import exposed_values
from tests.passes.modules import module_of

START = "    %0 = lm.context : !ctx\n"


def _exposed(body: str) -> set[str]:
    return {value.name for value in exposed_values(module_of(START + body).main.body)}


def test_nothing_is_exposed_where_nothing_leaves():
    assert _exposed("%a = py.call list (%x) : !list<!text>\n lm.return %0") == set()


def test_what_a_writing_host_function_gets_is_exposed_and_what_may_share_it():
    body = """
    %a = py.call list (%x) : !list<!text>
    %b = py.call add (%a, %l) : !list<!text>
    %c = py.call list (%x) : !list<!text>
    %n2 = py.call len (%a) : !int
    %w = host.call @write (%b) {id = "f/w"} : !text
    lm.return %0
    """
    assert _exposed(body) == {"a", "b", "l"}


@pytest.mark.parametrize("declared", ["pure", "read"])
def test_other_host_functions_expose_nothing(declared: str):
    effect = {"pure": "pure", "read": "reads"}[declared]
    body = f'%w = host.call @{declared} (%l) {{declared = "{effect}", id = "f/w"}} : !text\n lm.return %0'
    assert _exposed(body) == set()


def test_texts_numbers_and_contexts_are_immutable():
    body = '%w = host.call @write (%x, %n) {id = "f/w"} : !text\n lm.return %0 (%x) {structure = "{\\"leaf\\":0}"}'
    assert _exposed(body) == set()


def test_what_the_caller_gets_back_is_exposed():
    body = """
    %a = py.call str.split (%x) : !list<!text>
    %b = py.call str.split (%x) : !list<!text>
    lm.return %0 (%a) {structure = "{\\"leaf\\":0}"}
    """
    assert _exposed(body) == {"a"}


def test_identity_is_seen():
    body = """
    %a = py.call str.split (%x) : !list<!text>
    %b = py.call str.split (%x) : !list<!text>
    %i = py.call is (%a, %b) : !bool
    lm.return %0
    """
    assert _exposed(body) == {"a", "b"}
