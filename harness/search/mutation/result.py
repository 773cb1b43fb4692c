"""The result of each fault, and the score."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.faults.mutation import Outcome

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fault in one scenario.

    `changed` says in words what was changed in the messages, `why` why the rule said nothing; both
    are empty where they are not known, or there is nothing to say. `live`: the fault was at work
    while the scenario was played; else it was put into the trace of a play without it.
    """

    scenario: str
    outcome: Outcome
    live: bool
    changed: tuple[str, ...] = ()
    why: str = ""
    seconds: float = 0.0
    trace: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Attempt":
        """An attempt that another process told as JSON."""
        return cls(
            scenario=str(told["scenario"]),
            outcome=Outcome(told["outcome"]),
            live=bool(told["live"]),
            changed=tuple(told["changed"]),
            why=str(told["why"]),
            seconds=float(told["seconds"]),
            trace=str(told["trace"]),
        )


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The result of one fault: the attempt that decided it is the last one, if any.

    `places` are scenarios in whose traces without it the rule saw it, the quickest first.
    """

    fault: str
    rule: str
    reason: str
    outcome: Outcome
    attempts: tuple[Attempt, ...] = ()
    why: str = ""
    places: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Return whether what decided it was played with the fault at work."""
        return bool(self.attempts) and self.attempts[-1].live


@dataclass(slots=True)
class Score:
    """All faults of a run, as far as it came; `planned` of them were to be tried."""

    target: str
    planned: int
    results: list[FaultResult] = field(default_factory=list[FaultResult])
    scenarios: int = 0
    seconds: float = 0.0
    interrupted: str = ""

    def count(self, outcome: Outcome) -> int:
        """Return the number of faults with this outcome."""
        return Counter(result.outcome for result in self.results)[outcome]

    @property
    def value(self) -> float | None:
        """KILLED of all that could be killed, 0 to 1; None where there is no such fault."""
        counted = len(self.results) - self.count(Outcome.MASKED)
        return self.count(Outcome.KILLED) / counted if counted else None

    def of(self, outcome: Outcome) -> list[FaultResult]:
        """The faults with this outcome, in order of their ids."""
        results = [result for result in self.results if result.outcome is outcome]
        return sorted(results, key=lambda result: result.fault)

    def as_json(self) -> dict[str, Any]:
        """The whole of it, for `--json`."""
        return {
            "format": FORMAT,
            "target": self.target,
            "score": self.value,
            "planned": self.planned,
            "scenarios": self.scenarios,
            "seconds": round(self.seconds, 1),
            "interrupted": self.interrupted,
            "counts": {str(outcome): self.count(outcome) for outcome in Outcome},
            "faults": [
                asdict(result) for result in sorted(self.results, key=lambda result: result.fault)
            ],
        }


def settled(attempts: Sequence[Attempt]) -> Outcome:
    """Return the outcome of several attempts at one fault: one that kills it decides.

    A fault that the rule missed somewhere is SURVIVED, although it was MASKED elsewhere.
    """
    outcomes = {attempt.outcome for attempt in attempts}
    for outcome in (Outcome.KILLED, Outcome.SURVIVED, Outcome.MASKED):
        if outcome in outcomes:
            return outcome
    return Outcome.NOT_APPLIED
