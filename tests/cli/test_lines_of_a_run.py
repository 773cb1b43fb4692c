"""What a run prints: what somebody has to read, and with -v all the rest."""

import pytest
from command_line import call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PLAIN = ["--target", "reference", "turns/plain-turn"]


def test_a_run_of_one_scenario_names_no_rule_that_it_did_not_exercise() -> None:
    said = call("harness", "run", *PLAIN)
    assert said.status == 0
    assert "approval.accepted-runs" not in said.out
    (line,) = [one for one in said.out.splitlines() if one.startswith("NOT_EXERCISED")]
    assert line.endswith("no scenario of this run gave it anything to judge (-v names them)")
    assert len(said.out.splitlines()) < 20


def test_with_v_it_names_them() -> None:
    said = call("harness", "run", *PLAIN, "-v")
    assert said.status == 0
    _, summary = said.out.split("conformance of reference", 1)
    assert "  approval.accepted-runs approval.always-asked" in summary
