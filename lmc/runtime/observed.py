"""Requests and host calls of a run for its observer, if it has one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import HostCallOp, SamplingOp, SelectOp
from lmc.ir.engine.observing import AskedRequest, BegunCall, CallEnded, Observer, RequestKind
from lmc.ir.engine.protocol import Handle
from lmc.ir.errors import RequestCancelledError
from lmc.ir.semantics import ops as semantics
from lmc.runtime.batch_context import BatchContext
from lmc.runtime.prepared_body import PreparedBody

T = TypeVar("T")
_SENDING = SamplingOp, SelectOp


def asked_now(
    body: PreparedBody, index: int, environment: Mapping[Value, Any], *, row: int | None, number: int, held: bool
) -> AskedRequest:
    """Return a request of the instruction at ``index`` of ``body``, which is ready to run now."""
    op = body.ops[index]
    if isinstance(op, _SENDING):
        op_id = semantics.runtime_id(op, environment)
        kind: RequestKind = "score" if isinstance(op, SelectOp) else "generate"
    else:
        kind, op_id = "prefill", body.prefill_ids[index]
    return AskedRequest(kind, op, op_id, row, number, time.perf_counter(), held)


def submit_observed(observer: Observer, asked: AskedRequest, submit: Callable[[], Handle[T]]) -> Handle[T]:
    """Submit a request and observe it to its end. Raises what ``submit`` raises."""
    ended = observer.begin_request(asked)
    try:
        handle = submit()
    except BaseException as error:
        ended(error)
        raise
    handle.future.add_done_callback(lambda future: ended(outcome_of(future)))
    return handle


def outcome_of(future: Future[Any] | asyncio.Future[Any]) -> Any:
    """Return the answer of a request that is done, or its error."""
    if future.cancelled():
        return RequestCancelledError("the request was cancelled")
    error = future.exception()
    return future.result() if error is None else error


def observed_call(
    around: BatchContext, op: HostCallOp, row: int | None, *, early: bool = False
) -> Callable[[], CallEnded] | None:
    """Return what observes a call of a host function; None for a run without an observer."""
    if around.observer is None:
        return None
    line = None if op.location is None else op.location.line
    return partial(around.observer.begin_call, BegunCall(op.host, op, op.id, row, line, early))
