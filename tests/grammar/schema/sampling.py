"""Outputs of an automaton, drawn at random, and the validators that they are held against."""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import jsonschema
from jsonschema.validators import extend

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.schema import to_node

CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER


def _multiple_of(_validator: Any, step: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """As decimals: `jsonschema` divides floats, and so takes 19.99 for no multiple of 0.01."""
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and (Fraction(repr(instance)) / Fraction(repr(step))).denominator > 1:
        yield jsonschema.ValidationError(f"{instance} is no multiple of {step}")


VALIDATOR: Any = extend(jsonschema.Draft202012Validator, {"multipleOf": _multiple_of})


def automaton_of(schema: Any, whitespace: Any = "compact") -> Automaton:
    arena = Arena()
    return Automaton(to_node(schema, arena, whitespace=whitespace), arena)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def accepts(schema: Any, value: Any) -> bool:
    """Whether the compact JSON of a value is an output of a schema."""
    return automaton_of(schema).matches(compact(value))


def is_valid(schema: Any, value: Any) -> bool:
    return VALIDATOR(schema, format_checker=CHECKER).is_valid(value)


def draw(automaton: Automaton, source: random.Random, steps: int = 60) -> bytes:
    """One output: random arcs and bytes for some steps, then the shortest way out."""
    state, made = 0, bytearray()
    for _ in range(steps):
        arcs = automaton.arcs(state)
        if not arcs or (automaton.accepting(state) and source.random() < 0.2):
            break
        mask, target = source.choice(arcs)
        members = [byte for byte in range(256) if mask >> byte & 1]
        made.append(source.choice(members))
        state = target
    rest = automaton.shortest(state)
    assert rest is not None, "a state from which nothing is accepted"
    return bytes(made) + rest
