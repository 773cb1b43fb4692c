"""The harness, which is the client of every run, keeps the duties of clients itself.

All bundled scenarios are looked at. What a scenario sends wrong on purpose, as a whole message,
breaks none (frames that are `deliberate`).
"""

import pytest

from harness.cli.commands.check_clients import check_client
from harness.scenario.bundled import bundled_ids_on
from harness.trace.surfaces import SESSION
from tests.suite_play import PLAY_BOUND, suite_play

# A request for a review is of an operation that the text lists elsewhere: INFO.
REVIEW = {"duty.method-known"}
# A request that is right in form, about a turn that the client has made up.
MADE_UP = {"duty.turn-known"}
MEANT = {
    "interrupts/another-turn": MADE_UP,
    "interrupts/no-turn-id": MADE_UP,
    "reviews/detached": REVIEW,
    "reviews/fails": REVIEW,
    "reviews/findings": REVIEW,
    "reviews/interrupted": REVIEW,
    "reviews/interrupted-command": REVIEW,
    "reviews/runs-a-command": REVIEW,
    "skills/remote": {"duty.remote-skills"},
    "steering/refused": MADE_UP,
    "turns/second-start": {"duty.running-turn-steered"},
    "tools/steer": MADE_UP,
}


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.timeout(PLAY_BOUND)
def test_the_harness_is_a_dutiful_client() -> None:
    broken: dict[str, set[str]] = {}
    for name in bundled_ids_on(SESSION):
        if suite_play().scenario(name).withheld:
            continue
        found = check_client(suite_play().trace(name))
        verdicts = {one.rule: one.verdict for one in found.duties}
        assert verdicts["duty.params-complete"] == "PASS", name
        assert not found.red, name
        if failed := {rule for rule, verdict in verdicts.items() if verdict == "FAIL"}:
            broken[name] = failed
    assert broken == MEANT
