"""The progress of a run as a few lines of a terminal, from its events."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.text import Text

from harness.protocol.escapes import visible
from harness.report.progress.events import Event, Found, PlayEnded
from harness.report.progress.state import LaneState, RunState

MIN_WIDTH_WITH_STEPS: Final = 70
"""Columns of a terminal below which a lane's line names only its scenario."""
MAX_BAR_COLUMNS: Final = 100
_STYLES: Final = {"FAIL": "red", "ERROR": "red", "SHOULD": "yellow"}


@dataclass(slots=True)
class RunView:
    """Plays done and left, the time left, and what each lane plays.

    `expected` maps scenarios of the run to the seconds of an earlier play. `clock` returns seconds
    since the epoch, as events have them.
    """

    expected: Mapping[str, float] = field(default_factory=dict[str, float])
    clock: Callable[[], float] = time.time
    state: RunState = field(default_factory=RunState)
    _ends: dict[str, PlayEnded] = field(default_factory=dict[str, PlayEnded])
    _failed: int = 0
    _rules: set[str] = field(default_factory=set[str])

    def feed(self, event: Event, at: float) -> None:
        """Take the next event of the run, which happened at `at`."""
        self.state.feed(event, at)
        if isinstance(event, PlayEnded):
            self._ends[event.scenario] = event

    def settle(self, scenario: str) -> Iterator[Text]:
        """Yield the lines of a play that counts: its failure, and the rules broken for the first
        time. One that failed beside others may still be replayed alone, and does not count yet.
        """
        end = self._ends.get(scenario)
        if end is not None and end.verdict in ("FAIL", "ERROR"):
            self._failed += 1
            yield line_above(end.verdict, f"scenario {scenario}: {end.reason}")
        # Findings of a race are about its scenario.
        for found in [
            one
            for one in self.state.findings
            if one.scenario == scenario or scenario.startswith(f"{one.scenario}@")
        ]:
            mark = "FAIL" if found.level == "MUST" else found.level
            if mark in _STYLES and found.rule not in self._rules and not _is_reason(found):
                self._rules.add(found.rule)
                yield line_above(mark, f"{found.rule} in {scenario}: {found.text}")

    def seconds_left(self) -> float | None:
        """Return an estimate of the seconds left, None before the first play has ended.

        The plays so far tell the speed; each play counts as long as an earlier one took, and one
        without an earlier play as long as the others on average.
        """
        total, done = self.state.started.total, self.state.verdicts
        if not done or len(done) > total:
            return None
        usual = sum(self.expected.values()) / len(self.expected) if self.expected else 1.0
        unknown = total - len(self.expected)
        work = sum(self.expected.values()) + max(0, unknown) * usual
        played = sum(self.expected.get(scenario, usual) for scenario in done)
        seconds = self.clock() - self.state.began
        return max(0.0, work - played) * seconds / played if played else None

    def plain_lines(self, min_seconds: float) -> Iterator[str]:
        """Yield how far the run is, and the lanes whose play takes `min_seconds` or longer."""
        yield self.head()
        for name, lane in sorted(self.state.lanes.items()):
            if self.clock() - lane.began >= min_seconds:
                yield self._lane_line(name, lane, MAX_BAR_COLUMNS)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the lines that the terminal has room for."""
        yield crop_line(self.head())
        total, rows = self.state.started.total, console.size.height - 3
        if total and rows > 0:
            width = min(options.max_width, MAX_BAR_COLUMNS)
            yield ProgressBar(total=total, completed=len(self.state.verdicts), width=width)
            yield Segment.line()
        lanes = sorted(self.state.lanes.items(), key=lambda lane: (len(lane[0]), lane[0]))
        shown = lanes if len(lanes) <= rows else lanes[: max(0, rows - 1)]
        for name, lane in shown:
            yield crop_line(self._lane_line(name, lane, options.max_width), "dim")
        if len(lanes) > len(shown):
            yield crop_line(f"  and {len(lanes) - len(shown)} more", "dim")

    def head(self) -> str:
        """Return how far the run is: `132 of 640 played, 40 s left, 2 failed`."""
        total, left = self.state.started.total, self.seconds_left()
        parts = (
            f"{len(self.state.verdicts)} of {total or '?'} played",
            "" if left is None else f"{duration_words(left)} left",
            f"{self._failed} failed" if self._failed else "",
            f"broken rules: {len(self._rules)}" if self._rules else "",
        )
        return ", ".join(filter(None, parts))

    def _lane_line(self, name: str, lane: LaneState, width: int) -> str:
        seconds = max(0.0, self.clock() - lane.began)
        head = f"  {visible(name)} {seconds:5.1f} s  {visible(lane.scenario)}"
        if width < MIN_WIDTH_WITH_STEPS or not lane.step:
            return head
        return f"{head:<{width // 2}}  {visible(self._wait_words(lane))}"

    def _wait_words(self, lane: LaneState) -> str:
        """Return `waits for the end of turn u, 3 s of 10 s (wait, line 8)`; else the step alone."""
        if not lane.waits_for:
            return lane.step
        waited = min(max(0.0, self.clock() - lane.waits_since), lane.bound)
        bound = f"{waited:.0f} s of {lane.bound:g} s"
        return f"waits for {lane.waits_for}, {bound} ({lane.step})"


def duration_words(seconds: float) -> str:
    """Return seconds in words: `8 s`, `2 min 10 s`, `1 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _is_reason(finding: Found) -> bool:
    """Return whether a finding is the reason of its scenario's verdict, which says it already."""
    return finding.rule.startswith("scenario.")


def line_above(mark: str, words: str) -> Text:
    """Return the line of a verdict or level, in its colour, for what went wrong."""
    return crop_line(f"{mark:6} {visible(words)}", _STYLES[mark])


def crop_line(line: str, style: str = "") -> Text:
    """Return a line that is cut at the edge of the terminal."""
    return Text(line, style, no_wrap=True, overflow="crop")
