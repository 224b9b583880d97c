"""What is said of a pattern that is refused."""

from lmc.grammar.regex.syntax import refusal


def test_a_message_names_problem_characters_place_and_remedy():
    error = refusal("ab(?=c)", 2, 3, "a look-ahead is not supported", "say it otherwise")
    assert str(error) == (
        "a look-ahead is not supported: `(?=` at character 2 of the pattern `ab(?=c)`\n  remedy: say it otherwise"
    )
    assert error.position == 2


def test_a_message_shows_a_part_of_a_long_pattern():
    pattern = "a" * 500 + "(?=b)" + "c" * 500
    cause = refusal(pattern, 500, 3, "wrong", "").cause
    assert cause == f"wrong: `(?=` at character 500 of the pattern `…{'a' * 30}(?=b){'c' * 25}…`"
    assert refusal(pattern, 0, 1000, "wrong", "").cause.endswith(f"of the pattern `{'a' * 60}…`")
    assert refusal(pattern, 1004, 1, "wrong", "").cause.endswith(f"`…{'c' * 60}`")


def test_a_message_shows_what_does_not_print():
    cause = refusal("\\\n\ud800é", 1, 2, "wrong", "").cause
    assert cause == r"wrong: `\n\ud800` at character 1 of the pattern `\\n\ud800é`"
