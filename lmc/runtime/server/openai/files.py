"""``/v1/files``: the inputs and outputs of batches."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import python_multipart  # noqa: F401 - Starlette imports it at an upload only  # pyright: ignore[reportUnusedImport]
from fastapi import APIRouter, Query, Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from lmc.runtime.server.batches.runs import new_id, store_of
from lmc.runtime.server.batches.store import StoredFile
from lmc.runtime.server.errors import ApiError, refused
from lmc.runtime.server.gate import model_of
from lmc.runtime.server.streams import ClientGoneError

router = APIRouter()

_UPLOADED = "batch"
_REFUSED = ("assistants", "evals", "fine-tune", "user_data", "vision")
_FIELDS = frozenset({"file", "purpose", "expires_after[anchor]", "expires_after[seconds]"})
LEAST_SECONDS, MOST_SECONDS = 3600, 2_592_000
"""From an hour to 30 days, as in OpenAI's API."""
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"enum": [_UPLOADED]},
                        "expires_after[anchor]": {"enum": ["created_at"]},
                        "expires_after[seconds]": {
                            "type": "integer",
                            "minimum": LEAST_SECONDS,
                            "maximum": MOST_SECONDS,
                        },
                    },
                }
            }
        },
    }
}


async def file_of(request: Request, file_id: str, parameter: str | None = None) -> StoredFile:
    """Return a file. Raises ``ApiError`` where there is none."""
    found = await asyncio.to_thread(store_of(request).file, file_id)
    if found is None:
        raise ApiError("missing", f"there is no file {file_id!r}", parameter)
    return found


def _entry(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": file.created,
        "expires_at": file.expires,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }


@router.post("/v1/files", openapi_extra=_FORM)
async def upload_file(request: Request) -> dict[str, Any]:
    """Keep the input of a batch."""
    form = await _form(request)
    try:
        uploaded, purpose = form.get("file"), form.get("purpose")
        strange = next((name for name in form if name not in _FIELDS), None)
        if strange is not None:
            raise refused(strange, "this server has no such parameter")
        if not isinstance(uploaded, UploadFile):
            raise refused("file", "it is missing")
        if purpose != _UPLOADED:
            known = f"files of purpose {purpose!r} are of no use here" if purpose in _REFUSED else f"it is {purpose!r}"
            raise refused("purpose", f"{known}; this server takes {_UPLOADED!r}")
        created = model_of(request).now
        seconds = _seconds(form)
        content = await uploaded.read()
        name = (uploaded.filename or "file").encode("utf-8", "replace").decode()
        expires = None if seconds is None else created + seconds
        file = StoredFile(new_id("file-"), created, expires, name, _UPLOADED, len(content))
        await asyncio.to_thread(store_of(request).add_file, file, content)
        return _entry(file)
    finally:
        await form.close()


async def _form(request: Request) -> FormData:
    """Read a form of few fields. Raises ``ApiError`` for one that can't be read."""
    try:
        return await request.form(max_files=1, max_fields=len(_FIELDS))
    except ClientDisconnect as error:
        raise ClientGoneError from error
    except (ApiError, HTTPException):
        raise
    except Exception as error:  # the parser has errors of its own
        raise ApiError("invalid", f"the body is no form: {error}") from error


def _seconds(form: FormData) -> int | None:
    """Return the seconds after which a file expires; None where it does not."""
    anchor, seconds = form.get("expires_after[anchor]"), form.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at":
        raise refused("expires_after.anchor", "it must be 'created_at'")
    text = seconds if isinstance(seconds, str) else ""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and LEAST_SECONDS <= int(text) <= MOST_SECONDS):
        raise refused("expires_after.seconds", f"it must be from {LEAST_SECONDS} to {MOST_SECONDS}")
    return int(text)


@router.get("/v1/files")
async def list_files(
    request: Request,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
    purpose: str | None = None,
) -> dict[str, Any]:
    """List files."""
    found = await asyncio.to_thread(store_of(request).files, purpose, after, limit + 1, newest_first=order == "desc")
    return page_of([_entry(file) for file in found], limit)


def page_of(entries: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return a page of a list, of which there may be one entry more than the page has."""
    shown = entries[:limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(entries) > limit,
    }


@router.get("/v1/files/{file_id}")
async def retrieve_file(request: Request, file_id: str) -> dict[str, Any]:
    """Describe a file."""
    return _entry(await file_of(request, file_id))


@router.get("/v1/files/{file_id}/content", response_class=Response)
async def file_content(request: Request, file_id: str) -> Response:
    """Return the content of a file."""
    file = await file_of(request, file_id)
    return StreamingResponse(store_of(request).content(file), media_type="application/octet-stream")


@router.delete("/v1/files/{file_id}")
async def delete_file(request: Request, file_id: str) -> dict[str, Any]:
    """Delete a file. A batch that was made of it goes on."""
    file = await file_of(request, file_id)
    await asyncio.to_thread(store_of(request).delete_file, file)
    return {"id": file.id, "object": "file", "deleted": True}
