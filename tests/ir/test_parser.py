from __future__ import annotations

import re
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import ContextOp, ExtendOp, GenOp, ReturnOp
from lmc.ir.errors import Location, ParseError, VerifyError
from lmc.ir.module import Function, Module, print_module
from lmc.ir.text.parser import MAX_BYTES, MAX_NESTING, parse, parse_verified
from lmc.ir.types import CTX, TEXT
from lmc.ir.verify.verifier import verify
from tests.equality import structurally_equal
from tests.ir.test_printer import EVERY_OP
from tests.module_strategies import modules


def body(*lines: str) -> str:
    """A module whose function holds ``lines`` between ``%c = lm.context`` and a return."""
    inner = "\n".join(lines)
    return f"module @m {{ func @m(%x: !text) {{\n%c = lm.context : !ctx\n{inner}\nlm.return %c\n}} }}"


def error_of(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text, "a.lmir")
    return caught.value


def test_the_diagnostic_shows_file_line_column_caret_cause_and_remedy():
    error = error_of("module @m {\n  func @m() {\n    %0 = lm.contxt : !ctx // oops\n    lm.return %0\n  }\n}")
    assert str(error) == (
        "a.lmir:3:10: error: unknown op lm.contxt\n"
        "        %0 = lm.contxt : !ctx // oops\n"
        "             ^~~~~~~~~\n"
        f"  remedy: {error.remedy}"
    )
    assert error.remedy is not None
    assert error.remedy.startswith("did you mean lm.context")
    assert error.location == Location("a.lmir", 3)
    assert error.column == 10


@pytest.mark.parametrize(
    ("line", "cause", "remedy", "place"),
    [
        ("%0 = lm.nothing_like_it_at_all_zzz %c : !ctx", "unknown op", "ops.py", "lm.nothing_like_it_at_all_zzz"),
        ("%0 = lm.end %d : !ctx", "%d is not defined", "define it above", "%d"),
        ("%0 = lm.end %0 : !ctx", "%0 is not defined", "define it above", "%0 : !ctx"),
        ("%xx = lm.end %xy : !ctx", "%xy is not defined", "did you mean %x?", "%xy"),
        ("%c = lm.context : !ctx", "%c is defined twice", "own name", "%c = lm.context : !ctx\nlm"),
        ("%0 = lm.end %c", "lm.end has 1 results but 0 types", "one type after the colon", "lm.end"),
        ("%0 = lm.context : !ctx, !ctx", "1 results but 2 types", "one type", "lm.context : !ctx, "),
        ("%0 = lm.context : !cxt", "unknown type !cxt", "use !ctx", "!cxt"),
        ("%0 = lm.end : !ctx", "lm.end lacks its operand context", "it takes %context", "lm.end"),
        ("%0 = lm.end %c, %c : !ctx", "does not take this operand", "it takes %context", "%c : !ctx\nlm"),
        ("%0 = lm.end (%c) : !ctx", "this is no context of lm.end", "it takes %context", "%c) : !ctx"),
        ("%0 = lm.end () : !ctx", "this is no context of lm.end", "it takes %context", "lm.end"),
        ('%0 = lm.extend %c ("a") : !ctx', "this is no text of lm.extend", "[text …]", '"a"'),
        ("%0 = lm.extend %c [1] : !ctx", "text of lm.extend holds text only", "write a string", "1]"),
        ("%0 = lm.extend %c, @user [] : !ctx", "this is no text", "a keyword (role)", "@user"),
        ("%0 = lm.context %c : !ctx", "lm.context does not take this operand", "no operands", "%c : !ctx\nlm"),
        ("lm.return %c (1)", "values of lm.return holds values only", "name a value", "1)"),
        ("%0 = lm.begin %c : !ctx", "lm.begin lacks its operand role", "a keyword (role)", "lm.begin"),
        ("py.assume %x", "py.assume lacks its attribute expected", "add {expected = …} (any literal)", "py.assume"),
        ("%0 = lm.prefill %c {scop = 1} : !ctx", "lm.prefill has no attribute scop", "it has: ahead, scope", "scop"),
        ("%0 = lm.end %c {a = 1} : !ctx", "lm.end has no attribute a", "it has: none", "a = 1"),
        ('%0 = lm.prefill %c {scope = "a", scope = "b"} : !ctx', "scope is given twice", "leave one", 'scope = "b"'),
        ('%0 = lm.extend %c, user [] {role = "user"} : !ctx', "role is given twice", "leave one", "role"),
        ("%0 = lm.prefill %c {scope = 1} : !ctx", "scope of lm.prefill is str", "of that type", "1} : !ctx"),
        ("%0 = lm.prefill %c {scope = []} : !ctx", "scope of lm.prefill is str", "of that type", "lm.prefill"),
        ('%0 = lm.sample %c {id = "a", n = 1.0} : !list<!text>', "n of lm.sample is int", "of that type", "1.0"),
        ('%0 = lm.sample %c {id = "a", n = true} : !list<!text>', "n of lm.sample is int", "of that type", "true"),
        ('%0, %1 = lm.gen %c {id = "a", stop = [1]} : !ctx, !text', "is tuple of str", "of that type", "1]"),
        (f'%0, %1 = lm.gen %c {{id = "a", top_p = 1{"0" * 400}}} : !ctx, !text', "is float", "of that type", "1000"),
        (f"py.assume %x {{expected = 1{'0' * 1300}}}", "this number is too long", "1300 characters", "1000"),
        ("py.assume %x {expected = 1e400}", "too large for a float", "write inf", "1e400"),
        (r'py.assume %x {expected = "a\qb"}', r"unknown escape \q", "use", r"\q"),
        (r'py.assume %x {expected = "\U00110000"}', r"unknown escape \U00110000", "use", r"\U00110000"),
        (r'py.assume %x {expected = "\u00"}', r"unknown escape \u", "use", r"\u00"),
        ('py.assume %x {expected = "a}', "this string does not end on its line", "close it", '"a}'),
        ('%"0 = lm.context : !ctx', "this string does not end on its line", "close it", '%"0'),
        ("%0 = lm.end %c : !ctx ^body() { lm.return %c }", "lm.end has no region body", "it has: none", "body"),
        ('%0 = lm.context : !ctx loc("a.py":1.5)', "a line is a whole number", "loc(", "1.5"),
        ("%0 = = lm.context : !ctx", "'=' does not belong here", "expected a word", "= lm"),
        ("%0 ? lm.context : !ctx", "'?' does not belong here", 'expected "," or "="', "? lm"),
        ("%0 = lm.context : !list<!ctx", "does not belong here", 'expected ">"', "lm.return"),
    ],
)
def test_what_is_wrong_in_a_function(line, cause, remedy, place):
    text = body(line)
    error = error_of(text)
    assert cause in error.cause
    assert remedy in (error.remedy or "")
    assert _place(text, error) == text.index(place, text.index(line))


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ("", "the text ends too early", 'continue with "module"'),
        ("module @m {", "the text ends too early", '"constraint" or "func" or "host" or "}"'),
        ("module m {}", "'m' does not belong here", "a symbol (@name)"),
        ("module @m {} }", "'}' does not belong here", "the end of the text"),
        (
            'module @m { host @h = "a:b" sha256 "" reads {late = true} }',
            "a host function has no attribute late",
            "early",
        ),
        ('module @m { host @h = "a:b" sha256 "" reads {early = 1} }', "early of a host function is a truth", "true or"),
        ('module @m { host @h = "a:b" sha256 "" reads {early = true, early = true} }', "given twice", "leave one"),
        (
            'module @m { host @h = "a:b" sha256 "" sometimes }',
            "unknown effect sometimes",
            "pure, local, samples, reads",
        ),
        ("module @m { constraint @c = regex }", "'}' does not belong here", 'a string ("…")'),
        ('module @m { constraint @c = regex "a" {space = "b"} }', "has no attribute space", "digest, whitespace"),
        ('module @m { constraint @c = regex "a" {digest = "b", digest = "b"} }', "is given twice", "leave one"),
        ('module @m { constraint @c = regex "a" {digest = 3} }', "digest of a constraint is a string", "quotes"),
        ('module @m { constraint @c = regex "a" {digest = ["3"]} }', "digest of a constraint is a string", "quotes"),
        ("module @m { func @m(%x) {} }", "')' does not belong here", '":"'),
        ("(" * (MAX_NESTING + 1), f"nested deeper than {MAX_NESTING}", "flatten"),
        ('"' + " " * MAX_BYTES, "the text is larger than 16 MiB", "split the program"),
        ('"' + "é" * (MAX_BYTES // 2), "the text is larger than 16 MiB", "split the program"),
    ],
)
def test_what_is_wrong_in_a_module(text, cause, remedy):
    error = error_of(text)
    assert cause in error.cause
    assert remedy in (error.remedy or "")


def test_brackets_in_strings_and_comments_are_no_nesting():
    parse(body(f'py.assume %x {{expected = "{"(" * 500}"}} // {"[" * 500}'))


def test_long_lines_are_cut_around_the_caret():
    error = error_of(body(f'%0 = lm.extend %c ["{"a" * 500}", %y, "{"b" * 500}"] : !ctx'))
    line, caret = error.excerpt.splitlines()
    assert len(line) < 120
    assert line.strip().startswith("…")
    assert line.endswith("…")
    assert line[caret.index("^") :].startswith("%y")


def test_what_does_not_print_is_not_shown_raw():
    error = error_of(body("%0 = lm.end %c \x1b[31m : !ctx"))
    assert "\x1b" not in str(error)


def test_json_escapes_mean_what_json_says():
    module = parse(body(r'py.assume %x {expected = "\ud83d\ude00 \u00e9 \/ \b\f \ud83d"}'))
    assert getattr(module.main.body.ops[1], "expected", None) == "\U0001f600 é / \b\f \ud83d"


def test_a_whole_number_is_a_float_where_only_a_float_fits():
    (op,) = [
        op
        for op in parse(body('%0, %1 = lm.gen %c {id = "a", temperature = 1} : !ctx, !text')).main.body.ops
        if isinstance(op, GenOp)
    ]
    assert type(op.temperature) is float


def test_each_function_has_its_own_names():
    one = "func @{}() {{ %0 = lm.context : !ctx lm.return %0 }}"
    assert len(parse(f"module @a {{ {one.format('a')} {one.format('b')} }}").functions) == 2


def test_ten_thousand_ops_take_seconds():
    builder = Builder([Value("essay", TEXT)])
    (context,) = builder.emit(ContextOp, [CTX])
    for index in range(5_000):
        location = Location("judge.py", index)
        (context,) = builder.emit(
            ExtendOp, [CTX], context=context, role="user", text=("Q: ", builder.parameters[0]), location=location
        )
        context, _ = builder.emit(GenOp, [CTX, TEXT], context=context, id=f"m/{index}", location=location)
    builder.emit(ReturnOp, context=context)
    module = Module("m", (Function("m", builder.block()),))
    start = time.process_time()
    again = parse(print_module(module))
    verify(again)
    assert time.process_time() - start < 20  # about 2 s; ten times that means something is not linear
    assert structurally_equal(again, module)


def test_a_broken_rule_is_shown_with_a_caret_in_the_text_it_was_read_from():
    text = body('%d, %t = lm.gen %c {id = "a", max_tokens = 0} : !ctx, !text loc("judge.py":7)')
    with pytest.raises(ParseError) as caught:
        parse_verified(text, "a.lmir")
    assert str(caught.value).startswith("a.lmir:3:10: error: lm.gen: max_tokens is at least 1\n")
    assert _place(text, caught.value) == text.index("lm.gen")
    assert structurally_equal(parse_verified(EVERY_OP), parse(EVERY_OP))


def test_a_broken_rule_of_the_whole_module_has_no_caret():
    with pytest.raises(VerifyError, match="module @m has no function @m"):
        parse_verified("module @m {}")


# Whatever the text, parser and verifier end in a diagnostic: these look for anything else.


def _judge(text: str) -> None:
    """Raise anything but the diagnostics that are allowed."""
    error = _diagnostic(text)
    if isinstance(error, ParseError):
        assert error.remedy
        assert 0 <= _place(text, error) <= len(text)


def _diagnostic(text: str) -> ParseError | VerifyError | None:
    try:
        parse_verified(text)
    except (ParseError, VerifyError) as error:
        return error
    return None


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text(text):
    _judge(text)


_TOKENS = re.findall(r'"(?:[^"\\]|\\.)*"|%[\w.]+|@[\w.]+|![a-z]+<?|[\w.]+|[^\s\w]', EVERY_OP)


@given(st.lists(st.sampled_from(_TOKENS), max_size=30), st.sampled_from(["", "module @m { func @m() {"]))
def test_any_tokens(tokens, start):
    _judge(start + " ".join(tokens))


@given(st.data())
def test_any_change_of_a_module_that_is_right(data):
    text = EVERY_OP if data.draw(st.booleans()) else print_module(data.draw(modules()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 12)))
        put = data.draw(st.one_of(st.sampled_from(_TOKENS), st.text(max_size=3), st.just(text[end : end + 40])))
        text = text[:at] + put + text[end:]
    _judge(text)


_FILES = [
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "filecheck").glob("*/*.lmir"))
]
_PIECES = [
    "\0",
    "\ufeff",
    "\u2028",
    "\x1c",
    "\r",
    '"\\ud800"',
    '"\\UFFFFFFFF"',
    '"\\u',
    "\\",
    "9" * 5000,
    "1e999",
    "NaN",
    "-",
    "//",
    "\ud800",
]


@given(st.sampled_from(_FILES), st.randoms(use_true_random=False))
def test_any_damage_to_a_file(text: str, random: Random):
    """Lines in another order, bytes that changed, pieces of other files, and what editors leave behind."""
    for _ in range(random.randint(1, 4)):
        lines = text.split("\n")
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        place = random.randrange(len(text) + 1)
        data = bytearray(text.encode("utf-8", "surrogatepass")) or bytearray(b" ")
        match random.randrange(5):
            case 0:
                lines[at], lines[other] = lines[other], lines[at]
                text = "\n".join(lines)
            case 1:
                text = "\n".join([*lines[:at], lines[other], *lines[at + 1 :]])
            case 2:
                data[random.randrange(len(data))] = random.randrange(256)
                text = data.decode("utf-8", "replace")
            case 3:
                text = text[:place] + random.choice(_PIECES) + text[place:]
            case _:
                piece = random.choice(_FILES)
                start = random.randrange(len(piece))
                text = text[:place] + piece[start : start + 100] + text[place + random.randrange(100) :]
    _judge(text)


@pytest.mark.parametrize("opening", ["[", "(", "{", "!list<", "module @m {", "^a() {", "[(", '["'])
def test_any_depth(opening):
    for prefix in ("", "module @m { func @m(%x: ", body("py.assume %x {expected = ").split("lm.return")[0]):
        _judge(prefix + opening * 20_000)


@pytest.mark.parametrize(
    "token", ["9" * 10**6, "-" + "9" * 5000, "1e" + "9" * 10**5, '"' + "\\u0041" * 10**5 + '"', "a." * 10**5 + "a"]
)
def test_any_size_of_a_token(token):
    for line in (f"py.assume %x {{expected = {token}}}", f"%{token} = lm.context : !ctx", f"{token} %x", f"{token}"):
        _judge(body(line))


def _place(text: str, error: ParseError) -> int:
    assert error.location is not None
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: error.location.line - 1]) + error.column - 1
