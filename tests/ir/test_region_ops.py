from __future__ import annotations

import pytest

from lmc.ir.errors import ParseError
from lmc.ir.module import print_module
from lmc.ir.text.parser import parse, parse_verified
from lmc.ir.verify.verifier import verify
from tests.ir.breaks import BREAK
from tests.ir.region_programs import GEN, TEMPLATE, module

GOOD = [
    "cf.cond %f ^then() { cf.yield {} } ^otherwise() { cf.yield {} }",
    "%r = cf.cond %f : !any ^then() { cf.yield (%n) } ^otherwise() { cf.yield (%xs) }",
    "%r = cf.cond %f : !text ^then() { " + BREAK + " } ^otherwise() { " + BREAK + " }",
    "%r = cf.cond %f : !list<!any> ^then() { cf.yield (%xs) } ^otherwise() { cf.yield (%xs) }",
    "%r = cf.loop (%n) : !int ^condition(%i: !int) { cf.condition %f (%i) } ^body(%j: !int) { cf.yield (%j) }",
    "%r = cf.loop (%n) : !text ^condition(%i: !any) { cf.condition %f (%x) } ^body(%j: !any) { cf.yield (%x) }",
    "cf.loop {limit = 1} ^condition() { " + BREAK + " } ^body() { " + BREAK + " }",
    "cf.loop ^condition() { cf.condition %f } ^body() { cf.yield {} }",
    "%r = cf.map (%xs) : !list<!ctx> ^body(%i: !int, %e: !text) { cf.yield (%c) }",
    "cf.map (%xs, %cs) {strict = true} ^body(%i: !any, %e: !any, %d: !ctx) { cf.yield {} }",
    "%r = cf.race (%cs) : !bool ^body(%i: !int, %d: !ctx) { py.assume %f {expected = true} cf.yield (%f) }",
    "%r, %d = cf.race (%cs) : !bool, !ctx ^body(%i: !int, %e: !ctx) { cf.yield (%f, %e) }",
    '%r = cf.cond %f : !text ^then() { cf.yield ("a") } ^otherwise() { lm.return %c }',
    "%r = cf.cond %f : !any ^then() { cf.yield (none) } ^otherwise() { cf.yield ([1, [true]]) }",
    "%r = cf.loop (0) : !int ^condition(%i: !int) { cf.condition %f (1) } ^body(%j: !int) { cf.unreachable }",
    "%ok, %e = cf.try : !bool, !any ^body() { cf.yield {} }",
    "%ok, %e = cf.try : !bool, !any ^body() { cf.yield {} } "
    "cf.cond %f ^then() { " + BREAK + " } ^otherwise() { cf.yield {} }",
    '%ok, %e, %r, %d = cf.try ("", %c) {base = true, id = "m/@cf.try"} : !bool, !any, !any, !ctx ^body() { '
    "%t = py.call int (%x) : !int cf.yield (%t, %c) }",
    "%ok, %e = cf.try : !bool, !any ^body() { cf.cond %f ^then() { cf.yield {} } ^otherwise() { cf.unreachable } "
    "cf.yield {} }",
]


@pytest.mark.parametrize("body", GOOD)
def test_what_fits_verifies(body: str):
    verify(parse(print_module(module(body))))


BAD = [
    # conditions
    ("cf.cond %n ^then() { cf.yield {} } ^otherwise() { cf.yield {} }", "cf.cond: %n is !int, a truth value"),
    (
        "cf.cond %f ^then(%i: !int) { cf.yield {} } ^otherwise() { cf.yield {} }",
        "parameters of then are (!int), should",
    ),
    ("cf.cond %f ^then() { cf.yield {} } ^otherwise(%i: !int) { cf.yield {} }", "parameters of otherwise are (!int)"),
    (
        "%r = cf.cond %f : !text ^then() { cf.yield (%x) } ^otherwise() { cf.yield (%n) }",
        "cf.cond: what otherwise yields are (!int), but results (!text)",
    ),
    (
        "%r = cf.cond %f : !any ^then() { cf.yield (%c) } ^otherwise() { cf.yield (%c) }",
        "what then yields are (!ctx), but results (!any)",
    ),
    (
        "cf.cond %f ^then() { cf.yield (%x) } ^otherwise() { cf.yield {} }",
        "what then yields are (!text), but results ()",
    ),
    (
        "cf.cond %f ^then() { cf.condition %f } ^otherwise() { cf.yield {} }",
        "cf.cond: then ends in cf.condition",
    ),
    # loops
    (
        "cf.loop {limit = 0} ^condition() { cf.condition %f } ^body() { cf.yield {} }",
        "cf.loop: limit is 0",
    ),
    (
        "cf.loop (%n) ^condition() { cf.condition %f } ^body() { cf.yield {} }",
        "cf.loop: initial are (!int), but parameters of condition ()",
    ),
    (
        "cf.loop (%a) ^condition(%i: !int) { cf.condition %f } ^body() { cf.yield (%n) }",
        "cf.loop: initial are (!any), but parameters of condition (!int)",
    ),
    (
        "cf.loop ^condition() { cf.condition %f (%n) } ^body(%i: !text) { cf.yield {} }",
        "cf.loop: values of condition are (!int), but parameters of body (!text)",
    ),
    (
        "%r = cf.loop : !text ^condition() { cf.condition %f (%n) } ^body(%i: !int) { cf.yield {} }",
        "cf.loop: values of condition are (!int), but results (!text)",
    ),
    (
        "cf.loop (%n) ^condition(%i: !int) { cf.condition %f } ^body() { cf.yield (%x) }",
        "cf.loop: what body yields are (!text), but parameters of condition (!int)",
    ),
    ("cf.loop ^condition() { cf.yield {} } ^body() { cf.yield {} }", "cf.loop: condition ends in cf.yield"),
    ("cf.loop ^condition() { cf.condition %f } ^body() { cf.condition %f }", "cf.loop: body ends in cf.condition"),
    ("cf.loop ^condition() { cf.condition %n } ^body() { cf.yield {} }", "cf.condition: %n is !int, a truth value"),
    # maps
    ("cf.map () ^body(%i: !int) { cf.yield {} }", "cf.map: no lists"),
    ("cf.map (%x) ^body(%i: !int, %e: !text) { cf.yield {} }", "cf.map: %x is !text, a list is needed"),
    ("cf.map (%a) ^body(%i: !int, %e: !any) { cf.yield {} }", "cf.map: %a is !any, a list is needed"),
    (
        "%r = cf.map (%xs) : !text ^body(%i: !int, %e: !text) { cf.yield (%e) }",
        "cf.map: result %r is !text",
    ),
    (
        "cf.map (%xs) ^body(%e: !text) { cf.yield {} }",
        "cf.map: parameters of body are (!text), should be (!int, !text)",
    ),
    (
        "%r = cf.map (%xs) : !list<!int> ^body(%i: !int, %e: !text) { cf.yield (%e) }",
        "cf.map: what body yields are (!text), but elements of results (!int)",
    ),
    ("cf.map (%xs) ^body(%i: !int, %e: !text) { cf.condition %f }", "cf.map: body ends in cf.condition"),
    (
        "cf.map (%xs) ^body(%i: !int, %e: !text) { " + BREAK + " }",
        "cf.map: a body whose elements run at the same time leaves",
    ),
    (
        "cf.map (%xs) ^body(%i: !int, %e: !text) { "
        "cf.cond %f ^then() { " + BREAK + " } ^otherwise() { cf.yield {} } cf.yield {} }",
        "cf.map: a body whose elements run at the same time leaves",
    ),
    # races
    ("%r = cf.race () : !bool ^body(%i: !int) { cf.yield (%f) }", "cf.race: no lists"),
    ("%r = cf.race (%n) : !bool ^body(%i: !int, %e: !int) { cf.yield (%f) }", "cf.race: %n is !int, a list is needed"),
    ("cf.race (%xs) ^body(%i: !int, %e: !text) { cf.yield (%f) }", "cf.race: has no results"),
    (
        "%r = cf.race (%xs) : !text ^body(%i: !int, %e: !text) { cf.yield (%e) }",
        "cf.race: %r is !text, a truth value",
    ),
    ("%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.yield {} }", "cf.race: body yields nothing"),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.yield (%e) }",
        "cf.race: the first value that body yields is !text, !bool is needed",
    ),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.yield (%f, %e) }",
        "cf.race: what body yields are (!bool, !text), but results (!bool)",
    ),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { " + BREAK + " }",
        "cf.race: a body whose elements run at the same time leaves",
    ),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) "
        '{ %w = host.call @write (%e) {id = "w"} : !any cf.yield (%f) }',
        "cf.race: an op in body writes",
    ),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.cond %f ^then() "
        '{ %w = host.call @write (%e) {id = "w"} : !any cf.yield {} } ^otherwise() { cf.yield {} } cf.yield (%f) }',
        "cf.race: an op in body writes",
    ),
    # protected regions
    ("%ok = cf.try : !bool ^body() { cf.yield {} }", "cf.try: the first results are (!bool), should be (!bool, !any)"),
    ("%ok, %e = cf.try : !any, !bool ^body() { cf.yield {} }", "cf.try: the first results are (!any, !bool), should"),
    ("%ok, %e = cf.try : !bool, !any ^body(%i: !int) { cf.yield {} }", "cf.try: parameters of body are (!int), should"),
    (
        "%ok, %e = cf.try : !bool, !any ^body() { cf.cond %f ^then() { lm.return %c } ^otherwise() { cf.yield {} } "
        "cf.yield {} }",
        "cf.try: body leaves the program",
    ),
    ("%ok, %e = cf.try : !bool, !any ^body() { lm.return %c }", "cf.try: body leaves the program"),
    ("%ok, %e = cf.try : !bool, !any ^body() { cf.unreachable }", "cf.try: body ends in cf.unreachable"),
    (
        "%ok, %e, %r = cf.try (%n) : !bool, !any, !text ^body() { cf.yield (%x) }",
        "cf.try: fallback are (!int), but results after the first two (!text)",
    ),
    (
        "%ok, %e, %r = cf.try (%x) : !bool, !any, !text ^body() { cf.yield (%n) }",
        "cf.try: what body yields are (!int), but results after the first two (!text)",
    ),
    # terminators
    ("cf.map (%xs) ^body(%i: !int, %e: !text) { lm.return %c }", "cf.map: a body whose elements run at the same time"),
    (
        "%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.unreachable }",
        "cf.race: body ends in cf.unreachable",
    ),
    ("cf.cond %f ^then() { %y = cf.unreachable : !int } ^otherwise() { cf.yield {} }", "cf.unreachable: results are"),
    (
        "%r = cf.cond %f : !int ^then() { cf.yield (1.0) } ^otherwise() { cf.yield (1) }",
        "what then yields are (!float)",
    ),
    (
        "%r = cf.cond %f : !ctx ^then() { cf.yield (none) } ^otherwise() { cf.yield (%c) }",
        "what then yields are (!none)",
    ),
    ("cf.cond %f ^then() { %y = cf.yield : !int } ^otherwise() { cf.yield {} }", "cf.yield: has no results"),
    (
        "cf.loop ^condition() { %y = cf.condition %f : !int } ^body() { cf.yield {} }",
        "cf.condition: has no results",
    ),
    ("cf.cond %f ^then() { %e = lm.end %c : !ctx } ^otherwise() { cf.yield {} }", "lm.end: ends a block, but is no"),
    ("cf.cond %f ^then() { } ^otherwise() { cf.yield {} }", "cf.cond: a region is empty"),
    (
        "cf.cond %f {probability = 1.5} ^then() { cf.yield {} } ^otherwise() { cf.yield {} }",
        "cf.cond: probability is 1.5",
    ),
    *(
        (
            f"cf.loop {{expected_rounds = {rounds}}} ^condition() {{ cf.condition %f }} ^body() {{ cf.yield {{}} }}",
            f"cf.loop: expected_rounds is {rounds}",
        )
        for rounds in ("-0.5", "inf", "nan")
    ),
    (
        'cf.cond %f {id = "f/@if*"} ^then() { cf.yield {} } ^otherwise() { cf.yield {} }',
        "cf.cond: 1 holes",
    ),
    *(
        (f'{op} {{id = "f/$"}} {rest}', ": 1 holes (* or $) in 'f/$', but 0 occurrences")
        for op, rest in (
            ("cf.loop", "^condition() { cf.condition %f } ^body() { cf.yield {} }"),
            ("cf.map (%xs)", "^body(%i: !int, %t: !text) { cf.yield {} }"),
            ("%won = cf.race (%xs)", ": !bool ^body(%i: !int, %t: !text) { cf.yield (%f) }"),
        )
    ),
    (
        'cf.map (%xs) {id = "f/m"} ^body(%i: !int, %t: !text) { cf.yield {} } '
        'cf.map (%xs) {id = "f/m"} ^body(%j: !int, %u: !text) { cf.yield {} }',
        "cf.map: two ops have the id 'f/m'",
    ),
    # lists of contexts
    ("%r = py.call len (%cs) : !int", "py.call: a context is no Python value"),
    ("%r = py.call list : !list<!list<!ctx>>", "py.call: a context is no Python value"),
    ('%r = host.call @get (%cs) {declared = "reads", id = "g"} : !any', "a context can't be passed to a host function"),
    ('%r = host.call @get {declared = "reads", id = "g"} : !list<!ctx>', "a context can't be passed to a host"),
    ("py.assume %cs {expected = 1}", "py.assume: %cs is a list of contexts"),
    ("%d = lm.end %cs : !ctx", "lm.end: %cs is !list<!ctx>, a context (!ctx) is needed"),
    # ids
    ('%d, %t = lm.gen %c {id = "a*"} : !ctx, !text', "lm.gen: 1 holes (* or $) in 'a*', but 0 occurrences"),
    ('%d, %t = lm.gen %c (%n) {id = "a"} : !ctx, !text', "lm.gen: 0 holes (* or $) in 'a', but 1 occurrences"),
    (
        '%r = host.call @get {declared = "reads", id = "g*"} : !any',
        "host.call: 1 holes (* or $) in 'g*', but 0 occurrences",
    ),
    ('%d, %t = lm.gen %c (%x) {id = "a$"} : !ctx, !text', "lm.gen: occurrence %x is !text, a number (!int)"),
    ('%l = lm.sample %c (%n) {id = "a", n = 1} : !list<!text>', "lm.sample: 0 holes"),
    ('%d, %t, %m = lm.select %c ["a"] (%n, %n) {id = "a*"} : !ctx, !text, !any', "lm.select: 1 holes (* or $)"),
    (
        '%d, %t = lm.gen %c (%n) {id = "a*"} : !ctx, !text %e, %u = lm.gen %c (%n) {id = "a*"} : !ctx, !text',
        "lm.gen: two ops have the id 'a*'",
    ),
]


@pytest.mark.parametrize(("body", "cause"), BAD)
def test_what_does_not_fit_is_refused_at_its_place(body: str, cause: str):
    with pytest.raises(ParseError) as caught:
        module(body)
    assert cause in caught.value.cause
    assert caught.value.remedy


def test_terminators_of_regions_end_no_function_and_a_program_returns_no_list_of_contexts():
    for end, cause in (
        ("cf.yield {}", "cf.yield: can't end a function"),
        ("cf.condition %f", "cf.condition: can't end a function"),
        ("lm.return %c (%cs)", "lm.return: %cs is a list of contexts"),
        ('lm.return %c () (%cs) {variable_names = ["v"]}', "lm.return: %cs is a list of contexts"),
        ("lm.break (%n)", "lm.break lacks its attribute record"),
    ):
        with pytest.raises(ParseError) as caught:
            parse_verified(TEMPLATE.replace("BODY", "").replace("lm.return %c", end))
        assert cause in caught.value.cause


def test_regions_are_given_by_name_once():
    for body, cause in (
        ("cf.cond %f ^then() { cf.yield {} }", "cf.cond lacks its region otherwise"),
        ("cf.cond %f ^then() { cf.yield {} } ^then() { cf.yield {} }", "the region then is given twice"),
        ("cf.cond %f ^body() { cf.yield {} }", "cf.cond has no region body"),
    ):
        with pytest.raises(ParseError, match=cause):
            module(body)


def test_arms_of_a_condition_may_share_ids_with_each_other_and_with_nothing_else():
    def cond(then: str, otherwise: str) -> str:
        return f"cf.cond %f ^then() {{ {then} cf.yield {{}} }} ^otherwise() {{ {otherwise} cf.yield {{}} }} "

    a, b, again, deep = GEN.format("p", "a"), GEN.format("q", "a"), GEN.format("r", "a"), GEN.format("s", "a")
    module(cond(a, b))
    module(cond(cond(a, b), cond(again, deep)))
    module(cond(cond("", a) + b, ""))  # the flag is true there: the first one never runs
    module(f"cf.cond %f ^then() {{ {a} lm.return %p }} ^otherwise() {{ cf.yield {{}} }} " + b)
    loop = "cf.loop ^condition() {{ {0} cf.condition %f }} ^body() {{ {1} cf.yield {{}} }} "
    module(loop.format(cond(a, b), ""))
    refused = (
        a + cond(b, ""),
        cond(a, "") + b,
        cond("", a) + b,
        cond(a + b, ""),
        cond(cond(a, ""), "") + b,
        cond("", cond(a, b)) + again,
        loop.format(a, b),
        loop.format(a, "") + b,
    )
    for twice in refused:
        with pytest.raises(ParseError, match="two ops have the id 'a'"):
            module(twice)


def test_occurrences_tell_ids_apart():
    module('%d, %t = lm.gen %c (%n) {id = "a*"} : !ctx, !text %e, %u = lm.gen %c {id = "a"} : !ctx, !text')
