"""Correct servers are never red: a small one, and one that does everything the unusual way."""

from __future__ import annotations

import pytest

from harness.rules.verdict import Level, Verdict

from .judging import Judged, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

# What the small server does not offer; everything else that a scenario needs it has.
ABSENT_FROM_MINIMAL = {"reasoning", "model-retry"}


def test_minimal_server_passes_all_that_it_offers() -> None:
    found = judged(command("minimal"), bundled(), scale=1)
    assert found.failed_rules() == []
    assert found.issues() == {}
    needs = {one.id: set(one.scenario.needs) for one in bundled()}
    verdicts = found.verdicts()
    offered = {name for name, wanted in needs.items() if not wanted & ABSENT_FROM_MINIMAL}
    assert {name for name, verdict in verdicts.items() if verdict == "PASS"} == offered
    assert {verdicts[name] for name in needs.keys() - offered} == {"NOT_APPLICABLE"}
    assert _unjudged_although_covered(found) == set()
    assert not found.report.red


def test_unusual_server_breaks_no_must_rule() -> None:
    found = judged(command("unusual"), bundled(), scale=1)
    broken = {
        rule.id: rule.level
        for rule in found.report.rules
        if rule.verdict in (Verdict.FAIL, Verdict.ERROR)
    }
    assert Level.MUST not in broken.values(), broken
    assert broken, "a server this unusual gets some remarks"
    assert set(found.verdicts().values()) == {"PASS", "NOT_APPLICABLE"}
    assert found.issues() == {}
    assert not found.report.red


def test_reference_server_passes_everything_and_leaves_nothing_behind() -> None:
    found = judged("", bundled(), target="reference", scale=1)
    assert found.failed_rules() == []
    assert found.issues() == {}
    assert set(found.verdicts().values()) == {"PASS"}
    assert {rule.verdict for rule in found.report.rules} == {Verdict.PASS}


def test_one_process_serves_scenarios_that_share_it_and_a_fresh_one_those_that_want_it() -> None:
    server = command("minimal")
    shared = judged(server, bundled("turns/plain-turn", "turns/two-turns"), scale=1)
    homes = [_home(outcome.trace) for outcome in shared.outcomes.values()]
    assert len(set(homes)) == 1
    again = bundled("turns/plain-turn", "turns/two-turns")
    for loaded in again:
        object.__setattr__(loaded.scenario, "server", "fresh")
    fresh = judged(server, again, scale=1)
    assert len({_home(outcome.trace) for outcome in fresh.outcomes.values()}) == 2


def _home(trace: str) -> str:
    from pathlib import Path

    from harness.trace.store import load

    (mark,) = load(Path(trace)).marks_of("place")
    return mark.data["home"]


def _unjudged_although_covered(found: Judged) -> set[str]:
    """Rules that a passing scenario covers and that gave no verdict in the whole run."""
    passed = {name for name, verdict in found.verdicts().items() if verdict == "PASS"}
    covered = {rule for one in bundled(*passed) for rule in one.scenario.covers}
    return {
        rule.id
        for rule in found.report.rules
        if rule.id in covered and rule.verdict is Verdict.NOT_EXERCISED
    }
