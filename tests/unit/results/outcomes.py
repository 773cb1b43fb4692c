"""Made-up outcomes, for tests of merging and judging them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from harness.client.target.profile import Deviation, Profile
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.results.merge import merge
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.results.report import Report

BOOK, RULES = load_book(), all_rules()
ONCE, LAST = "turn.completed-once", "turn.completed-last"


def passed(rule: str, subject: str = "turn u") -> Row:
    return Row(rule, subject, Verdict.PASS, Level.MUST, (1,))


def failed(rule: str, subject: str = "turn u", *, level: Level = Level.MUST, **more: Any) -> Row:
    fields: dict[str, Any] = {"actual": "two of them", **more}
    return Row(rule, subject, Verdict.FAIL, level, (1,), **fields)


def outcome(name: str, *rows: Row, **more: Any) -> ScenarioOutcome:
    fields: dict[str, Any] = {"verdict": Verdict.PASS, "played": True, **more}
    return ScenarioOutcome(name, f"/there/{name}", f"about {name}", rows=list(rows), **fields)


def entry(rule: str = ONCE, **more: Any) -> Deviation:
    fields: dict[str, Any] = {"reason": "known", **more}
    return Deviation(rule=rule, **fields)


def report_of(
    *outcomes: ScenarioOutcome,
    loose: tuple[Finding, ...] = (),
    entries: tuple[Deviation, ...] = (),
    strict: bool = False,
    capabilities: Any = "probe",
    bundled: Collection[str] = (),
    shipped: Sequence[Deviation] = (),
    own: Collection[str] = (),
    profile: Profile | None = None,
) -> Report:
    profile = profile or Profile(name="p", command=["server"], capabilities=capabilities)
    return merge(
        list(outcomes),
        loose,
        profile=profile,
        entries=(*shipped, *entries),
        rules=RULES,
        book=BOOK,
        strict=strict,
        bundled=bundled,
        bundled_entries=shipped,
        user_scenarios=lambda _: own,
    )
