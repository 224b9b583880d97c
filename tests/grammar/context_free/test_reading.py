import pytest

from lmc.grammar.context_free.reading import (
    MAX_NESTING,
    MAX_TEXT,
    Literal,
    Name,
    Range,
    RuleChoice,
    RuleRepeat,
    RuleSequence,
    TerminalPattern,
    read_grammar,
)
from lmc.ir.errors import ConstraintError


def _rule(text: str):
    return read_grammar(text).definitions["start"].expression


def test_a_definition_is_read_as_a_tree():
    assert _rule('start: "a"i B | /c+/i x~2..3 ["d"]') == RuleChoice(
        (
            RuleSequence((Literal("a", "i", 7), Name("B", (), 12))),
            RuleSequence(
                (
                    TerminalPattern("c+", "i", 16),
                    RuleRepeat(Name("x", (), 22), 2, 3),
                    RuleRepeat(Literal("d", "", 30), 0, 1),
                )
            ),
        )
    )
    assert _rule('start: ("a".."f")+ x{B, "c"}?') == RuleSequence(
        (
            RuleRepeat(Range("a", "f", 8), 1, None),
            RuleRepeat(Name("x", (Name("B", (), 21), Literal("c", "", 24)), 19), 0, 1),
        )
    )


def test_what_shapes_a_parse_tree_says_nothing():
    plain = read_grammar('start: x | "b"\nx: "c"\n')
    shaped = read_grammar('?start.2: x -> one\n  | "b" -> two  // comment\n\n# comment\n!x.-1: "c"')
    assert set(plain.definitions) == set(shaped.definitions)
    assert isinstance(shaped.definitions["start"].expression, RuleChoice)


def test_groups_may_go_on_in_the_next_line():
    assert _rule('start: ( "a"\n  | "b" )\n  "c"'.replace('\n  "c"', ' "c"')) == RuleSequence(
        (RuleChoice((Literal("a", "", 9), Literal("b", "", 17))), Literal("c", "", 23))
    )


def _text(grammar: str) -> str:
    found = _rule(grammar)
    assert isinstance(found, Literal)
    return found.text


def test_escapes_of_texts():
    assert _text(r'start: "\n\t\\\"\x41é\U0001f600"') == '\n\t\\"Aé😀'


def test_terminals_of_common_come_under_their_name_or_another():
    grammar = read_grammar("%import common.INT\n%import common (WS, CNAME)\n%import common.NUMBER -> N\n%ignore WS")
    assert list(grammar.definitions) == ["INT", "WS", "CNAME", "N"]
    assert len(grammar.ignored) == 1


@pytest.mark.parametrize(
    ("text", "position", "told"),
    [
        ('start: "a', 7, "'\"' is not Lark's syntax"),
        ("start: %json {}", 7, "'%json' where a rule, a terminal, a text or a pattern should be"),
        ("start: <|x|>", 7, "'<' is not Lark's syntax"),
        ("start: 'a'", 7, "\"'\" is not Lark's syntax"),
        ("start: A & B", 9, "'&' is not Lark's syntax"),
        ("start: @a", 7, "'@' is not Lark's syntax"),
        ('start: "a"{2,3}', 10, "'{' where a rule, a terminal, a text or a pattern should be"),
        ('start "a"', 6, "'\"a\"' where : after start should be"),
        ('start: ("a"', 11, "the end where ) should be"),
        ('start: "a")', 10, "')' where the end of the line should be"),
        ('start: "a" | *', 13, "'*' where a rule, a terminal, a text or a pattern should be"),
        ('start: "a"~', 11, "the end where a number of repeats should be"),
        ('start: "a"~3..2', 12, "repeats from 3 to 2"),
        ('start: "a"~1000000', 11, "1000000 repeats"),
        ('start: "a".."zz"', 12, "'zz' is no end of a range"),
        ('start: "z".."a"', 7, "the range from 'z' to 'a' is empty"),
        (r'start: "a\d"', 9, r"\d is no character"),
        (r'start: "\ud800"', 8, r"\ud800 is no character"),
        ('start: "\ud800"', 8, "it holds half of a surrogate pair"),
        ('start: "a"\nstart: "b"', 11, "start is defined twice"),
        ("%import .other (X)", 0, "other files are not read"),
        ("%import python.NAME", 0, "other files are not read"),
        ("%import common.NOTHING", 15, "common has no terminal NOTHING"),
        ("%import common.INT -> int", 22, "int names a terminal"),
        ("%declare X", 0, "%declare is not supported"),
        ("%override X: /a/", 0, "%override is not supported"),
        ("start: " + "(" * (MAX_NESTING + 1), 7 + MAX_NESTING, f"parentheses nest more than {MAX_NESTING} deep"),
        ("a" * (MAX_TEXT + 1), MAX_TEXT, f"it has more than {MAX_TEXT} characters"),
    ],
)
def test_what_is_no_lark_is_refused_at_its_place(text, position, told):
    with pytest.raises(ConstraintError) as caught:
        read_grammar(text)
    assert told in caught.value.cause
    assert caught.value.cause.startswith("grammar, line ")
    assert caught.value.position == position
    assert caught.value.remedy


def test_errors_show_the_line_around_the_place():
    with pytest.raises(ConstraintError) as caught:
        read_grammar('start: "a"\nx: ' + '"b" ' * 40 + "< " + '"c" ' * 40)
    assert "grammar, line 2, column 164: " in caught.value.cause
    assert len(caught.value.cause) < 130
