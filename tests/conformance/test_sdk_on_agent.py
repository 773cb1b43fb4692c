"""An SDK that drives a real agent: its results are judged, and compared with the session.

The Python SDK of this project on the reference agent is green; a driver that loses something on the
way is told by its rule; one that does not do its part is the finding of its scenario.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.bundled import bundled_files, bundled_scenario, listed_surfaces
from harness.scenario.identity import file_of
from harness.scenario.surfaces import needs_agent
from harness.trace.surfaces import SDK
from tests.conformance.scripts import forked_script
from tests.processes import COMMANDS, run_warm
from tests.sampling import one_in

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "fixtures" / "sdk_drivers" / "python_driver.py"
OURS = f"'{sys.executable}' '{DRIVER}'"
PLAIN, COMMAND, REFUSED = "turns/plain-turn", "tools/run-command", "failures/unauthorized"
AGREES = "sdk-run.agrees-with-session"
# A driver that changes what another one tells: `edit` is a statement about its `line`.
BETWEEN = """
import json, subprocess, sys
driver = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
driver.stdin.write(sys.stdin.readline())
driver.stdin.close()
for text in driver.stdout:
    line = json.loads(text)
    {edit}
    print(json.dumps(line), flush=True)
"""
LOSES_THE_COMMAND = 'line["result"]["items"] = line["result"]["items"][-1:]'
SWALLOWS = 'line.update(over="result", result={"finalResponse": "", "items": [], "usage": None})'


def sessions() -> list[str]:
    files = bundled_files()
    listed = [name for name, path in files.items() if SDK in listed_surfaces(file_of(path))]
    return [name for name in listed if needs_agent(bundled_scenario(name).scenario)]


def played(sdk_cmd: str, names: Iterable[str], *, server: bool = True) -> list[ScenarioOutcome]:
    server_cmd = f"'{COMMANDS}/agent' app-server" if server else ""
    config = configure(
        target="reference", server_cmd=server_cmd, agent_cmd="agent", sdk_cmd=sdk_cmd
    )
    session = WorkerSession(config)
    try:
        with forked_script(DRIVER):
            return [session.play(bundled_scenario(name).on_surface(SDK)) for name in names]
    finally:
        session.close()


def rules(outcome: ScenarioOutcome, verdict: Verdict) -> set[str]:
    return {row.rule for row in outcome.rows if row.verdict is verdict}


def test_our_sdk_gives_what_the_session_tells() -> None:
    for outcome in played(OURS, (PLAIN, COMMAND, REFUSED, "turns/two-threads")):
        assert (outcome.verdict, outcome.id.endswith("@sdk")) == (Verdict.PASS, True), outcome
        assert AGREES in rules(outcome, Verdict.PASS), outcome.id
        assert rules(outcome, Verdict.FAIL) == set()
        judged = {"sdk-run.rejects"} if outcome.id.startswith(REFUSED) else {"sdk-run.usage"}
        assert judged | {"sdk-child.input"} <= rules(outcome, Verdict.PASS)


@pytest.mark.parametrize("name", one_in(12, sessions(), pytest.mark.bugs))
def test_no_scenario_fails_our_sdk(name: str) -> None:
    (outcome,) = played(OURS, [name])
    assert outcome.verdict is Verdict.PASS, outcome.reason
    assert rules(outcome, Verdict.FAIL) == set()


def test_without_a_session_nothing_is_compared() -> None:
    (outcome,) = played(OURS, [PLAIN], server=False)
    assert outcome.verdict is Verdict.PASS
    assert AGREES not in {row.rule for row in outcome.rows}


@pytest.mark.parametrize(
    ("edit", "name", "told"),
    [
        (LOSES_THE_COMMAND, COMMAND, {AGREES, "sdk-run.items"}),
        (SWALLOWS, REFUSED, {AGREES, "sdk-run.rejects"}),
    ],
    ids=["loses-the-command", "swallows-the-failure"],
)
def test_losses_on_the_way_are_reported(
    edit: str, name: str, told: set[str], tmp_path: Path
) -> None:
    script = tmp_path / "between.py"
    script.write_text(BETWEEN.replace("{edit}", edit), "utf-8")
    (outcome,) = played(f"'{sys.executable}' '{script}' {OURS}", [name])
    assert rules(outcome, Verdict.FAIL) == told


def test_a_driver_that_ends_at_once_is_its_scenarios_finding() -> None:
    (outcome,) = played("true", [PLAIN], server=False)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.reason == "step wait: the driver reported no end of turn 1: it ended before"
    assert [one.id for one in outcome.findings] == ["scenario.expectation"]


def test_without_an_agent_these_are_not_played_and_a_line_says_so(tmp_path: Path) -> None:
    none = run_warm("harness", "run", "--sdk-cmd", "true", PLAIN, cwd=tmp_path)
    assert none.status == 5
    assert "--sdk-cmd with --agent-cmd" in none.out + none.err
    some = run_warm("harness", "run", "--sdk-cmd", "true", PLAIN, "sdk-calls/failed", cwd=tmp_path)
    assert "1 scenario(s) of sessions were not played through the SDK: give --agent-cmd" in some.out
