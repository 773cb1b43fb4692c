"""The progress of several runs at once, each of a target, from the files of their events."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult

from harness.protocol.escapes import visible
from harness.report.progress.events import PlayEnded
from harness.report.progress.log import FOLDER, read_events
from harness.report.progress.run_view import RunView, crop_line


@dataclass(slots=True)
class _FollowedRun:
    view: RunView = field(default_factory=RunView)
    offset: int = 0

    def read(self, path: Path) -> None:
        for event, at, offset in read_events(path, self.offset):
            self.offset = offset
            self.view.feed(event, at)
            if isinstance(event, PlayEnded) and not event.provisional:
                for _ in self.view.settle(event.scenario):
                    pass  # Its lines are in the run's own output.


class PlaysView:
    """A line for each running target; `playing` returns the folders of their runs by label."""

    def __init__(self, playing: Callable[[], Mapping[str, Path]]) -> None:
        self._playing = playing
        self._runs: dict[Path, _FollowedRun] = {}

    def poll(self) -> None:
        """Read the events since the last time."""
        for folder in self._playing().values():
            for path in (folder / FOLDER).glob("*.jsonl"):
                with contextlib.suppress(OSError):
                    self._runs.setdefault(folder, _FollowedRun()).read(path)

    def lines(self) -> Iterator[str]:
        """Yield `codex@0.107.0: 132 of 640 played, 40 s left, 2 failed` of each running target."""
        for label, folder in sorted(self._playing().items()):
            run = self._runs.get(folder)
            yield f"{visible(label)}: {'starting' if run is None else run.view.head()}"

    def plain_lines(self) -> list[str]:
        """Poll, and return the lines."""
        self.poll()
        return list(self.lines())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the lines."""
        for line in self.lines():
            yield crop_line(line)
