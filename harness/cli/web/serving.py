"""Serving of a page on loopback, and streams of server-sent events."""

import json
import webbrowser
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from harness.cli.web.guard import Guard
from harness.errors import UsageError
from harness.model.server import serve_on_loopback
from harness.report.diagram.model import Diagram, NoteKind, Participant, Row


@asynccontextmanager
async def serve_pages(
    routes: list[Route], tasks: TaskGroup, *, port: int = 0, opens: bool = False
) -> AsyncGenerator[str]:
    """Serve routes behind a guard for the length of the block; yield the URL with the token.

    With `opens` the user's browser opens it. Raises `UsageError` if the port is taken.
    """
    guard = Guard(Starlette(routes=routes))
    async with AsyncExitStack() as stack:
        try:
            served = serve_on_loopback(guard, tasks, port)
            guard.origin = await stack.enter_async_context(served)
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}; 0 is any free one") from error
        if opens:
            await run_sync(webbrowser.open, guard.url)
        yield guard.url


def event_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """Return the answer that sends events, each a text of `event_text`."""
    return StreamingResponse(events, media_type="text/event-stream")


def event_text(name: str, data: Any, id_: str = "") -> str:
    """Return one event as it is sent; a client that reconnects names the last id that it got."""
    head = f"id: {id_}\n" if id_ else ""
    # JSON has no line breaks but those that we ask for.
    return f"{head}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


class DiagramFeed:
    """The changes of one diagram for one client: the rows from the first that differs."""

    def __init__(self) -> None:
        self._rows: tuple[Row, ...] = ()
        self._participants: tuple[Participant, ...] = ()

    def change(self, diagram: Diagram, *, is_live: bool) -> dict[str, Any] | None:
        """Return `participants`, `from` and the `rows` from there; None if nothing changed.

        While the conversation `is_live`, the note of its end is left out.
        """
        rows = diagram.rows
        if is_live:
            rows = tuple(row for row in rows if getattr(row, "kind", "") != NoteKind.END)
        same = 0
        if self._participants == diagram.participants:
            pairs = enumerate(zip(self._rows, rows, strict=False))
            both = min(len(self._rows), len(rows))
            same = next((index for index, (one, other) in pairs if one != other), both)
            if same == len(rows) == len(self._rows):
                return None
        self._rows, self._participants = rows, diagram.participants
        plain = Diagram(diagram.title, diagram.participants, rows[same:]).as_json()
        return {"participants": plain["participants"], "from": same, "rows": plain["rows"]}
