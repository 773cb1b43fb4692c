"""Each bundled scenario fails on the planted bug (`bugs`) that its title is about."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.scenario.bundled import bundled_ids_on
from tests.conformance.bugs.planting import instead, swap
from tests.conformance.bugs.playing import KEEPER, play, tells, told
from tests.conformance.bugs.registry import bug, every
from tests.conformance.judging import bundled, command, judged

BUGS = {name: one for name, one in every().items() if one.reds}
# `make test` plays the first bug of each table: it notices when bugs can no longer be planted in
# some part of the server, or no longer be told. All the others take two minutes: `make bugs`.
SAMPLE = {one.plant.__module__: name for name, one in reversed(BUGS.items())}
ALL = [
    pytest.param(name, marks=() if name in SAMPLE.values() else pytest.mark.bugs) for name in BUGS
]
# One bug serves no more scenarios than share the point of their titles.
MAX_SCENARIOS = 8


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", ALL)
def test_bug_is_told_by_the_scenario_that_is_about_it(name: str) -> None:
    outcomes = play(BUGS[name])
    if not outcomes:
        pytest.skip("this machine cannot do what its scenarios need")
    for scenario, outcome in outcomes.items():
        red = BUGS[name].reds[scenario]
        assert tells(outcome, red), (scenario, outcome.verdict, outcome.reason, told(outcome))
        assert "Traceback" not in outcome.stderr, "the patch itself is broken"


def test_each_table_has_one_bug_in_the_sample() -> None:
    assert len(SAMPLE) == len({one.plant.__module__ for one in BUGS.values()}) >= 15


def test_every_scenario_has_a_bug_that_its_title_is_about() -> None:
    named = {scenario for one in BUGS.values() for scenario in one.reds}
    assert sorted(bundled_ids_on("session") - named) == []
    assert sorted(named - bundled_ids_on("session")) == [], "these are no scenarios (any more)"


def test_no_bug_is_made_for_all_scenarios_at_once() -> None:
    served = Counter({name: len(one.reds) for name, one in BUGS.items()})
    assert [name for name, count in served.items() if count > MAX_SCENARIOS] == []


def test_bugs_are_reported_by_a_binding_rule_or_a_finding_with_its_words() -> None:
    rules = all_rules()
    for name, one in BUGS.items():
        for red in one.reds.values():
            finding, _, piece = red.partition(": ")
            binds = finding in rules and rules[finding].level is not Level.INFO
            assert binds or (finding.startswith(("scenario.", "liveness.")) and piece), (name, red)


def test_bug_that_finds_nothing_to_spoil_cannot_be_planted() -> None:
    with pytest.raises(LookupError, match="the bug needs another place"):
        swap("reference_server.outbox:Outbox.put_back", lambda original: original)
    with pytest.raises(LookupError, match="the bug needs another place"):
        # What is inherited is spoilt where it is made.
        instead("reference_server.engine.tools.shell:ShellTool.__repr__", None)
    with pytest.raises(AttributeError):
        instead("reference_server.engine.tools.shell:Shell.run", None)
    with pytest.raises(ImportError):
        instead("reference_server.engine.tools.shells:ShellTool.run", None)


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("place")
def test_server_for_what_the_reference_server_does_not_offer_is_judged_right() -> None:
    names = {scenario for one in BUGS.values() if one.server == "keeper" for scenario in one.reds}
    found = judged(f"{command('keeper')} {{listen}}", bundled(*names), target=str(KEEPER), scale=1)
    assert set(found.verdicts().items()) == {(name, "PASS") for name in names}
    assert found.failed_rules() == []
    assert found.issues() == {}


def test_two_bugs_of_one_name_and_a_bug_without_words_are_refused() -> None:
    reds = {"turns/plain-turn": "turn.completes"}
    taken = next(iter(BUGS)).replace("-", "_")

    def nameless() -> None:
        pass

    def namesake() -> None:
        """Has the name of another."""

    namesake.__name__ = taken
    with pytest.raises(ValueError, match="must say what it is"):
        bug(reds=reds)(nameless)
    with pytest.raises(ValueError, match="two bugs of the name"):
        bug(reds=reds)(namesake)
