"""Commands that show a finding of the run again."""

import pytest

from harness.client.target.profile import Deviation
from harness.judge.verdict import Verdict
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.results.rerun import ReplayCommands, findings_naming_scenario
from harness.report.results.rerun_command import Programs

REPORT = Report("p", "serve 'a b' {listen}", profile="my profile.toml")
TARGET = "--target 'my profile.toml' --server-cmd 'serve '\"'\"'a b'\"'\"' {listen}'"


def outcome(name: str, *findings: Finding, race: str = "") -> ScenarioOutcome:
    path = f"/s/{name.partition('@')[0]}.scenario.yaml"
    return ScenarioOutcome(name, path, "", Verdict.FAIL, findings=list(findings), race=race)


def test_a_set_up_finding_is_examined_by_doctor() -> None:
    again = ReplayCommands(REPORT, [])
    assert again.for_finding(Finding("setup.not-started", "x")) == f"harness doctor {TARGET}"


def test_a_finding_after_a_scenario_plays_that_scenario() -> None:
    again = ReplayCommands(REPORT, [outcome("a"), outcome("b")])
    finding = Finding("hygiene.panic", "x", about=("b",))
    assert again.for_finding(finding) == f"harness run {TARGET} /s/b.scenario.yaml"


def test_state_that_leaks_plays_the_scenarios_before_it_too_in_their_order() -> None:
    again = ReplayCommands(REPORT, [outcome("a"), outcome("b")])
    finding = Finding("leaks-state", "x", about=("b", "a"))
    assert again.for_finding(finding).endswith(" /s/b.scenario.yaml /s/a.scenario.yaml")


def test_a_finding_of_a_placement_plays_the_placement() -> None:
    placement = outcome(
        "a@interrupt", Finding("hygiene.exit-status", "x"), race="interrupt@delta:1"
    )
    [finding] = findings_naming_scenario(placement)
    told = ReplayCommands(REPORT, [placement]).for_finding(finding)
    assert told == f"harness run {TARGET} --race interrupt@delta:1 /s/a.scenario.yaml"


def test_a_repeated_play_keeps_the_required_capabilities_and_the_confinement() -> None:
    report = Report("p", "serve", required="review,plan", confined=True)
    again = ReplayCommands(report, [outcome("a")])
    finding = Finding("hygiene.panic", "x", about=("a",))
    assert again.for_finding(finding) == (
        "harness run --target p --server-cmd serve --confine --require review,plan "
        "/s/a.scenario.yaml"
    )


def test_findings_without_a_scenario_have_no_command() -> None:
    again = ReplayCommands(REPORT, [outcome("a")])
    assert again.for_finding(Finding("hygiene.ignores-term", "x")) == ""
    assert again.for_finding(Finding("hygiene.panic", "x", about=("sanity",))) == ""


def test_a_stale_entry_plays_its_rule() -> None:
    again = ReplayCommands(REPORT, [])
    entry = Deviation(rule="turn.completes", reason="known")
    assert again.for_entry(entry) == f"harness run {TARGET} --rule turn.completes"
    assert again.for_entry(Deviation(rule="hygiene.panic", reason="known")) == ""


@pytest.mark.parametrize(
    ("surface", "named"),
    [
        ("session", ["--server-cmd"]),
        ("exec", ["--server-cmd", "--agent-cmd"]),
        ("command", ["--agent-cmd"]),
        ("sdk", ["--server-cmd", "--agent-cmd", "--sdk-cmd"]),
    ],
)
def test_a_play_that_is_compared_names_the_programs_of_both(surface: str, named: list[str]) -> None:
    words = Programs("spec", "a-server", "an-agent", "a-driver").options(surface)
    assert [one for one in words if one.endswith("-cmd")] == named
    assert Programs("spec", agent="an-agent").options("exec")[2:] == ["--agent-cmd", "an-agent"]
