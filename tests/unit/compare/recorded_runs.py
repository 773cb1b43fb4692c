"""Made-up runs, for tests that compare runs."""

from __future__ import annotations

from typing import Any

from harness.judge.ledger.record import Record
from harness.judge.ledger.trace_observer import Sighting
from harness.judge.verdict import Level, Row, Verdict
from harness.report.compare.values import Run
from harness.report.results.outcome import ScenarioOutcome
from tests.unit.results.outcomes import ONCE, report_of

SCENARIO = "turns/one"


def row(verdict: Verdict, **more: Any) -> Row:
    fields: dict[str, Any] = {"subject": "turn u", "level": Level.MUST, "frames": (3,), **more}
    return Row(ONCE, verdict=verdict, **fields)


def played(name: str = SCENARIO, *rows: Row, **more: Any) -> ScenarioOutcome:
    """Return the outcome of a played scenario, with a trace of the same name."""
    trace = f"/{name}.jsonl"
    fields: dict[str, Any] = {"verdict": Verdict.PASS, "played": True, "kept": trace}
    fields |= {"record": Record(choices=[Sighting("rpc.handshake", "", "same", 1, 0)]), **more}
    return ScenarioOutcome(
        name, f"/there/{name}", f"about {name}", rows=list(rows), trace=trace, **fields
    )


def run(name: str, *outcomes: ScenarioOutcome, **more: Any) -> Run:
    return Run(name, report_of(*outcomes, **more))
