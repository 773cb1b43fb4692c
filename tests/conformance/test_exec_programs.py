"""Programs that write the events of `agent exec`, judged as a run judges them.

A stranger, written from the text alone with other choices than most, breaks no rule; programs with
a bad habit break theirs; one that is none at all is one finding. The reference agent agrees with
its own server.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.report.results.merge import merge
from harness.report.results.outcome import ScenarioOutcome
from harness.report.results.report import Report
from harness.scenario.bundled import bundled_ids_on
from harness.trace.surfaces import EXEC, scenario_of
from tests.conformance.judging import bundled
from tests.processes import Said, run_warm
from tests.sampling import one_in

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
# A program that takes few words on its command line.
TERSE = """
name = "terse"
extends = "spec"

[exec]
arguments = []
sandbox = []
cwd = []
schema_file = "--schema {value}"
setting = []
resume = "--thread {value}"
image = []
"""
PLAIN = "turns/plain-turn"
# What a program can be asked that speaks no protocol but these events.
TELLING = (
    PLAIN,
    "turns/two-turns",
    "commands/exit-code",
    "commands/two-at-once",
    "exec/resumed",
    "exec/structured",
    "exec/refused",
    "exec/model",
    "failures/http-500",
    "tools/run-command",
)


def command(script: str, *words: str) -> str:
    return " ".join([sys.executable, str(PROGRAMS / f"{script}.py"), *words])


def played(
    agent_cmd: str, names: Iterable[str], *, target: str = "spec", server_cmd: str = ""
) -> tuple[Report, list[ScenarioOutcome]]:
    config = configure(target=target, server_cmd=server_cmd, agent_cmd=agent_cmd)
    session = WorkerSession(config)
    try:
        outcomes = [session.play(one.on_surface(EXEC)) for one in bundled(*names)]
    finally:
        loose = session.close()
    report = merge(
        outcomes,
        loose,
        profile=config.profile,
        entries=config.entries,
        rules=config.rules,
        book=config.book,
    )
    return report, outcomes


@pytest.fixture(scope="module")
def terse(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("profile") / "terse.toml"
    path.write_text(TERSE, "utf-8")
    return str(path)


def test_a_stranger_that_chose_otherwise_breaks_nothing(terse: str) -> None:
    report, outcomes = played(command("stranger"), TELLING, target=terse)
    assert report.red_rules() == []
    assert {one.id: one.verdict for one in outcomes if one.verdict is not Verdict.PASS} == {}
    judged = {rule.id for rule in report.rules if rule.verdict is Verdict.PASS}
    assert {"exec.turn-ends", "exec.resumed-history", "exec.thread-kept", "exec.usage"} <= judged
    assert [rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


@pytest.mark.parametrize("name", one_in(6, sorted(bundled_ids_on(EXEC)), pytest.mark.bugs))
def test_no_scenario_fails_a_stranger(name: str, terse: str) -> None:
    report, outcomes = played(command("stranger"), [scenario_of(name)], target=terse)
    assert report.red_rules() == []
    assert outcomes[0].verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE), outcomes[0].reason


@pytest.mark.parametrize(
    ("habit", "rule"),
    [
        ("thread-late", "exec.thread-first"),
        ("never-ends", "exec.turn-ends"),
        ("ends-twice", "exec.end-is-last"),
    ],
)
def test_a_habit_shows_as_its_rule(habit: str, rule: str, terse: str) -> None:
    report, _ = played(command("stream", habit), [PLAIN], target=terse)
    assert [one.id for one in report.red_rules()] == [rule]


def test_lines_for_people_are_a_hint_only(terse: str) -> None:
    report, _ = played(command("stream", "noise"), [PLAIN], target=terse)
    assert report.red_rules() == []
    assert [one.id for one in report.rules if one.verdict is Verdict.FAIL] == ["exec.events-typed"]


def test_another_program_is_one_finding() -> None:
    report, outcomes = played("true", [PLAIN, "turns/two-turns"])
    assert [issue.id for issue in report.issues] == ["setup.no-events"]
    assert {one.verdict for one in outcomes} == {Verdict.NOT_EXERCISED}
    assert "--agent-cmd true" in report.issues[0].repeat


def test_a_program_that_hangs_is_ended_at_the_bound(terse: str) -> None:
    config = configure(target=terse, agent_cmd=command("stream", "hangs"), scale=0.05)
    session = WorkerSession(config)
    try:
        (outcome,) = (session.play(one.on_surface(EXEC)) for one in bundled(PLAIN))
    finally:
        session.close()
    assert outcome.verdict is Verdict.FAIL
    assert [one.id for one in outcome.findings] == ["scenario.timeout"]
    assert outcome.reason.endswith("s for the end of turn u, whose process still runs")
    # What never came because we ended it is nobody's breach.
    assert "exec.turn-ends" not in {row.rule for row in outcome.rows}


def test_the_reference_agent_tells_on_both_surfaces_the_same() -> None:
    names = (PLAIN, "tools/run-command", "files/add")
    report, outcomes = played("agent", names, target="reference", server_cmd="agent app-server")
    assert {one.verdict for one in outcomes} == {Verdict.PASS}
    rules = {rule.id: rule for rule in report.rules}
    agreement = rules["exec.agrees-with-session"]
    assert (agreement.verdict, agreement.witnesses) == (Verdict.PASS, len(names))


RESUMED_WITH_FULL_ACCESS = """
import os, sys
words = sys.argv[2:]
if "resume" in words:
    at = words.index("--sandbox") if {condition} else None
    words = words if at is None else [*words[:at], *words[at + 2 :]]
    words[1:1] = ["--sandbox", "danger-full-access"] if {grants} else []
os.execvp(sys.argv[1], [sys.argv[1], *words])
"""


@pytest.mark.parametrize(
    ("condition", "grants", "file"),
    [
        ('"--sandbox" in words', "True", "inner/made.txt"),
        ("False", '"--sandbox" not in words', "without.txt"),
    ],
    ids=["always", "where-no-sandbox-is-named"],
)
def test_read_only_thread_that_is_resumed_with_full_access_is_told(
    tmp_path: Path, condition: str, grants: str, file: str
) -> None:
    text = RESUMED_WITH_FULL_ACCESS.format(condition=condition, grants=grants)
    script = tmp_path / "wide.py"
    script.write_text(text, "utf-8")
    agent_cmd = f"{sys.executable} {script} {Path(sys.executable).with_name('agent')}"
    _, [outcome] = played(agent_cmd, ["exec/resumed-confined"], target="reference")
    if outcome.verdict is Verdict.NOT_APPLICABLE:
        pytest.skip("this machine cannot confine commands")
    assert (outcome.verdict, outcome.reason.split(";")[0]) == (
        Verdict.FAIL,
        f"workspace: {file} exists",
    )


def test_the_doctor_says_whether_an_agent_can_be_judged(tmp_path: Path, terse: str) -> None:
    def doctor(agent_cmd: str) -> Said:
        words = ("--target", terse, "--agent-cmd", agent_cmd)
        return run_warm("harness", "doctor", *words, cwd=tmp_path)

    good = doctor(command("stream"))
    assert good.status == 1, "it never calls the model"
    assert "ok   it writes events" in good.out
    assert "FAIL the model at" in good.out
    none = doctor("true")
    assert none.status == 1
    assert "FAIL it writes no event; it ended with status 0" in none.out
    missing = doctor("no-such-agent")
    assert "give --agent-cmd a program on PATH" in missing.err
