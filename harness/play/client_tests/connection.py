"""One connection of a client: its messages, and its result."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.model.model import ScriptedModel
from harness.play.client_duties.live import ClientJudge
from harness.play.client_duties.verdicts import DutyVerdict, KnownFinding
from harness.play.client_tests.problems import (
    early_request_problem,
    problems_of,
    refused_requests,
)
from harness.scenario.loader import Loaded

# Messages judged of one connection; a client that sends more is reported.
MAX_FRAMES = 100_000
# Problems reported for one connection, beside its duties.
MAX_PROBLEMS = 20
# The refused requests of a connection that are reported.
MAX_REFUSED = 20


@dataclass(frozen=True, slots=True)
class ConnectionResult:
    """The result of a connection; `scenario` is "" if none was left for it.

    With `strict` a broken SHOULD makes it RED too.
    """

    connection: str
    scenario: str
    problems: tuple[str, ...] = ()
    duties: tuple[DutyVerdict, ...] = ()
    strict: bool = False
    refused: tuple[str, ...] = ()

    @property
    def is_red(self) -> bool:
        """Return whether there was a problem or a broken duty."""
        return bool(self.problems) or any(duty.is_red(strict=self.strict) for duty in self.duties)

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "connection": self.connection,
            "scenario": self.scenario,
            "problems": list(self.problems),
            "refused": list(self.refused),
            "duties": [duty.to_json() for duty in self.duties],
        }


@dataclass(slots=True)
class StagedConnection:
    """One connection while it is open; pass it every message on the wire.

    With `requires_initialize` a client that sends another request first has a problem.
    `known_findings` are about words that its dialect has beyond the text: a rule, and a text in
    what it found; `known_methods` are the dialect's methods.
    """

    number: str
    loaded: Loaded
    requires_initialize: bool = False
    known_findings: Sequence[tuple[str, str]] = ()
    known_methods: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list[str])
    _judge: ClientJudge = field(init=False)

    def __post_init__(self) -> None:
        known_findings = [KnownFinding(*pair) for pair in self.known_findings]
        self._judge = ClientJudge(
            self.loaded.id, max_frames=MAX_FRAMES, known_findings=known_findings
        )
        self._judge.open_connection(self.number)

    def add_client_message(self, raw: bytes) -> None:
        """Record a message of the client."""
        self._judge.add_client_message(self.number, raw)

    def add_server_message(self, raw: bytes) -> None:
        """Record a message to the client."""
        self._judge.add_server_message(self.number, raw)

    def add_problem(self, problem: str) -> None:
        """Add a problem that no message shows; those after the first `MAX_PROBLEMS` are dropped."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def close(self) -> None:
        """Record that either side ends the connection; what follows is clean-up. Idempotent."""
        self._judge.close_connection(self.number)

    def finish(self, model: ScriptedModel, work: Path) -> ConnectionResult:
        """Return the result, once the server is done; `work` is the workspace at the end."""
        duties = tuple(self._judge.finish())
        if self._judge.cut_off:
            self.add_problem(self._judge.cut_off)
        early = early_request_problem(self._judge.trace) if self.requires_initialize else None
        if early is not None:
            self.add_problem(early)
        problems = problems_of(self.loaded, model, self._judge.trace, work)
        refused = islice(refused_requests(self._judge.trace, self.known_methods), MAX_REFUSED)
        return ConnectionResult(
            self.number,
            self.loaded.id,
            (*self.problems, *problems),
            duties,
            refused=tuple(refused),
        )

    def fail(self, problem: str) -> ConnectionResult:
        """Return the result of a connection that could not be served to its end."""
        self.add_problem(problem)
        return ConnectionResult(
            self.number, self.loaded.id, tuple(self.problems), tuple(self._judge.finish())
        )
