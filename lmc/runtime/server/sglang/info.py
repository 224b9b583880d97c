"""``/get_model_info``, ``/model_info``, ``/server_info`` and ``/flush_cache``."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from lmc.runtime.server.gate import model_of

router = APIRouter()


@router.get("/get_model_info")
@router.get("/model_info")
async def model_info(request: Request) -> dict[str, Any]:
    """Describe the model."""
    model = model_of(request)
    return {
        "model_path": model.name,
        "tokenizer_path": model.name,
        "is_generation": True,
        "context_length": model.engine.info.context_length,
        "vocab_size": model.tokenizer.vocabulary_size,
    }


@router.get("/server_info")
@router.get("/get_server_info")
async def server_info(request: Request) -> dict[str, Any]:
    """Describe the server."""
    model = model_of(request)
    info = model.engine.info
    return {
        "served_model_name": model.name,
        "context_length": info.context_length,
        "max_total_num_tokens": info.kv_tokens,
        "max_running_requests": info.max_running,
    }


@router.get("/flush_cache")
@router.post("/flush_cache")
async def flush_cache(request: Request) -> dict[str, str]:
    """Forget computed prefixes; an engine that keeps none has none then."""
    model_of(request).flush()
    return {"status": "flushed"}
