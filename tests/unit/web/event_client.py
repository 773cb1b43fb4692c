"""A client of a page on loopback: its requests, and its stream of events."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
from starlette.routing import Route

from harness.cli.web.serving import serve_pages

BOUND = 20.0


@asynccontextmanager
async def serve(routes: Sequence[Route]) -> AsyncGenerator[httpx.AsyncClient]:
    """Serve routes for the length of the block; yield a client with the token."""
    async with anyio.create_task_group() as tasks:
        async with serve_pages(list(routes), tasks) as url:
            origin, _, token = url.partition("/?token=")
            key = {"x-harness-token": token}
            async with httpx.AsyncClient(base_url=origin, headers=key, timeout=BOUND) as client:
                yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def events(
    client: httpx.AsyncClient, path: str, last_id: str = ""
) -> AsyncGenerator[AsyncGenerator[tuple[str, Any, str]]]:
    """Open a stream; yield its events: name, data, and the id or ""."""
    headers = {"last-event-id": last_id} if last_id else {}
    with anyio.fail_after(BOUND):
        async with client.stream("GET", path, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _parsed(answer)


async def _parsed(answer: httpx.Response) -> AsyncGenerator[tuple[str, Any, str]]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line:
            if "event" in fields:
                yield fields["event"], json.loads(fields["data"]), fields.get("id", "")
            fields = {}
