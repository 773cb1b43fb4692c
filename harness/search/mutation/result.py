"""Results of a mutation run: attempts, faults, and the score."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.faults.mutation import Outcome

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fault in one scenario.

    `changed` are the changes of messages in words, `why` is why the rule found nothing; both may be
    empty. `live`: the fault was at work while the scenario was played; else it was inserted into
    the trace of a clean play.
    """

    scenario: str
    outcome: Outcome
    live: bool
    changed: tuple[str, ...] = ()
    why: str = ""
    seconds: float = 0.0
    trace: str = ""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Attempt":
        """Return an attempt from another process's JSON."""
        return cls(
            scenario=str(data["scenario"]),
            outcome=Outcome(data["outcome"]),
            live=bool(data["live"]),
            changed=tuple(data["changed"]),
            why=str(data["why"]),
            seconds=float(data["seconds"]),
            trace=str(data["trace"]),
        )


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The result of one fault.

    `why` is set if there was no attempt. `places` are scenarios in whose clean traces the rule
    finds the fault, the quickest first.
    """

    fault: str
    rule: str
    reason: str
    outcome: Outcome
    attempts: tuple[Attempt, ...] = ()
    why: str = ""
    places: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "FaultResult":
        """Return a result from the JSON of an earlier run."""
        return cls(
            fault=str(data["fault"]),
            rule=str(data["rule"]),
            reason=str(data["reason"]),
            outcome=Outcome(data["outcome"]),
            attempts=tuple(Attempt.read(attempt) for attempt in data["attempts"]),
            why=str(data["why"]),
            places=tuple(data["places"]),
        )

    @property
    def live(self) -> bool:
        """Return whether the last attempt was played live."""
        return bool(self.attempts) and self.attempts[-1].live


@dataclass(slots=True)
class Score:
    """The results of a run so far; `planned_count` faults were to be tried."""

    target: str
    planned_count: int
    results: list[FaultResult] = field(default_factory=list[FaultResult])
    scenarios: int = 0
    seconds: float = 0.0
    interrupted_by: str = ""

    def count(self, outcome: Outcome) -> int:
        """Return the number of faults with this outcome."""
        return Counter(result.outcome for result in self.results)[outcome]

    @property
    def value(self) -> float | None:
        """Return the share of KILLED in all but MASKED faults, 0 to 1; None without such faults."""
        counted = len(self.results) - self.count(Outcome.MASKED)
        return self.count(Outcome.KILLED) / counted if counted else None

    def of(self, outcome: Outcome) -> list[FaultResult]:
        """Return the results with this outcome, in order of the fault ids."""
        results = [result for result in self.results if result.outcome is outcome]
        return sorted(results, key=lambda result: result.fault)

    def as_json(self) -> dict[str, Any]:
        """Return the score as a JSON object, for `--json`."""
        return {
            "format": FORMAT,
            "target": self.target,
            "score": self.value,
            "planned": self.planned_count,
            "scenarios": self.scenarios,
            "seconds": round(self.seconds, 1),
            "interrupted": self.interrupted_by,
            "counts": {str(outcome): self.count(outcome) for outcome in Outcome},
            "faults": [
                asdict(result) for result in sorted(self.results, key=lambda result: result.fault)
            ],
        }


def decide_outcome(attempts: Sequence[Attempt]) -> Outcome:
    """Return the outcome of several attempts at one fault: KILLED if any attempt killed it.

    A fault that the rule missed in one attempt is SURVIVED, although it was MASKED in others.
    """
    outcomes = {attempt.outcome for attempt in attempts}
    for outcome in (Outcome.KILLED, Outcome.SURVIVED, Outcome.MASKED):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_APPLIED
