import pytest

from lmc.frontend.language.annotations import MISFIT, annotated_type, fit
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, list_of


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (str, TEXT), (int, INT), (float, FLOAT), (bool, BOOL), (None, NONE), (list[str], list_of(TEXT)),
        (list, ANY), (dict, ANY), (list[dict], ANY), (str | None, ANY), ([], ANY),
    ],
)  # fmt: skip
def test_types_of_annotations(annotation, kind):
    assert annotated_type(annotation) == kind


class Sub(str):
    pass


def test_results_are_made_exactly_what_was_promised():
    assert type(fit(Sub("x"), TEXT)) is str
    assert type(fit(1, FLOAT)) is float
    assert fit([1], list_of(INT)) == [1]


def test_what_was_not_promised_is_no_value():
    assert fit("1", INT) is MISFIT
    assert fit([1, "x"], list_of(INT)) is MISFIT
