"""`harness watch`: pages on loopback that follow the runs of a folder, and their history."""

import dataclasses
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from harness.cli.commands.recorded_report import find_recorded
from harness.cli.commands.show import judge_file
from harness.cli.web.serving import DiagramFeed, event_stream, event_text, serve_pages
from harness.client.target.process_tree import is_running
from harness.client.target.run_folders import HISTORY, find_kept_file, recorded_folder
from harness.errors import HarnessError, UsageError
from harness.protocol.escapes import visible
from harness.report.diagram.build import build_diagram
from harness.report.diagram.model import Diagram
from harness.report.history import FILE, HistoryError, read_history
from harness.report.html.live_pages import RunLine, history_page, recording_page, watch_page
from harness.report.progress.events import Event, Found, PlayEnded
from harness.report.progress.log import FOLDER, read_events
from harness.report.progress.state import RunState
from harness.trace.store import TraceFormatError

POLL_SECONDS: Final = 0.2
RECORDING_SECONDS: Final = 0.5
MAX_RUNS_LISTED: Final = 12
_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def watch(words: Sequence[str], say: Callable[[str], None], *, port: int, opens: bool) -> int:
    """Serve the pages until a signal; return the exit status.

    Of `words` a folder is that of the runs, others are reports and recordings to be shown as well.
    Raises `UsageError` if one of them cannot be read, or the port is taken.
    """
    folders = [word for word in words if Path(word).is_dir()]
    if len(folders) > 1:
        raise UsageError(f"{' '.join(folders)}: name one folder")
    base = _base(Path(folders[0])) if folders else recorded_folder()
    files = [_file(word) for word in words if word not in folders]
    return anyio.run(_serve, Watch(base, files), say, port, opens)


def _base(folder: Path) -> Path:
    inside = folder / ".harness"
    return inside if inside.is_dir() else folder


def _file(word: str) -> Path | str:
    """Return a recording's path, or a report's name after it was read once."""
    path = find_kept_file(Path(word))
    if path.suffix == ".jsonl" and path.is_file():
        return path
    find_recorded(word)
    return word


async def _serve(pages: "Watch", say: Callable[[str], None], port: int, opens: bool) -> int:
    problem: UsageError | None = None
    status = 0
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(*_END_SIGNALS) as signals:
            try:
                async with serve_pages(pages.routes, tasks, port=port, opens=opens) as url:
                    say(f"open {url}")
                    folder = visible(str(pages.base))
                    say(f"it follows {folder} until Ctrl-C, also without an open page")
                    async for number in signals:
                        # Ctrl-C is the usual end.
                        status = 0 if number == signal.SIGINT else 128 + number
                        break
                    pages.close()
            except UsageError as error:
                problem = error
        tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
    return status


class Watch:
    """The pages of one folder `base` and of `files`: recordings by path, reports by name."""

    def __init__(self, base: Path, files: Sequence[Path | str]) -> None:
        self.base = base
        self._files = list(files)
        self._closing = anyio.Event()

    @property
    def routes(self) -> list[Route]:
        """Return the addresses of the pages and of what their scripts ask for."""
        return [
            Route("/", self._page),
            Route("/events", self._events),
            Route("/conversation", self._conversation),
            Route("/report", self._report),
            Route("/history", self._history),
            Route("/recording", self._show_recording),
        ]

    def close(self) -> None:
        """End all streams of events."""
        self._closing.set()

    async def _page(self, request: Request) -> Response:
        runs = await run_sync(self._runs)
        names = [(number, visible(str(file))) for number, file in enumerate(self._files)]
        chosen = request.query_params.get("run", "")
        return HTMLResponse(watch_page(str(self.base), runs, names, chosen))

    def _logs(self) -> list[Path]:
        """Return the progress files, the newest run first."""
        return sorted((self.base / FOLDER).glob("*.jsonl"), reverse=True)

    def _log(self, run: str) -> Path | None:
        """Return the file of a run, the newest by default; None if there is none."""
        return next((path for path in self._logs() if run in ("", path.stem)), None)

    def _runs(self) -> list[RunLine]:
        return [self._line(path) for path in self._logs()[:MAX_RUNS_LISTED]]

    def _line(self, path: Path) -> RunLine:
        state = RunState()
        for event, at, _ in _read_events(path):
            state.feed(event, at)
        word = "killed" if _is_killed(state) else "running"
        word = state.ended.verdict if state.ended else word
        done = len(state.verdicts) or state.plays
        return RunLine(path.stem, state.started.activity, state.started.target, word, done)

    async def _events(self, request: Request) -> Response:
        """Stream a run's progress, or a recording; `Last-Event-ID` is `RUN:OFFSET`."""
        number = request.query_params.get("recording", "")
        if number:
            path = self._recording_path(number)
            return event_stream(self._follow_recording(path)) if path else _not_found()
        last = request.headers.get("last-event-id", "")
        return event_stream(self._follow(request.query_params.get("run", ""), last))

    async def _follow(self, chosen: str, last_id: str) -> AsyncGenerator[str]:
        """Yield `begin` for each run, then its `progress`; `gone` if it was killed.

        Without a chosen run it is the newest, and then each newer one.
        """
        current, _, number = last_id.rpartition(":")
        sent = int(number) if number.isdecimal() else 0
        state, position, told_gone = RunState(), 0, False
        yield "retry: 1000\n\n"
        while True:
            path = await run_sync(self._log, chosen)
            if path is not None and path.stem != current:
                current, sent = path.stem, 0
                state, position, told_gone = RunState(), 0, False
                yield event_text("begin", {"run": current}, f"{current}:0")
            events = await run_sync(_read_events, path, position) if path else []
            for event, at, position in events:
                state.feed(event, at)
                if position > sent:
                    row = {"event": event.kind, "at": at, **dataclasses.asdict(event)}
                    yield event_text("progress", row, f"{current}:{position}")
            if state.started.pid and not events and not told_gone and _is_killed(state):
                told_gone = True
                yield event_text("gone", {"pid": state.started.pid})
            with anyio.move_on_after(POLL_SECONDS):
                await self._closing.wait()
                return

    async def _follow_recording(self, path: Path) -> AsyncGenerator[str]:
        feed, size = DiagramFeed(), -1
        while True:
            grown = await run_sync(_size, path)
            if grown != size:
                size = grown
                diagram = await run_sync(_diagram, path)
                change = feed.change(diagram, is_live=False) if diagram is not None else None
                if change is not None:
                    yield event_text("diagram", change)
            with anyio.move_on_after(RECORDING_SECONDS):
                await self._closing.wait()
                return

    async def _conversation(self, request: Request) -> Response:
        """Return the diagram of a play of a run; only files that its progress names are read."""
        run, scenario = (request.query_params.get(name, "") for name in ("run", "scenario"))
        log = self._log(run)
        events = [event for event, *_ in await run_sync(_read_events, log)] if log else []
        traces = [
            event.trace
            for event in events
            if isinstance(event, PlayEnded | Found) and event.scenario == scenario and event.trace
        ]
        diagram = await run_sync(_diagram, Path(traces[-1])) if traces else None
        if diagram is None:
            return JSONResponse({"error": "the conversation is not there any more"}, 404)
        return JSONResponse(diagram.as_json())

    async def _report(self, request: Request) -> Response:
        run, number = (request.query_params.get(name, "") for name in ("run", "file"))
        word = ""
        if number.isdecimal() and int(number) < len(self._files):
            word = str(self._files[int(number)])
        elif any(path.stem == run for path in self._logs()):
            word = str(self.base / HISTORY / run / "report.json")
        try:
            page = await run_sync(lambda: find_recorded(word).html() if word else "")
        except HarnessError as error:
            return Response(visible(str(error)), 404, media_type="text/plain")
        return HTMLResponse(page) if page else _not_found()

    async def _history(self, _: Request) -> Response:
        try:
            history = await run_sync(read_history, self.base / FILE)
        except HistoryError as error:
            return HTMLResponse(history_page(None, visible(str(error))))
        return HTMLResponse(history_page(history))

    async def _show_recording(self, request: Request) -> Response:
        number = request.query_params.get("file", "")
        path = self._recording_path(number)
        return HTMLResponse(recording_page(str(path), number)) if path else _not_found()

    def _recording_path(self, number: str) -> Path | None:
        is_index = number.isdecimal() and int(number) < len(self._files)
        file = self._files[int(number)] if is_index else None
        return file if isinstance(file, Path) else None


def _read_events(path: Path, offset: int = 0) -> list[tuple[Event, float, int]]:
    try:
        return read_events(path, offset)
    except OSError:  # Only the last runs are kept.
        return []


def _is_killed(state: RunState) -> bool:
    return state.ended is None and not is_running(state.started.pid)


def _not_found() -> Response:
    return Response("there is no such run, report or recording", 404, media_type="text/plain")


def _diagram(path: Path) -> Diagram | None:
    """Return the judged conversation of a file, None if it cannot be read."""
    try:
        trace, rows = judge_file(path, None)
    except (OSError, ValueError, HarnessError, TraceFormatError):
        return None
    return build_diagram(trace, rows)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
