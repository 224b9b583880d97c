"""Batches that run: in an order of their own, below all other requests, a bounded number of lines at a time."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import numpy as np
from starlette.requests import Request

from lmc.ir.engine.protocol import Place, Planned, new_run
from lmc.runtime.server.batches.endpoints import ENDPOINTS, BatchEndpoint, BatchProtocol
from lmc.runtime.server.batches.order import PreparedLine, in_order
from lmc.runtime.server.batches.store import BatchStatus, LineEnd, LineOutcome, StateStore, StoredBatch, StoredFile
from lmc.runtime.server.errors import error_of
from lmc.runtime.server.gate import LOG, Gate
from lmc.runtime.server.jobs import ClientLane
from lmc.runtime.server.model import Model

BATCH_PRIORITY = -101
"""Below all that a client can ask for (``lane_of``)."""
_AT_ONCE = 4
"""Batches that run at once; the others wait for one of them to end."""
_MOST_LINES = 64
"""Generations that run at once, of all batches; fewer where that would be more than half of what the engine runs."""
_FORESEEN = 2
"""The engine knows of so many times the lines that run at once."""
_PREPARED = 64
"""Lines that are prepared in one go."""


class BatchRuns:
    """Runs the batches of a store on a model. Belongs to one event loop."""

    def __init__(self, model: Model, store: StateStore, gate: Gate) -> None:
        self._model = model
        self._store = store
        self._gate = gate
        most = model.engine.info.max_running
        self._most_lines = _MOST_LINES if most is None else max(1, min(_MOST_LINES, most // 2))
        self._slots = _Slots(self._most_lines)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._ends: list[tuple[str, LineEnd, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Continue the batches that an earlier process has left."""
        for batch in self._store.unfinished_batches():
            self.start(batch)

    def start(self, batch: StoredBatch) -> None:
        """Run a batch, which the store has."""
        endpoint = ENDPOINTS[cast("BatchProtocol", batch.protocol)][batch.endpoint]
        serving = self._serving[batch.id] = asyncio.ensure_future(self._serve(batch, endpoint))
        if batch.status == "cancelling" or batch.expires <= time.time():
            serving.cancel()
        self._runs[batch.id] = asyncio.ensure_future(self._run(batch, endpoint, serving))

    def stop(self, batch: StoredBatch) -> None:
        """Let a batch end that the store says to be cancelled."""
        if batch.id in self._serving:
            self._serving[batch.id].cancel()

    async def _run(self, batch: StoredBatch, endpoint: BatchEndpoint, serving: asyncio.Task[None]) -> None:
        """End a batch when its lines have run, or when it has expired."""
        started = time.perf_counter()
        try:
            await asyncio.wait({serving}, timeout=max(batch.expires - time.time(), 0) + 1)
            serving.cancel()
            await asyncio.wait({serving})
            if not serving.cancelled():
                serving.result()
            ended = await asyncio.to_thread(self._end, batch, endpoint)
        except Exception as error:
            LOG.exception("batch %s has failed", batch.id)
            ended = await asyncio.to_thread(self._fail, batch, endpoint, error)
        finally:
            del self._serving[batch.id]
            del self._runs[batch.id]
        if ended is not None:
            counts = await asyncio.to_thread(self._store.counts, batch.id)
            line = {
                "id": batch.id,
                "route": f"batch of {batch.endpoint}",
                "lines": counts.lines,
                "tokens": counts.prompt + counts.generated,
                "cached": counts.cached,
                "ms": round((time.perf_counter() - started) * 1000, 1),
                "status": ended.status,
            }
            LOG.info(json.dumps(line))

    async def _serve(self, batch: StoredBatch, endpoint: BatchEndpoint) -> None:
        """Run lines until all are done, or the server is about to stop."""
        async with self._turns:
            lines = await self._prepared(batch, endpoint)
            foreseen = _Foreseen(self._model, lines, _FORESEEN * self._most_lines)
            ranks = iter(range(len(lines)))
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._most_lines, len(lines))):
                        group.create_task(self._work(batch, endpoint, lines, ranks, foreseen))
            finally:
                foreseen.close()

    async def _prepared(self, batch: StoredBatch, endpoint: BatchEndpoint) -> list[PreparedLine]:
        """Return the lines that are left, in the order in which they run."""
        numbers = await asyncio.to_thread(self._store.unfinished_lines, batch.id)
        found: list[PreparedLine] = []
        for start in range(0, len(numbers), _PREPARED):
            part = numbers[start : start + _PREPARED]
            found += await asyncio.to_thread(self._prepare, batch, endpoint, part)
        kv_tokens = self._model.engine.info.kv_tokens
        return await asyncio.to_thread(in_order, found, kv_tokens, self._most_lines)

    def _prepare(self, batch: StoredBatch, endpoint: BatchEndpoint, numbers: Sequence[int]) -> list[PreparedLine]:
        found: list[PreparedLine] = []
        longest = self._model.engine.info.context_length
        for number in numbers:
            try:
                body = endpoint.parsed(self._store.request(batch.id, number))
                prompts = tuple(np.array(each, np.int32) for each in body.prompts(self._model))
                found.append(PreparedLine(number, prompts, min(max(body.most_tokens, 1), longest), body.choices))
            except Exception:  # its run says what is wrong with it
                found.append(PreparedLine(number))
        return found

    async def _work(
        self,
        batch: StoredBatch,
        endpoint: BatchEndpoint,
        lines: Sequence[PreparedLine],
        ranks: Iterator[int],
        foreseen: _Foreseen,
    ) -> None:
        """Run one line after the other, beside the other workers of the batch."""
        for rank in ranks:
            async with self._slots.taken(len(lines[rank].prompts) * lines[rank].choices):
                if self._gate.is_draining:
                    return
                foreseen.begin(rank)
                self._gate.in_flight += 1
                try:
                    lane = ClientLane(0, BATCH_PRIORITY, Place(foreseen.run, rank))
                    if not await self._line(batch, endpoint, lines[rank].number, lane):
                        return
                finally:
                    self._gate.in_flight -= 1
                    foreseen.end(rank)

    async def _line(self, batch: StoredBatch, endpoint: BatchEndpoint, number: int, lane: ClientLane) -> bool:
        """Run a line and keep its result. False where the engine ends before it has one."""
        request = await asyncio.to_thread(self._store.request, batch.id, number)
        try:
            answered = await endpoint.parsed(request).answer(self._model, lane)
            text = endpoint.answered(batch.id, number, request, answered.content)
            counts = [(each.prompt_tokens, each.cached_tokens, each.generated_tokens) for each in answered.found]
            end = LineEnd(number, "succeeded", text, *(sum(column) for column in zip((0, 0, 0), *counts, strict=True)))
        except Exception as raised:
            error = error_of(raised)
            if error.kind == "unavailable":
                return False
            end = LineEnd(number, "errored", endpoint.failed(batch.id, number, request, error))
        done = asyncio.get_running_loop().create_future()
        self._ends.append((batch.id, end, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._write())
        await done
        return True

    async def _write(self) -> None:
        """Keep the results that are there, those of many lines at once."""
        while self._ends:
            taken, self._ends = self._ends, []
            for batch_id in dict.fromkeys(each for each, _, _ in taken):
                ends = [end for each, end, _ in taken if each == batch_id]
                error = None
                try:
                    await asyncio.to_thread(self._store.finish, batch_id, ends)
                except Exception as raised:
                    error = raised
                for each, _, done in taken:
                    if each == batch_id and not done.done():
                        done.set_result(None) if error is None else done.set_exception(error)

    def _end(self, batch: StoredBatch, endpoint: BatchEndpoint) -> StoredBatch | None:
        """End a batch: lines without a result were cancelled, or came too late. None where they are still to run."""
        known = self._store.batch(batch.id, batch.protocol)
        assert known is not None, "a batch that runs can't be deleted"
        now = int(time.time())
        missing = self._store.unfinished_lines(batch.id)
        status: BatchStatus = "completed"
        if known.status == "cancelling":
            status = "cancelled"
        elif missing:
            if now < batch.expires:
                return None
            status = "expired"
        outcome: LineOutcome = "cancelled" if status == "cancelled" else "expired"
        for start in range(0, len(missing), _PREPARED):
            ends = [
                LineEnd(
                    number, outcome, endpoint.left_out(batch.id, number, self._store.request(batch.id, number), outcome)
                )
                for number in missing[start : start + _PREPARED]
            ]
            self._store.finish(batch.id, ends)
        ended = replace(known, status=status, times={**known.times, "ended": now})
        return self._store.end_batch(ended, _files(ended, endpoint))

    def _fail(self, batch: StoredBatch, endpoint: BatchEndpoint, error: Exception) -> StoredBatch:
        """End a batch that can't go on: its state can't be written, or the server has a fault."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        times = {**batch.times, "ended": int(time.time())}
        failed = replace(batch, status="failed", error=error_of(error).message, times=times)
        return self._store.fail_batch(failed, _files(failed, endpoint))


def _files(batch: StoredBatch, endpoint: BatchEndpoint) -> list[StoredFile]:
    """Return the files of results of a batch that has ended."""
    if not endpoint.makes_files:
        return []
    now = batch.times["ended"]
    expires = None if batch.output_seconds is None else now + batch.output_seconds
    return [
        StoredFile(new_id("file-"), now, expires, f"{batch.id}_{kind}.jsonl", "batch_output", 0, batch.id, is_errors)
        for kind, is_errors in (("output", False), ("error", True))
    ]


class _Slots:
    """A bound of what runs at once. Who comes first runs first; one that needs more than all takes all."""

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def taken(self, count: int) -> AsyncGenerator[None]:
        """Take slots until the block ends, at least one."""
        needed = min(max(count, 1), self._count)
        async with self._turn:
            while self._free < needed:
                self._freed.clear()
                await self._freed.wait()
            self._free -= needed
        try:
            yield
        finally:
            self._free += needed
            self._freed.set()


def runs_of(request: Request) -> BatchRuns:
    """Return the batches of the server."""
    return request.app.state.batches


def store_of(request: Request) -> StateStore:
    """Return the store of the server."""
    return request.app.state.store


def new_id(prefix: str) -> str:
    """Return a name that nothing else has."""
    return f"{prefix}{uuid.uuid4().hex}"


class _Foreseen:
    """Tells the engine of the lines that come next, so that it keeps what they begin with."""

    def __init__(self, model: Model, lines: Sequence[PreparedLine], ahead: int) -> None:
        self.run = new_run()
        self._engine = model.engine if isinstance(model.engine, Planned) else None
        self._lines = lines
        self._ahead = ahead
        self._next = 0
        self._keys: dict[int, list[int]] = {}
        self._open = None if self._engine is None else self._engine.expect((), Place(self.run, 0))

    def begin(self, rank: int) -> None:
        """A line begins: those that come soon are known to the engine."""
        if self._engine is None:
            return
        while self._next < min(rank + self._ahead, len(self._lines)):
            place = Place(self.run, self._next)
            prompts = self._lines[self._next].prompts
            self._keys[self._next] = [self._engine.expect(tuple(each.tolist()), place) for each in prompts]
            self._next += 1

    def end(self, rank: int) -> None:
        """A line has ended."""
        self._withdraw(self._keys.pop(rank, []))

    def close(self) -> None:
        """The batch does not go on."""
        for keys in self._keys.values():
            self._withdraw(keys)
        self._keys = {}
        if self._open is not None:
            self._withdraw([self._open])

    def _withdraw(self, keys: Sequence[int]) -> None:
        if self._engine is not None:
            for key in keys:
                self._engine.withdraw(key)
