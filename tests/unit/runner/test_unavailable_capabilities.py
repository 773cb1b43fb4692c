"""Capabilities that this machine lacks are removed from a profile's, and reported in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.client.target.host import Lack
from harness.client.target.profile import Profile, Program
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.unavailable_capabilities import withdraw, withheld_outcome
from harness.play.worker_session import WorkerSession
from harness.report.json_form import from_plain, to_plain
from harness.report.results.merge import merge
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.terminal import summary
from harness.scenario.loader import Loaded, load_text
from tests.unit.results.outcomes import BOOK, ONCE, RULES, entry, outcome, passed

KNOWN = [one.id for one in BOOK.capabilities]
LACK = Lack("sandbox", "confine", "confine was not found", "install the package confiner")
LINE = "that need sandbox: confine was not found; install the package confiner"
PROMISES = ["core", "command-execution", "sandbox"]
FILE = """
name = "mine"
command = "true"
capabilities = ["core", "sandbox"]
[host.{capability}]
command = "no-such-program"
install = "the package confiner"
"""


def profile(capabilities: object = PROMISES) -> Profile:
    needed = Program(command=["confine"], install="the package confiner")
    return Profile(name="p", capabilities=capabilities, host={"sandbox": needed})  # pyright: ignore[reportArgumentType]


def needing(*needs: str) -> Loaded:
    text = f"title: t\nneeds: [{', '.join(needs)}]\nclient: [{{start_thread: {{as: t}}}}]"
    return load_text(text, name="needy")


def test_only_capabilities_that_the_machine_lacks_are_withdrawn() -> None:
    rest, lacks = withdraw(profile(), [], KNOWN, [LACK])
    assert rest.capabilities == ["core", "command-execution"]
    assert lacks == (LACK,)
    assert withdraw(profile(), [], KNOWN, []) == (profile(), ())


def test_a_reported_lack_is_not_checked_again() -> None:
    _, asked = withdraw(profile(), [], KNOWN)
    assert [lack.cause for lack in asked] == ["confine was not found"]
    _, told = withdraw(profile(), [], KNOWN, [])
    assert told == ()


@pytest.mark.parametrize("capabilities", [PROMISES, "probe"])
def test_a_scenario_that_needs_it_does_not_apply_and_says_which_program(
    capabilities: object,
) -> None:
    rest, lacks = withdraw(profile(capabilities), [], KNOWN, [LACK])
    found = withheld_outcome(needing("sandbox"), rest, lacks)
    assert found is not None
    assert (found.verdict, found.reason) == (Verdict.NOT_APPLICABLE, LACK.reason)
    assert (found.missing, found.withheld) == ((), "sandbox")
    assert withheld_outcome(needing("command-execution"), rest, lacks) is None


def test_features_that_the_server_lacks_are_not_blamed_on_the_machine() -> None:
    rest, lacks = withdraw(profile(), [], KNOWN, [LACK])
    assert withheld_outcome(needing("sandbox", "history"), rest, lacks) is None


@pytest.mark.parametrize("require", ["sandbox", "core,sandbox", "all"])
def test_who_requires_it_is_told_which_program_is_missing(tmp_path: Path, require: str) -> None:
    (path := tmp_path / "mine.toml").write_text(FILE.format(capability="sandbox"))
    assert configure(target=str(path)).profile.capabilities == ["core"]
    assert configure(target=str(path), require="core").profile.capabilities == ["core"]
    with pytest.raises(UsageError, match="no-such-program was not found; install the package co"):
        configure(target=str(path), require=require)


def test_a_misspelt_capability_in_the_profile_is_a_mistake(tmp_path: Path) -> None:
    (path := tmp_path / "mine.toml").write_text(FILE.format(capability="sandbx"))
    with pytest.raises(UsageError, match=r"host: unknown capability 'sandbx'.*sandbox"):
        configure(target=str(path))


def test_such_a_scenario_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (path := tmp_path / "mine.toml").write_text(FILE.format(capability="sandbox"))
    session = WorkerSession(configure(target=str(path)))
    found = session.play(needing("sandbox"))
    assert session.close() == []
    assert found.verdict is Verdict.NOT_APPLICABLE
    assert "no-such-program was not found" in found.reason


def report(*outcomes: ScenarioOutcome, races: tuple[RaceOutcome, ...] = (), **more: object):
    rest, lacks = withdraw(profile(), [], KNOWN, [LACK])
    return merge(
        list(outcomes),
        [],
        races=races,
        profile=rest,
        entries=more.get("entries", ()),  # pyright: ignore[reportArgumentType]
        rules=more.get("rules", RULES),  # pyright: ignore[reportArgumentType]
        book=BOOK,
        lacks=lacks,
    )


def unplayed(name: str) -> ScenarioOutcome:
    fields = {"verdict": Verdict.NOT_APPLICABLE, "reason": LACK.reason, "played": False}
    return outcome(name, withheld="sandbox", **fields)


def lines(found: Report) -> list[str]:
    return [line for line in summary(found, BOOK) if "confine" in line]


def test_one_line_says_what_was_not_judged_and_what_to_install() -> None:
    found = report(outcome("a", passed(ONCE)), unplayed("b"), unplayed("c"))
    assert lines(found) == [f"not judged on this machine: 2 scenario(s), 0 rule(s) {LINE}"]
    assert not found.red


def test_races_that_need_it_are_counted_too() -> None:
    race = RaceOutcome("b@kill", "b", "/b", "b", "kill", Verdict.NOT_APPLICABLE, LACK.reason)
    race.withheld = "sandbox"
    found = report(races=(race,))
    (line,) = lines(found)
    assert line == f"not judged on this machine: 0 scenario(s), 1 race(s), 0 rule(s) {LINE}"


def test_rules_that_need_it_are_counted_too() -> None:
    class Confined(RULES[ONCE]):
        needs = ("sandbox",)

    class Both(RULES[ONCE]):
        needs = ("sandbox", "history")

    Confined.id, Both.id = "test.confined", "test.both"
    found = report(outcome("a"), rules={"test.confined": Confined, "test.both": Both})
    verdicts = {rule.id: (rule.verdict, rule.reason) for rule in found.rules}
    assert verdicts["test.confined"] == (Verdict.NOT_APPLICABLE, LACK.reason)
    assert verdicts["test.both"][1] == "the target does not declare history"
    why = {rule.id: (rule.missing, rule.withheld) for rule in found.rules}
    assert why == {"test.confined": ((), "sandbox"), "test.both": (("history",), "")}
    assert lines(found) == [f"not judged on this machine: 0 scenario(s), 1 rule(s) {LINE}"]


def test_where_nothing_needed_it_nothing_is_said() -> None:
    assert lines(report(outcome("a", passed(ONCE)))) == []


def test_the_json_report_has_it_and_can_be_read_again() -> None:
    found = report(unplayed("b"))
    plain = json.loads(json.dumps(to_plain(found)))
    assert plain["withheld"] == [
        {
            "capability": "sandbox",
            "program": "confine",
            "why": "confine was not found",
            "advice": "install the package confiner",
            "scenarios": ["b"],
            "races": [],
            "rules": [],
        }
    ]
    assert [one["withheld"] for one in plain["scenarios"]] == ["sandbox"]
    assert from_plain(plain).withheld == found.withheld
    del plain["withheld"]
    assert from_plain(plain).withheld == [], "a report of an older version"


def test_an_entry_of_a_baseline_about_what_was_not_played_is_not_stale() -> None:
    about = entry("scenario.timeout", scenario="b")
    found = report(outcome("a", passed(ONCE)), unplayed("b"), entries=(about,))
    assert [issue.id for issue in found.issues] == []
    assert found.unchecked == ["scenario.timeout (scenario b)"]
