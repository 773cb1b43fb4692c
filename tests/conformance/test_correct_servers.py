"""Correct servers are never red: a small one, and one that does everything the unusual way.

The small one is played with the whole suite. The whole suite on the unusual one is `make readings`:
`make test` plays one in five of its habits with a few scenarios. The reference server has been
played already (`tests.suite_play`).
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.client.target.host import lacks_of
from harness.client.target.profile import load_profile
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.scenario.bundled import bundled_ids_on
from harness.trace.marks import Place
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION
from tests.sampling import one_in
from tests.suite_play import PLAY_BOUND, suite_play

from .judging import SERVERS, Judged, alone, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

# All that the small server offers; a scenario that needs more does not apply to it.
OFFERED_BY_MINIMAL = {"core", "deltas", "json-lines"}


WHOLE_SUITE = pytest.mark.timeout(400)
"""All scenarios one after the other, on a machine that does other things too."""
# One scenario for each way in which a turn can go.
TELLING = ("turns/two-turns", "turns/interrupt-mid-text", "failures/http-500")
LISTED = subprocess.run(
    [sys.executable, str(SERVERS / "unusual.py"), "list"], capture_output=True, check=True
)
HABITS = [line.split()[0] for line in LISTED.stdout.decode().splitlines()]
SHOULD_REMARKS = {
    # It answers an interrupt last, after the end that this causes.
    "answers-backwards": {"response.before-effects"},
    "error-absent": {"shape.notification", "shape.response"},
    "reads-briefly": {"shape.response"},
    "uuid-ids": {"thread.id-shape", "turn.id-shape"},
    "worries": {"error.retry-follows"},
}


def expected(offered: set[str]) -> dict[str, str]:
    """Scenario id -> the verdict of a correct server that offers this and no more."""
    return {
        one.id: "PASS" if set(one.scenario.needs) <= offered else "NOT_APPLICABLE"
        for one in bundled()
    }


# What the text says only in its enumeration of parameters, or of the other party, or shows in one
# example against its own list of words; our own reading of what its errors mean: it binds nobody.
REMARKS_ON_MINIMAL = {
    "model.effort-passed",
    "model.summary-passed",
    "thread.sandbox-camel-taken",
    "turn-error.info-fits",
    "turn-error.tells-cause",
    # A model that breaks the schema is not the server's doing.
    "turn.schema-kept",
}


@WHOLE_SUITE
def test_minimal_server_passes_all_that_it_offers() -> None:
    found = judged(command("minimal"), bundled(), scale=1)
    assert found.failed_rules() == []
    assert found.issues() == {}
    short = {rule.id: rule.level for rule in found.report.rules if rule.verdict is Verdict.FAIL}
    assert short == dict.fromkeys(REMARKS_ON_MINIMAL, Level.INFO)
    assert found.verdicts() == expected(OFFERED_BY_MINIMAL)
    assert _unjudged_although_covered(found) == set()
    assert not found.report.red


@pytest.mark.readings
@WHOLE_SUITE
@pytest.mark.parametrize("habits", ["all", "others"])
def test_unusual_server_breaks_no_must_rule(habits: str) -> None:
    found = judged(f"{command('unusual')} {habits}", bundled(), scale=1)
    broken = {
        rule.id: rule.level
        for rule in found.report.rules
        if rule.verdict in (Verdict.FAIL, Verdict.ERROR)
    }
    assert Level.MUST not in broken.values(), broken
    assert broken, "a server this unusual gets some remarks"
    assert [name for name, verdict in found.verdicts().items() if verdict == "FAIL"] == []
    assert found.issues() == {}
    assert not found.report.red


@pytest.mark.parametrize("habit", one_in(5, HABITS, pytest.mark.readings))
def test_no_habit_alone_breaks_a_rule_that_binds(habit: str) -> None:
    found = judged(f"{command('unusual')} {habit}", bundled(*TELLING), scale=1)
    broken = {
        rule.id
        for rule in found.report.rules
        if rule.verdict in (Verdict.FAIL, Verdict.ERROR) and rule.level is not Level.INFO
    }
    assert broken == SHOULD_REMARKS.get(habit, set())
    assert found.issues() == {}
    verdicts = found.verdicts()
    assert set(verdicts.values()) <= {"PASS", "NOT_APPLICABLE"}
    assert verdicts["turns/two-turns"] == verdicts["failures/http-500"] == "PASS"
    assert not found.report.red


# What the reference server gives no occasion to judge, or is reported as INFO, with the reason.
UNMET_BY_REFERENCE = {
    "item.process-apart": "it runs the commands of a thread one after the other",
    "method.known": "it calls a client's tool by item/tool/call, which the text does not name",
}


@pytest.mark.timeout(PLAY_BOUND)
def test_reference_server_passes_everything_and_leaves_nothing_behind() -> None:
    report = suite_play().report
    profile = load_profile("reference")
    offered = set(profile.capabilities) - {one.capability for one in lacks_of(profile)}
    assert report.red_rules() == []
    assert report.issues == []
    verdicts = {one.id: one.verdict.value for one in report.scenarios}
    assert expected(offered).items() <= verdicts.items()
    # Each bundled scenario gives the rules that it covers something to judge.
    assert [name for name, verdict in verdicts.items() if verdict == "NOT_EXERCISED"] == []
    everywhere = (bundled_ids_on(surface) for surface in (SESSION, EXEC, COMMAND, SDK))
    assert set(verdicts) == set().union(*everywhere)
    needs = {rule.id: set(rule.needs) for rule in all_rules().values()}
    unjudged = [rule.id for rule in report.rules if rule.verdict is not Verdict.PASS]
    assert {name for name in unjudged if needs[name] <= offered} == UNMET_BY_REFERENCE.keys()


def test_one_process_serves_scenarios_that_share_it_and_a_fresh_one_those_that_want_it() -> None:
    server = command("minimal")
    shared = judged(server, bundled("turns/plain-turn", "turns/two-turns"), scale=1)
    homes = [_home(outcome.trace) for outcome in shared.outcomes.values()]
    assert len(set(homes)) == 1
    again = [alone(loaded) for loaded in bundled("turns/plain-turn", "turns/two-turns")]
    fresh = judged(server, again, scale=1)
    assert len({_home(outcome.trace) for outcome in fresh.outcomes.values()}) == 2


def _home(trace: str) -> str:
    from pathlib import Path

    from harness.trace.store import load

    (mark,) = load(Path(trace)).marks_of(Place)
    return mark.body.home


def _unjudged_although_covered(found: Judged) -> set[str]:
    """Rules that a passing scenario covers and that gave no verdict in the whole run."""
    passed = {name for name, verdict in found.verdicts().items() if verdict == "PASS"}
    covered = {rule for one in bundled(*passed) for rule in one.scenario.covers}
    return {
        rule.id
        for rule in found.report.rules
        if rule.id in covered and rule.verdict is Verdict.NOT_EXERCISED
    }
