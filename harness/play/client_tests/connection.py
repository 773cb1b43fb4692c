"""One connection of a client: what is said on it, and what it came to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model.model import ScriptedModel
from harness.play.client_duties.live import ClientJudge
from harness.play.client_duties.verdicts import DutyVerdict
from harness.play.client_tests.problems import problems_of
from harness.scenario.loader import Loaded

# So many messages of a connection are judged; a client that floods is told of.
MAX_FRAMES = 100_000
# A problem that comes again and again is told so many times.
MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a connection. `scenario` is "" if none was left for it."""

    connection: str
    scenario: str
    problems: tuple[str, ...] = ()
    duties: tuple[DutyVerdict, ...] = ()

    @property
    def red(self) -> bool:
        """Return whether something was wrong."""
        return bool(self.problems) or any(one.red for one in self.duties)

    def json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "connection": self.connection,
            "scenario": self.scenario,
            "problems": list(self.problems),
            "duties": [one.json() for one in self.duties],
        }


@dataclass(slots=True)
class StagedConnection:
    """One connection while it lasts, by its number; tell it what is on the wire."""

    number: str
    loaded: Loaded
    notes: list[str] = field(default_factory=list[str])
    _judge: ClientJudge = field(init=False)

    def __post_init__(self) -> None:
        self._judge = ClientJudge(self.loaded.id, max_frames=MAX_FRAMES)
        self._judge.opened(self.number)

    def came(self, raw: bytes) -> None:
        """The client has sent a message."""
        self._judge.client_sent(self.number, raw)

    def went(self, raw: bytes) -> None:
        """A message is sent to the client."""
        self._judge.server_sent(self.number, raw)

    def note(self, problem: str) -> None:
        """Something was wrong that no message shows."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(problem)

    def closed(self) -> None:
        """The connection has ended."""
        self._judge.closed(self.number)

    def result(self, model: ScriptedModel, work: Path) -> Ended:
        """Return the result, once the server has ended what it did for the connection."""
        duties = tuple(self._judge.finish())
        if self._judge.cut_off:
            self.note(self._judge.cut_off)
        found = problems_of(self.loaded, model, self._judge.trace, work)
        return Ended(self.number, self.loaded.id, (*self.notes, *found), duties)

    def failed(self, problem: str) -> Ended:
        """Return the result of a connection that could not be served to its end."""
        self.note(problem)
        return Ended(self.number, self.loaded.id, tuple(self.notes), tuple(self._judge.finish()))
