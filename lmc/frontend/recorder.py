"""A capture session: records ops into one block, in program order, and remembers what they depend on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from lmc.frontend.choosing import either, emit_condition
from lmc.frontend.constraint_options import ConstraintSpec
from lmc.frontend.growing import as_value, is_grown
from lmc.frontend.id_values import holes_of
from lmc.frontend.locations import user_location
from lmc.frontend.meeting import Meeting, Way
from lmc.frontend.proxy import Proxy, symbol
from lmc.frontend.refusals import bad, described
from lmc.frontend.regions import Ended
from lmc.frontend.sampling import GenerationOptions
from lmc.frontend.session import NEEDED
from lmc.frontend.sizes import is_too_large
from lmc.frontend.typed_values import TypedRecorder
from lmc.frontend.unclear import UNSURE, Maybe, Unclear
from lmc.frontend.unknown_branches import UnknownBranches, unknown_branches
from lmc.ir import structure
from lmc.ir.choices import checked_choice, checked_choices
from lmc.ir.core import Effect, Value
from lmc.ir.errors import InputError
from lmc.ir.ops import (
    BeginOp,
    BreakOp,
    ContextOp,
    EndOp,
    ExtendOp,
    GenOp,
    ReturnOp,
    SampleOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, TEXT, ListType, list_of
from lmc.ir.wording import with_article

_SCALARS = (TEXT, INT, FLOAT, BOOL, NONE)


class Recorder(TypedRecorder):
    """Records what a program does with symbolic values. ``inputs`` are the arguments that are given, by name."""

    # Ends

    def finish(self, context: Value, variables: Mapping[str, Any], value: Any) -> None:
        """End with ``lm.return``. Raises ``CaptureBreak`` where ``value`` can't stand in the IR."""
        leaves: list[Value] = []

        def leaf(part: Any) -> int | None:
            grown: Any = part
            if type(part) is Proxy or is_grown(part):
                leaves.append(self.value_of(part if type(part) is Proxy else as_value(self, grown)))
                return len(leaves) - 1
            if is_too_large(part):
                raise InputError(f"it holds {with_article(type(part).__name__)} that is too large")
            if id(part) in self.foreign and id(part) not in self.frozen:
                raise InputError("it is a container that the program did not make itself")
            return None

        try:
            nesting = structure.encode(value, leaf)
        except InputError as error:
            raise self.stop(
                f"the program's result can't be captured: {error.cause}",
                "return texts, numbers, or new lists, tuples and dicts of them",
                self.start,  # no line of the user's runs any more
            ) from error
        maybe = {name: part for name, part in variables.items() if type(part) is Maybe}
        held = [part.value if type(part) is Maybe else part for part in variables.values()]
        if any(type(part) is Unclear for part in held):
            raise self.unclear("a variable of the state")
        self.emit(
            ReturnOp,
            location=self.start,  # no line of the user's runs any more
            context=context,
            values=tuple(leaves),
            structure=nesting,
            variables=tuple(self._held(part) for part in held),
            variable_names=tuple(variables),
            present=tuple(self.operand(part.present).ir for part in maybe.values()),
            present_names=tuple(maybe),
        )

    def _held(self, part: Any) -> Value:
        """What a variable of the state is, as an IR value: what was set to something plain has none yet."""
        ir = self.operand(part).ir
        return ir if isinstance(ir, Value) else self.value_of(self.constant(part))

    def finish_broken(self) -> None:
        """End with ``lm.break``: everything that ran is handed to the eager continuation."""
        assert self.broken is not None
        self.regions.root.emit(
            BreakOp,
            location=self.broken.location,
            values=tuple(value for _, results in self._recorded for value in results),
            ids=tuple(op_id for op_id, _ in self._recorded),
            counts=tuple(len(results) for _, results in self._recorded),
            cause=self.broken.cause,
        )

    # Ops

    def new_context(self) -> Value:
        return self.emit(ContextOp, (CTX,), location=self.start if self.ticks == 0 else None)[0]

    def extend(self, context: Value, role: str | None, text: Any) -> Value:
        return self.emit(ExtendOp, (CTX,), context=context, role=role, text=self.ir_parts(text))[0]

    def begin(self, context: Value, role: str) -> Value:
        return self.emit(BeginOp, (CTX,), context=context, role=role)[0]

    def end(self, context: Value) -> Value:
        return self.emit(EndOp, (CTX,), context=context)[0]

    def extend_or_end(self, context: Value, text: Any, answer: Any) -> Value:
        if type(answer) is Proxy and type(text) is Proxy and self.value_of(answer) == self.value_of(text):
            return self.end(context)
        if type(answer) is not Proxy or not symbol(answer).is_scalar:
            if answer is not UNSURE and type(text) is str and not _is_json(text.strip()):
                return self.extend(context, "assistant", text)  # the answer meets a schema, so it is JSON
            raise self.stop(
                "an assistant message follows an answer, and only a run knows whether it repeats that answer",
                "for a turn that is the answer, write s += lmc.assistant(lmc.gen(…)); for a turn after the answer, "
                "open it: with s.assistant(): s += text",
            )
        said = self.pure("str", (answer,))
        same = self.pure("eq", tuple(self.pure("str.strip", (part,)) for part in (text, said)))
        self.begin_construct()
        ends: list[tuple[Value, Ended]] = []
        for appended in (self.end, lambda context: self.extend(context, "assistant", text)):
            self.regions.open()
            ends.append((appended(context), self.regions.leave()))
        meeting = Meeting(self, same, (Way((), ends[0][1]), Way((), ends[1][1])))
        found = meeting.context(ends[0][0], ends[1][0])
        emit_condition(self, meeting)
        self.end_construct()
        return found

    def generate(
        self, context: Value, op_id: str, name: str | None, options: GenerationOptions
    ) -> tuple[Value, Proxy, Proxy | None]:
        types = (CTX, self.value_type(options), *((ANY,) if options.logprobs is not None else ()))
        results = self.emit(
            GenOp,
            types,
            names=(None, _wish(name)),
            context=context,
            id=str(op_id),
            occurrences=holes_of(op_id),
            name=name,
            constraint=self._constraint(options.constraint),
            **options.attributes,
        )
        self.record(op_id, results)
        value, *meta = (self._drawn(result, name) for result in results[1:])
        return results[0], self.converted(value, op_id, _origin(name), options), meta[0] if meta else None

    def sample(
        self, context: Value, op_id: str, name: str | None, options: GenerationOptions, count: int
    ) -> tuple[list[Any], Proxy | None]:
        types = (list_of(self.value_type(options)), *((ANY,) if options.logprobs is not None else ()))
        results = self.emit(
            SampleOp,
            types,
            names=(_wish(name),),
            context=context,
            id=str(op_id),
            occurrences=holes_of(op_id),
            name=name,
            n=count,
            constraint=self._constraint(options.constraint),
            **options.attributes,
        )
        self.record(op_id, results)
        drawn, *meta = (self._drawn(result, name) for result in results)
        drawn = self.converted(drawn, op_id, _origin(name), options)
        values = self.born([self.pure("getitem", (drawn, index), total=True) for index in range(count)])
        return values, meta[0] if meta else None

    def select(
        self, context: Value, op_id: str, name: str | None, choices: Any, method: str
    ) -> tuple[Value, Proxy, Proxy]:
        results = self.emit(
            SelectOp,
            (CTX, TEXT, ANY),
            names=(None, _wish(name)),
            context=context,
            choices=choices,
            id=str(op_id),
            occurrences=holes_of(op_id),
            name=name,
            method=method,
        )
        self.record(op_id, results)
        return results[0], self._drawn(results[1], name), self._drawn(results[2], name)

    # What the ways through a condition have left differently

    def clear(self, value: Any, what: str) -> Any:
        if type(value) is Maybe and self.presence(value) is True:
            value = value.value
        if type(value) is Unclear and value.because is not None:
            raise self.stop(*value.because)
        if type(value) in (Maybe, Unclear):
            raise self.unclear(what)
        return value

    def either(self, value: Any, default: Any, what: str) -> Any:
        if type(value) is Maybe:
            present = self.presence(value)
            if type(present) is bool:
                value = value.value if present else default
            else:
                value = either(self, value, default, what)
        return self.clear(value, what)

    def presence(self, value: Any) -> Any:
        if type(value) is not Maybe:
            return True
        known = self.regions.known(self.value_of(value.present))
        return value.present if known is None else known

    def transcript(self, context: Value) -> Proxy:
        (result,) = self.emit(TranscriptOp, (TEXT,), context=context)
        return self.proxy(result, "the text of the state")

    def added(self, context: Value, before: Value) -> Proxy:
        (result,) = self.emit(TranscriptOp, (TEXT,), context=context, since=(before,))
        return self.proxy(result, "the text that was appended")

    def message_list(self, context: Value) -> Any:  # noqa: ARG002
        raise self.stop(
            "the messages of a state are known only when the program runs",
            "nothing has to change: it goes on eagerly from here; the messages of a finished run are in its result",
        )

    def derive(self, function: Callable[..., Any], *arguments: Any) -> Proxy:
        return self.host_call(function, self.path, arguments, {}, effect=Effect.PURE, result_type=ANY)

    def unknown_branches(self, state: Any, n: Any) -> UnknownBranches | None:
        return unknown_branches(self, state, n)

    def check_called(self, function: Any) -> None:
        if type(function) is not FunctionType or id(function.__code__) not in self.codes:
            name = getattr(function, "__name__", type(function).__name__)
            raise self.stop(
                f"{name}() is called for each branch, but is not transformed",
                f"write a lambda around it: lambda i: {name}(i)",
            )

    def may_raise(self) -> None:
        if self.catching:
            raise self.stop_protected()

    def as_text(self, value: Any) -> Any:
        if type(value) is not Proxy:
            return str.__getitem__(value, slice(None))
        if symbol(value).type == TEXT:
            return value
        before = self.last_host
        text = self.pure("text", (value,))
        self.last_host = before  # the text does not answer the operation that appends it
        return text

    def concrete(self, value: Any, use: str = NEEDED) -> Any:
        if type(value) is not Proxy:
            return value
        if isinstance(symbol(value).type, ListType):
            count = self.specialise(self.length(value), use)
            return [self.specialise(self.pure("getitem", (value, index), total=True), use) for index in range(count)]
        return self.specialise(value, use)

    def choices(self, value: Any) -> tuple[str | Value, ...]:
        if type(value) is Proxy and symbol(value).type == list_of(TEXT):
            # A list that the user's functions may still change is read here, not when the choice is made.
            return (self.value_of(self.pure("list_from", (value,)) if symbol(value).volatile else value),)
        if is_grown(value):
            items: Any = value
            value = as_value(self, items)
            if symbol(value).type == list_of(TEXT):
                return (self.value_of(value),)
        if type(value) is Proxy and not self.is_known(value) and symbol(value).type in (ANY, list_of(ANY)):
            before = self.last_host
            texts = self.pure("choices", (value,))
            self.last_host = before  # the texts do not answer the operation that chooses
            return (self.value_of(texts),)
        if type(value) is Proxy and symbol(value).type in _SCALARS:
            raise bad(
                f"choices is {with_article(symbol(value).type.name)} ({symbol(value).origin})", "give a list of texts"
            )
        found = self.concrete(value, "select needs its choices now")
        if type(found) not in (list, tuple):
            raise bad(f"choices is {described(found)}", "give a list of texts")
        if not found:
            checked_choices(found, user_location())
        return tuple(self._choice(choice) for choice in found)

    def _choice(self, choice: Any) -> str | Value:
        if type(choice) is not Proxy:
            return checked_choice(choice, user_location())
        if symbol(choice).type == TEXT:
            return self.value_of(choice)
        if symbol(choice).type != ANY:
            if symbol(choice).type in _SCALARS:
                raise bad(
                    f"a choice is no text: {symbol(choice).origin} ({with_article(symbol(choice).type.name)})",
                    "give a list of texts, none of them empty",
                )
            return checked_choice(self.concrete(choice, "select needs its choices now"), user_location())
        before = self.last_host
        text = self.pure("choice", (choice,))
        self.last_host = before  # the text does not answer the operation that chooses
        return self.value_of(text)

    def _drawn(self, result: Value, name: str | None) -> Proxy:
        return self.proxy(result, _origin(name))

    def _constraint(self, spec: ConstraintSpec | None) -> str | None:
        if spec is None:
            return None
        key = (spec.kind, spec.text, spec.whitespace)
        if key not in self.constraints:
            self.constraints[key] = spec.symbol(f"c{len(self.constraints)}")
        return self.constraints[key].name


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    except (ValueError, RecursionError):  # a number that is too long, or values nested too deep
        return True
    return True


def _origin(name: str | None) -> str:
    return "a generation" if name is None else f"the generation {name!r}"


def _wish(name: str | None) -> str | None:
    return name if name is not None and name.isidentifier() and name.isascii() else None
