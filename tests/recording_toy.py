"""A toy engine that keeps its answers."""

from __future__ import annotations

from lmc.ir.engine.protocol import Generation, Handle, OnDelta, Request, Score, ScoreRequest
from lmc.ir.engine.toy import ToyEngine


class RecordingToy(ToyEngine):
    """A toy that keeps its answers by op id and number."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[tuple[str, int], Generation | Score] = {}

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        handle = super().submit(request, on_delta)
        if handle.future.exception() is None:
            self.answers[request.op_id, request.number] = handle.future.result()
        return handle

    def score(self, request: ScoreRequest) -> Handle[Score]:
        handle = super().score(request)
        self.answers[request.op_id, request.number] = handle.future.result()
        return handle

    def answer(self, op_id: str, number: int) -> Generation | Score | None:
        return self.answers.get((op_id, number))
