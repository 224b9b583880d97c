"""Types of calls of pure builtins, by those of their arguments, and proofs that a call can't raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lmc.ir.types import ANY, BOOL, FLOAT, INT, SCALAR_TYPES, TEXT, ListType, Type, list_of

ResultType = Callable[[Sequence[Type]], Type]
Safe = Callable[[Sequence[Type]], bool]


def always_gives(kind: Type) -> ResultType:
    """``kind``, whatever the arguments."""
    return lambda _: kind


def arithmetic(types: Sequence[Type]) -> Type:
    """Int op int is int, with a float it is float, text + text is text, list + list is a list."""
    kinds = {INT if kind == BOOL else kind for kind in types}
    if kinds == {INT}:
        return INT
    if kinds and kinds <= {INT, FLOAT}:
        return FLOAT
    if len(kinds) == 1 and len(types) == 2:
        kind = next(iter(kinds))
        if kind == TEXT or isinstance(kind, ListType):
            return kind
    return list_of(ANY) if kinds and all(isinstance(kind, ListType) for kind in kinds) else ANY


def repeat(types: Sequence[Type]) -> Type:
    """Text times int is text, a list of scalars times int such a list; else as arithmetic."""
    if TEXT in types and INT in types:
        return TEXT
    lists = [kind for kind in types if isinstance(kind, ListType)]
    if len(lists) == 1 and (INT in types or BOOL in types):
        return lists[0] if lists[0].element in SCALAR_TYPES else ANY
    return arithmetic(types) if TEXT not in types else ANY


def division(types: Sequence[Type]) -> Type:
    """Numbers give a float."""
    return FLOAT if set(types) <= {INT, FLOAT, BOOL} else ANY


def remainder(types: Sequence[Type]) -> Type:
    """``%`` of a text formats it; else as arithmetic."""
    return TEXT if types and types[0] == TEXT else arithmetic(types)


def type_of_first(types: Sequence[Type]) -> Type:
    """The type of the first argument."""
    return types[0] if types else ANY


def second(types: Sequence[Type]) -> Type:
    """The type of the second argument."""
    return types[1] if len(types) > 1 else ANY


def same_number(types: Sequence[Type]) -> Type:
    """An int gives an int, a float a float."""
    return types[0] if types and types[0] in (INT, FLOAT) else ANY


def element(types: Sequence[Type]) -> Type:
    """An element of the list, or a character of the text, that comes first."""
    if not types:
        return ANY
    if types[0] == TEXT:
        return TEXT
    return types[0].element if isinstance(types[0], ListType) else ANY


def same_list(types: Sequence[Type]) -> Type:
    """A list of what the first argument, a list or a text, holds."""
    if types and isinstance(types[0], ListType):
        return types[0]
    return list_of(TEXT) if types and types[0] == TEXT else list_of(ANY)


def list_of_arguments(types: Sequence[Type]) -> Type:
    """A list of the arguments."""
    return list_of(types[0]) if types and len(set(types)) == 1 else list_of(ANY)


def extreme(types: Sequence[Type]) -> Type:
    """One of the arguments, or of the elements of the only one."""
    if len(types) == 1:
        return element(types)
    return types[0] if len(set(types)) == 1 else ANY


def two_alike(types: Sequence[Type]) -> Type:
    """The type of the last two arguments, where they are of one."""
    return types[-1] if len(types) >= 2 and types[-1] == types[-2] else ANY


# What Python can compare, print and test for truth without running code of the user's, and without end: a value of type
# ``!any`` may be an object whose ``__bool__`` raises, such as an array, and a ``!json`` one may be nested too deep.
_NUMBERS = frozenset({INT, FLOAT, BOOL})
# An int of more than 4300 digits can't be printed.
_PRINTABLE = SCALAR_TYPES - {INT}


def _innermost(kind: Type) -> Type:
    while isinstance(kind, ListType):
        kind = kind.element
    return kind


def never_safe(_: Sequence[Type]) -> bool:
    """Accept nothing."""
    return False


def always_safe(_: Sequence[Type]) -> bool:
    """Accept any number of arguments of any type."""
    return True


def safe_for_two(types: Sequence[Type]) -> bool:
    """Accept two arguments of any type."""
    return len(types) == 2


def safe_for_two_plain(types: Sequence[Type]) -> bool:
    """Accept two arguments that Python compares itself."""
    return len(types) == 2 and all(_innermost(kind) in SCALAR_TYPES for kind in types)


def safe_for_ordered(types: Sequence[Type]) -> bool:
    """Accept two numbers or two texts, which are ordered."""
    return len(types) == 2 and (set(types) <= _NUMBERS or set(types) == {TEXT})


def safe_for_numbers_alike(types: Sequence[Type]) -> bool:
    """Accept two ints, or two floats: an int may be too large to become one."""
    return len(types) == 2 and (set(types) <= {INT, BOOL} or set(types) == {FLOAT})


def safe_for_addition(types: Sequence[Type]) -> bool:
    """Accept two ints, two floats, two texts or two lists."""
    together = set(types) == {TEXT} or all(isinstance(kind, ListType) for kind in types)
    return safe_for_numbers_alike(types) or (len(types) == 2 and together)


def safe_for_one_number(types: Sequence[Type]) -> bool:
    """Accept one number."""
    return len(types) == 1 and types[0] in _NUMBERS


def safe_for_one_sized(types: Sequence[Type]) -> bool:
    """Accept one text or list."""
    return len(types) == 1 and (types[0] == TEXT or isinstance(types[0], ListType))


def safe_for_sized(types: Sequence[Type]) -> bool:
    """Accept any number of texts and lists."""
    return all(safe_for_one_sized((kind,)) for kind in types)


def safe_for_enumerated(types: Sequence[Type]) -> bool:
    """Accept a text or list, and a first number."""
    return 0 < len(types) <= 2 and safe_for_one_sized(types[:1]) and set(types[1:]) <= {INT, BOOL}


def safe_for_texts(*counts: int) -> Safe:
    """Accept as many texts as one of ``counts``."""
    return lambda types: len(types) in counts and set(types) == {TEXT}


def safe_for_printable(types: Sequence[Type]) -> bool:
    """Accept one argument that Python prints itself, whatever its size."""
    return len(types) == 1 and _innermost(types[0]) in _PRINTABLE


def safe_for_truth_of_first(count: int) -> Safe:
    """Accept ``count`` arguments; Python tests the first for truth itself."""
    return lambda types: len(types) == count and (isinstance(types[0], ListType) or types[0] in SCALAR_TYPES)
