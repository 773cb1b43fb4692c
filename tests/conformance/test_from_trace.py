"""A scenario that is made of the trace of a run plays green where it came from.

Bundled scenarios are played, a scenario is made of each trace, and that one is played: all of them,
none excepted, area by area, with what the run was given; a sample without it, as a recording.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.commands.from_trace import from_trace, written
from harness.scenario.bundled import bundled_on
from harness.trace.surfaces import EXEC, SESSION
from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# Of these the messages alone say enough.
SAMPLE = (
    "turns/plain-turn",
    "approvals/accept-command",
    "approvals/decline-file-change",
    "approvals/second-of-two",
    "files/add",
    "files/move",
    "interrupts/during-an-approval",
    "interrupts/twice",
    "plans/changed-twice",
    "steering/while-it-speaks",
    "threads/fork",
    "threads/list-pages",
    "tools/run-command-fails",
    "tools/view-image",
    "tools/web-search",
)
# Of these they do not: a configuration, a cut within a call, a kill, a pipe, several clients.
GIVEN = (
    "approvals/client-leaves",
    "clients/unsubscribed-mid-turn",
    "compaction/interrupted",
    "failures/cut-within-a-call",
    "failures/elsewhere",
    "language/kill-mid-turn",
    "threads/killed/in-a-message",
    "tools/mcp/progress",
)
AREAS = sorted({one.split("/")[0] for one in bundled_on(SESSION)})


EXEC_SAMPLE = ("exec/aborted", "exec/image", "exec/resumed", "files/update", "tools/mcp-call")


def run(folder: Path, *scenarios: str, workers: int = 2) -> None:
    """Play scenarios on the reference server, or agent; all must be green."""
    (folder / "tmp").mkdir(exist_ok=True)
    # The folder must not look like one in the system's temporary folder: traces go elsewhere then.
    places = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [COMMANDS / "harness", "run", "--target", "reference", "-n", str(workers), *scenarios],
        capture_output=True,
        encoding="utf-8",
        timeout=8 * BOUND,
        env={**places, "PATH": f"{COMMANDS}{os.pathsep}{places['PATH']}"},
        cwd=folder,
    )
    assert said.returncode == 0, said.stdout[-6000:]


def remade(folder: Path, *, bare: bool = False) -> list[str]:
    """Make a scenario of each trace of a run; `bare`: of what its messages say alone."""
    traces = folder / ".harness" / "traces" / "reference"
    found: list[str] = []
    for trace in sorted(traces.rglob("*.jsonl")):
        name = trace.relative_to(traces).as_posix().removesuffix(".jsonl").removesuffix("@exec")
        if bare:
            head, *rest = trace.read_text("utf-8").splitlines(keepends=True)
            row = json.loads(head)
            del row["trace"]["given"]
            trace.write_text(f"{json.dumps(row)}\n{''.join(rest)}", "utf-8")
        found.append(name)
        written(from_trace(trace), folder / "again" / f"{name}.scenario.yaml")
    return found


def test_scenarios_made_of_messages_alone_are_green_where_they_came_from(tmp_path: Path) -> None:
    run(tmp_path, *SAMPLE)
    assert remade(tmp_path, bare=True) == sorted(SAMPLE)
    run(tmp_path, "again")


def test_what_no_message_shows_comes_from_the_head_of_the_trace(tmp_path: Path) -> None:
    run(tmp_path, *GIVEN)
    assert remade(tmp_path) == sorted(GIVEN)
    run(tmp_path, "again")


@pytest.mark.runs
@pytest.mark.parametrize("area", AREAS)
def test_every_bundled_scenario_comes_back_from_its_trace(area: str, tmp_path: Path) -> None:
    run(tmp_path, f"{area}/", workers=0)
    assert remade(tmp_path)
    run(tmp_path, "again", workers=0)


def test_runs_of_a_program_come_back_from_their_events_alone(tmp_path: Path) -> None:
    run(tmp_path, "--agent-cmd", "agent", *EXEC_SAMPLE)
    assert remade(tmp_path, bare=True) == sorted(EXEC_SAMPLE)
    run(tmp_path, "--agent-cmd", "agent", "again")


@pytest.mark.runs
def test_every_bundled_scenario_of_agent_exec_comes_back_from_its_trace(tmp_path: Path) -> None:
    names = sorted(one.removesuffix("@exec") for one in bundled_on(EXEC))
    run(tmp_path, "--agent-cmd", "agent", *names)
    assert set(remade(tmp_path)) <= set(names)
    run(tmp_path, "--agent-cmd", "agent", "again")
