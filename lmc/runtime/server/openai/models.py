"""``/v1/models``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from lmc.runtime.server.gate import model_of
from lmc.runtime.server.model import Model
from lmc.runtime.server.openai.common import check_model

router = APIRouter()


def _entry(model: Model) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": model.created,
        "owned_by": "lmc",
        "root": str(Path(folder).absolute()) if (folder := model.tokenizer.folder) else model.name,
        "max_model_len": model.engine.info.context_length,
    }


@router.get("/v1/models/", include_in_schema=False)
@router.get("/v1/models")
async def list_models(request: Request) -> dict[str, Any]:
    """List the models."""
    return {"object": "list", "data": [_entry(model_of(request))]}


@router.get("/v1/models/{name:path}")
async def retrieve_model(request: Request, name: str) -> dict[str, Any]:
    """Describe a model."""
    check_model(model_of(request), name)
    return _entry(model_of(request))
