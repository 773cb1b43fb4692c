"""The state of a run after some of its events."""

from collections import Counter
from dataclasses import dataclass, field

from harness.report.progress.events import (
    Event,
    Found,
    PlayEnded,
    PlaysCounted,
    PlayStarted,
    RunEnded,
    RunStarted,
    StepStarted,
)


@dataclass(slots=True)
class LaneState:
    """The play of a lane, the step that it waits in ("" if unknown), and when the play began.

    `waits_for` are the words of what the step waits for, `bound` the seconds of silence that it
    allows, and `waits_since` when that silence began.
    """

    scenario: str
    step: str
    began: float
    waits_for: str = ""
    bound: float = 0.0
    waits_since: float = 0.0


@dataclass(slots=True)
class RunState:
    """State of a run. `verdicts` maps played scenarios to their last verdict; `plays` is the
    number of a campaign's plays.
    """

    started: RunStarted = field(default_factory=lambda: RunStarted(run=""))
    began: float = 0.0
    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    lanes: dict[str, LaneState] = field(default_factory=dict[str, LaneState])
    findings: list[Found] = field(default_factory=list[Found])
    plays: int = 0
    ended: RunEnded | None = None

    @property
    def counts(self) -> Counter[str]:
        """Return how many scenarios have each verdict."""
        return Counter(self.verdicts.values())

    def seconds_left(self, now: float) -> float | None:
        """Return the estimated seconds until the end at a time; None if it cannot be estimated."""
        done, total = len(self.verdicts), self.started.total
        if self.ended is not None or not done or done > total:
            return None
        return (total - done) * (now - self.began) / done

    def feed(self, event: Event, at: float) -> None:
        """Take the next event; `at` is its time in seconds since the epoch."""
        match event:
            case RunStarted():
                self.started, self.began = event, at
            case PlayStarted():
                if event.again:  # Only the play alone counts.
                    self.findings = [one for one in self.findings if one.scenario != event.scenario]
                self.lanes[event.lane] = LaneState(event.scenario, "", at)
            case StepStarted():
                lane = self.lanes.setdefault(event.lane, LaneState(event.scenario, "", at))
                if lane.scenario != event.scenario:
                    lane.scenario, lane.began = event.scenario, at
                lane.step, lane.waits_for = event.step, event.waits_for
                lane.bound, lane.waits_since = event.bound, at
            case PlaysCounted():
                self.plays = event.plays
            case Found():
                self.findings.append(event)
            case PlayEnded():
                self.lanes.pop(event.lane, None)
                self.verdicts[event.scenario] = event.verdict
            case RunEnded():
                self.lanes.clear()
                self.ended = event
