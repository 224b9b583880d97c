"""``/health``, ``/ready``, ``/metrics``."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from lmc.ir.engine.protocol import Request as EngineRequest
from lmc.ir.engine.protocol import SamplingParams
from lmc.runtime.server.errors import ApiError
from lmc.runtime.server.gate import model_of
from lmc.runtime.server.metrics import CONTENT_TYPE

router = APIRouter()
_READY_SECONDS = 30.0


@router.get("/health")
async def health() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> dict[str, str]:
    """The model answers."""
    engine = model_of(request).engine
    probe = EngineRequest(engine.tokenizer.start_ids, SamplingParams(max_tokens=1), priority=100)
    handle = engine.submit(probe)
    try:
        await asyncio.wait_for(asyncio.wrap_future(handle.future), _READY_SECONDS)
    except Exception as error:
        raise ApiError("unavailable", "the model does not answer", headers={"Retry-After": "5"}) from error
    finally:
        handle.cancel()
    return {"status": "ready"}


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Metrics in the text format of Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)
