"""What a user can see of requests: their results or errors, and what was streamed."""

from typing import Any

from lmc.ir.engine.protocol import Generation, Request, TokenDelta

Outcome = tuple[Any, ...]


def run(engine: Any, requests: list[Request], *, streamed: bool = True) -> list[Outcome]:
    """Everything that a user can see of each request's end, and what was streamed before it if that is asked for."""
    if not streamed:
        return [silent(outcome(handle.future, None)) for handle in [engine.submit(each) for each in requests]]
    streams: list[list[TokenDelta]] = [[] for _ in requests]
    handles = [engine.submit(each, stream.append) for each, stream in zip(requests, streams, strict=True)]
    return [outcome(handle.future, stream) for handle, stream in zip(handles, streams, strict=True)]


def silent(whole: Outcome) -> Outcome:
    """An outcome without what was streamed."""
    return whole if isinstance(whole[0], type) else whole[:-1]


def outcome(future: Any, stream: list[TokenDelta] | None) -> Outcome:
    error = future.exception(60)
    if error is not None:
        return type(error), error.cause, error.remedy
    found: Generation = future.result()
    assert stream is None or "".join(delta.text for delta in stream) == found.text
    check_tokens(stream or [], found)
    return (
        found.token_ids,
        found.text,
        found.remainder,
        found.finish_reason,
        found.matched_stop,
        found.logprobs,
        found.generated_tokens,
        tuple(stream or ()),
    )


def check_tokens(stream: list[TokenDelta], found: Generation) -> None:
    """Check that the tokens of a stream are the first ones of its result, with their log-probabilities."""
    tokens = [token for delta in stream for token in delta.token_ids]
    assert tokens == list(found.token_ids[: len(tokens)])
    logprobs = [entry for delta in stream for entry in delta.logprobs]
    assert logprobs == list((found.logprobs or ())[: len(tokens)])
