"""A conversation by hand in the browser: the lines of the prompt come from a page."""

import contextlib
import signal
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from harness.cli.connect.actions import Actions
from harness.cli.connect.conversation import hold_conversation
from harness.cli.connect.display import Display, Write
from harness.cli.connect.fields import Fields
from harness.cli.connect.live_server import ConnectOptions, LiveServer
from harness.cli.connect.talk import Judging, question_subject
from harness.cli.web.serving import DiagramFeed, event_stream, event_text, serve_pages
from harness.errors import HarnessError, UsageError
from harness.protocol.escapes import visible
from harness.protocol.values import obj
from harness.report.diagram.build import build_diagram
from harness.report.html.live_pages import connect_page

MAX_MESSAGES_DRAWN: Final = 1000
CLOSED_SECONDS: Final = 60.0
"""The session ends if no page has been open for so long, after one was."""
MIN_EVENT_SECONDS: Final = 0.1
_LAST_EVENT_SECONDS: Final = 2.0
_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def at_page(
    options: ConnectOptions, judging: Judging, base: Path, write: Write, *, port: int, opens: bool
) -> int:
    """Hold the conversation on a page; return the exit status.

    Raises `UsageError` if the server cannot be started or reached, or a port is taken.
    """
    session = WebSession(judging, write)
    display = Display(
        session.write, judging.book, colour=False, deviations=judging.profile.deviations
    )
    problem: UsageError | None = None
    status = 0
    async with anyio.create_task_group() as tasks:
        try:
            async with serve_pages(session.routes, tasks, port=port, opens=opens) as url:
                write(f"open {url}")
                write("the session ends with its End button, with Ctrl-C, or a minute after")
                write("its page was closed")
                status = await hold_conversation(
                    options, judging, base, display, session.hold, patient=False, ends=_END_SIGNALS
                )
                await session.end(status)
        except UsageError as error:
            problem = error
        tasks.cancel_scope.cancel()
    if problem is not None:  # Raised within the group, it would come out as an exception group.
        raise problem
    return status


class WebSession:
    """The page of one conversation, its events, and the lines that it sends."""

    def __init__(
        self, judging: Judging, echo: Write, *, closed_seconds: float = CLOSED_SECONDS
    ) -> None:
        self._judging = judging
        self._echo = echo
        self._closed_seconds = closed_seconds
        self._lines: list[str] = []
        self._server: LiveServer | None = None
        self._actions: Actions | None = None
        self._status: int | None = None
        self._changed, self._ended = anyio.Event(), anyio.Event()
        self._pages = 0
        self._closed_at = float("inf")
        self._command = anyio.Lock()

    @property
    def routes(self) -> list[Route]:
        """Return the page, its events, and the address of its lines."""
        return [
            Route("/", self._page),
            Route("/events", self._events),
            Route("/do", self._do, methods=["POST"]),
        ]

    def write(self, line: str) -> None:
        """Show a line of the display on the page and at the terminal."""
        self._lines.append(visible(line))
        self._echo(line)
        self._wake()

    async def hold(self, server: LiveServer, actions: Actions) -> bool:
        """Execute the lines of the page until it ends the session or is closed."""
        self._server, self._actions = server, actions
        server.talk.recorder.listeners.append(lambda _: self._wake())
        server.talk.recorder.mark_listeners.append(lambda _: self._wake())
        while not actions.has_ended:
            self._wake()
            with anyio.move_on_after(min(1.0, self._closed_seconds)):
                await self._changed.wait()
            if not self._pages and time.monotonic() - self._closed_at > self._closed_seconds:
                server.display.note("the page was closed", "")
                break
        return True

    async def end(self, status: int) -> None:
        """Let open pages show the end, for a moment."""
        self._status = status
        self._ended.set()
        self._wake()
        with anyio.move_on_after(_LAST_EVENT_SECONDS):
            while self._pages:
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(connect_page(self._judging.profile.name, forms(self._judging)))

    async def _do(self, request: Request) -> Response:
        """Execute one line; return a `template` to be completed, or an `error`."""
        try:
            line = str(obj(await request.json()).get("line", "")).replace("\n", " ")
            if self._actions is None or self._actions.has_ended or self._status is not None:
                raise UsageError("the session is not running")
            # Commands come one after the other; an answer must not wait for them.
            lock = self._command if line.lstrip().startswith(":") else contextlib.nullcontext()
            async with lock:
                template = await self._actions.do(line)
        except (HarnessError, ValueError) as error:
            return JSONResponse({"error": visible(str(error))}, 422)
        self._wake()
        return JSONResponse({"template": template})

    async def _events(self, _: Request) -> Response:
        return event_stream(self._changes())

    async def _changes(self) -> AsyncGenerator[str]:
        """Yield all that a page shows, then its changes. A page that comes back begins anew."""
        feed, line_count, state = DiagramFeed(), 0, None
        self._pages += 1
        try:
            while True:
                changed, status = self._changed, self._status
                if self._server is not None:
                    change = feed.change(self._diagram(self._server), is_live=status is None)
                    if change is not None:
                        yield event_text("diagram", change)
                    if state != (state := self._state(self._server)):
                        yield event_text("state", state)
                if line_count != len(self._lines) or not line_count:
                    yield event_text(
                        "lines", {"from": line_count, "lines": self._lines[line_count:]}
                    )
                    line_count = len(self._lines)
                if status is not None:
                    yield event_text("ended", {"status": status})
                    return
                await changed.wait()
                with anyio.move_on_after(MIN_EVENT_SECONDS):  # Deltas come in bursts.
                    await self._ended.wait()
        finally:
            self._pages -= 1
            self._closed_at = time.monotonic()
            self._wake()

    def _diagram(self, server: LiveServer) -> Any:
        trace = server.talk.recorder.trace
        # Begins at a multiple of half the limit, so that most changes are at its end.
        half = MAX_MESSAGES_DRAWN // 2
        first = max(0, len(trace.frames) // half - 1) * half
        frames = trace.frames[first:] if first else None
        findings = [row for row, _ in server.talk.findings]
        return build_diagram(trace, findings, frames=frames)

    def _state(self, server: LiveServer) -> dict[str, Any]:
        talk = server.talk
        return {
            "thread": visible(talk.thread),
            "turn": visible(talk.turn),
            "messages": len(talk.recorder.trace.frames),
            "findings": len(talk.findings),
            "gone": talk.is_closed,
            "gates": [visible(gate) for gate in server.model.gates.waiting],
            "questions": [
                {
                    "method": visible(question.method),
                    "subject": visible(question_subject(question)),
                    "decisions": talk.fields.decisions(question.method),
                }
                for question in talk.questions
            ],
        }


def forms(judging: Judging) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of each request: `name`, `type` in words, `required`, and its `values`."""
    fields = Fields(judging.book)
    return {
        method: [
            {
                "name": member.name,
                "type": member.type.replace("`", ""),
                "required": member.required,
                "values": fields.values(method, (member.name,)),
            }
            for member in fields.members(method)
        ]
        for method in fields.methods
    }
