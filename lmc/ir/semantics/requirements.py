"""Needs of an op and capabilities of its target: compared in compilation, and again where a request is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmc.ir.analysis.open_turns import Oddity, OpenTurn
from lmc.ir.dialects.model_ops import DEFAULT_METHOD, SamplingOp, SelectOp
from lmc.ir.engine.capabilities import OWN, PARAMETERS, Capabilities
from lmc.ir.engine.protocol import EngineInfo, SamplingParams
from lmc.ir.errors import LmcError, Location, LoweringError
from lmc.ir.semantics.context import Context
from lmc.ir.wording import with_article

_DEFAULTS = SamplingParams()
_LEAST_ROOM = 16
"""Tokens of a written choice beyond one for each of its bytes: for the JSON around it."""
PROVIDERS_TEMPERATURE = 1.0
"""The temperature of hosted models without one: a program that names it gets it, whether it can be sent or not."""


def written_tokens(choices: Sequence[str]) -> int:
    """Return ``max_tokens`` of the generation that writes one of ``choices``: each byte may be a token."""
    return _LEAST_ROOM + max((len(choice.encode()) for choice in choices), default=0)


def check_op(op: SamplingOp | SelectOp, turn: OpenTurn, served: Sequence[tuple[str, Capabilities]]) -> None:
    """Raise ``LoweringError`` at the line of ``op`` where a target can't do what it asks for.

    ``served`` are the names and capabilities of the target and its fallbacks, which get the same requests: a select
    compares scores where the first gives them.
    """
    compares = served[0][1].scores
    for place, (name, capabilities) in enumerate(served):
        if capabilities == OWN:
            continue
        target = f"the fallback {name}" if place else name
        if isinstance(op, SelectOp):
            _check_select(op, capabilities, target, compares=compares)
        else:
            _check_parameters(op, capabilities, target)
        if not (isinstance(op, SelectOp) and compares):
            _check_turn(op, turn, capabilities, target)


def check_request(op: SamplingOp | SelectOp, context: Context, info: EngineInfo) -> None:
    """Raise ``LoweringError`` where the engine can't do what ``op`` asks for behind ``context``."""
    if any(capabilities != OWN for _, capabilities in info.served):
        check_op(op, context.open_turn, info.served)


def _check_select(op: SelectOp, capabilities: Capabilities, target: str, *, compares: bool) -> None:
    if capabilities.scores and compares:
        return
    if op.method is None and not compares:
        _check_length(op, written_tokens([each for each in op.choices if isinstance(each, str)]), capabilities, target)
        if capabilities.structured == "none":
            raise _lacking(
                op,
                f"needs scores or a constraint, and {target} has neither",
                "generate a text and compare it in the program, or use another target",
            )
        return
    raise _lacking(
        op,
        f"compares scores ({op.method or DEFAULT_METHOD}), and {target} gives no log-probabilities of texts",
        "leave out the method: the model then writes one of the choices; or use a local model or a server with echo",
    )


def _check_parameters(op: SamplingOp, capabilities: Capabilities, target: str) -> None:
    sampling = op.sampling
    for name in PARAMETERS:
        given = getattr(sampling, name)
        is_default = given == getattr(_DEFAULTS, name) or (name == "temperature" and given == PROVIDERS_TEMPERATURE)
        if not is_default and name not in capabilities.parameters:
            raise _lacking(op, f"sets {name}, which {target} does not take", "leave it out, or use another model")
    if op.seed is not None and not capabilities.seed:
        raise _lacking(op, f"sets a seed, which {target} does not take", "leave it out, or use another model")
    _check_length(op, sampling.max_tokens, capabilities, target)
    if sampling.logprobs is not None and sampling.logprobs > capabilities.logprobs:
        given = "none" if capabilities.logprobs < 0 else f"those of at most {capabilities.logprobs} tokens"
        raise _lacking(op, f"asks for log-probabilities, and {target} gives {given}", "leave out logprobs")
    if capabilities.structured == "none" and (op.constraint is not None or op.definition_kind is not None):
        raise _lacking(
            op,
            f"has a constraint, which {target} does not enforce",
            "leave out regex, choices, schema, dtype and grammar and check the text in the program; to pick one of a "
            "few texts, use select",
        )


def _check_length(op: SamplingOp | SelectOp, max_tokens: int, capabilities: Capabilities, target: str) -> None:
    most, reasoning = capabilities.max_output_tokens, capabilities.reasoning_tokens
    if most is None or max_tokens + reasoning <= most:
        return
    asked = f"{max_tokens:,} tokens" + (f" and {reasoning:,} for reasoning" if reasoning else "")
    fits = f"max_tokens={most - reasoning}" if most > reasoning and not isinstance(op, SelectOp) else ""
    remedies = [each for each in (fits, "lower reasoning_tokens of the target" if reasoning else "") if each]
    raise _lacking(
        op,
        f"asks for {asked}, and {target} gives at most {most:,}",
        ", or ".join(remedies) or "take shorter choices, or another target",
    )


def _check_turn(op: SamplingOp | SelectOp, turn: OpenTurn, capabilities: Capabilities, target: str) -> None:
    if capabilities.contexts == "tokens":
        return
    if capabilities.contexts == "text":
        if turn.is_chat:
            raise _lacking(op, f"follows messages, and {target} takes plain text", "use no roles, or another api")
        return
    if not turn.is_chat:
        raise _lacking(op, f"follows text without a role, and {target} takes messages", "begin with s += lmc.user(…)")
    if turn.role not in (None, "assistant"):
        role = with_article(f"{turn.role} message")
        raise _lacking(op, f"writes {role}, and {target} writes as the assistant alone", "generate after the message")
    _check_messages(op, turn, capabilities, target)
    if not turn.is_filled or capabilities.continuation in ("exact", "turns"):
        return
    if capabilities.continuation == "none":
        raise _lacking(
            op,
            f"continues a turn of the assistant, which {target} can't",
            'ask for it in a message of the user, or set continuation = "turns" for the target: the turn is closed, '
            "and a message asks the model to go on",
        )
    if turn.ends_blank:
        raise _lacking(
            op,
            f"continues a turn that ends in white space, which {target} refuses",
            "put the white space behind the generation",
        )


def _check_messages(op: SamplingOp | SelectOp, turn: OpenTurn, capabilities: Capabilities, target: str) -> None:
    """Raise ``LoweringError`` for messages before ``op`` that the provider would refuse, or read as something else."""
    if capabilities.roles == "any":
        return
    before, oddities = turn.before, dict(turn.before.oddities)
    if "tool" in oddities:
        raise _refused(
            op,
            oddities["tool"],
            f"is behind a message of a tool, which {target} takes only for calls that its own API made",
            'give the result in a message of the user (role="user" in lmc.library)',
        )
    if before.last is None and not turn.is_filled:
        raise _lacking(op, f"has no message before it, which {target} needs", "begin with s += lmc.user(…)")
    late: Mapping[str, Oddity] = {"first": "late system", "behind the user": "system behind an answer"}
    oddity = late.get(capabilities.system)
    if oddity in oddities:
        places = "at the beginning" if capabilities.system == "first" else "at the beginning or behind one of the user"
        raise _refused(
            op,
            oddities[oddity],
            f"is behind a message of the system which is elsewhere than {target} takes it: {places}",
            "move it to the beginning, or make it a message of the user",
        )
    if capabilities.roles != "merged":
        return
    if "empty" in oddities:
        raise _refused(
            op,
            oddities["empty"],
            f"is behind an empty message, which {target} refuses",
            "leave it out, or write something into it",
        )
    if before.first is None or before.first == "assistant":
        what = "only messages of the system" if before.first is None else "a message of the assistant first"
        raise _lacking(op, f"has {what} before it, and {target} begins with the user", "begin with s += lmc.user(…)")
    if before.last == "assistant" and not turn.is_filled:
        raise _lacking(
            op,
            f"follows a message of the assistant, which {target} would continue or refuse",
            "put a message of the user between them",
        )


def _refused(op: SamplingOp | SelectOp, message: Location | None, cause: str, remedy: str) -> LmcError:
    place = "" if message is None else f" ({message})"
    return _lacking(op, f"{cause}{place}", remedy)


def _lacking(op: SamplingOp | SelectOp, cause: str, remedy: str) -> LmcError:
    what = "select" if isinstance(op, SelectOp) else "generation"
    return LoweringError(f"{what} {op.id!r} {cause}", remedy=remedy, location=op.location)
