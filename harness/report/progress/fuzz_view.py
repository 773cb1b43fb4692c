"""The progress of a fuzz campaign as a few lines of a terminal."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from harness.protocol.escapes import visible
from harness.report.progress.events import Event, Found, PlaysCounted, PlayStarted
from harness.report.progress.run_view import crop_line, duration_words, line_above


@dataclass(slots=True)
class FuzzView:
    """Cases played of each kind, the time left of `seconds` (None: no bound), and findings.

    `note` is told of the current kind beside that. `clock` returns seconds.
    """

    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    note: str = ""
    _began: float = field(init=False)
    _cases: dict[str, int] = field(default_factory=dict[str, int])
    _played: int = 0
    _findings: int = 0

    def __post_init__(self) -> None:
        """Note when the campaign begins."""
        self._began = self.clock()

    def feed(self, event: Event) -> Text | None:
        """Take the next event; return the line of a finding, None for another event."""
        match event:
            case PlayStarted():
                self._cases[event.scenario] = 0
                self.note = ""
            case PlaysCounted():
                kind = next(reversed(self._cases), "stored failures")
                self._cases[kind] = self._cases.get(kind, 0) + event.plays - self._played
                self._played = event.plays
            case Found():
                self._findings += 1
                words = event.text if event.text.startswith(event.rule) else ""
                return line_above("FAIL", words or f"{event.rule}: {event.text}")
            case _:
                pass
        return None

    def plain_lines(self) -> Iterator[str]:
        """Yield a line for the campaign, and its note."""
        spent = self.clock() - self._began
        left = None if self.seconds is None else max(0.0, self.seconds - spent)
        parts = (
            f"{self._played} plays",
            f"{duration_words(spent)} spent" if left is None else f"{duration_words(left)} left",
            f"findings: {self._findings}" if self._findings else "",
        )
        yield ", ".join(filter(None, parts))
        if self.note:
            yield f"  {visible(self.note)}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render a line for the campaign, and one for each kind so far."""
        head, *notes = self.plain_lines()
        yield crop_line(head)
        for kind, cases in self._cases.items():
            yield crop_line(f"  {kind}: {cases} plays", "dim")
        for note in notes:
            yield crop_line(note, "dim")
