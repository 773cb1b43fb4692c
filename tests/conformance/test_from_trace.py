"""A scenario made from the trace of a run passes on the server of that run.

A scenario is made of each trace of the play that tests share (`tests.suite_play`), with what the
run was given; those are played that together have each member and each pair of steps that any of
them has. A sample is played without what the run was given, as a recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from harness.cli.commands.from_trace import from_trace, write_scenario
from harness.judge.verdict import Verdict
from harness.scenario.bundled import bundled_ids_on
from harness.scenario.loader import load
from harness.trace.surfaces import EXEC, SESSION, scenario_of, surface_id
from tests.processes import BOUND, COMMANDS, start_fork
from tests.suite_play import PLAY_BOUND, suite_play

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.timeout(PLAY_BOUND)]

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
EXEC_SAMPLE = ("exec/aborted", "exec/image", "exec/resumed", "files/update", "tools/mcp-call")


def play(folder: Path) -> None:
    """Play the scenarios in `again` on the reference server and agent; all must be green."""
    (folder / "tmp").mkdir()
    path = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
    # The folder must not look like one in the system's temporary folder: traces go elsewhere then.
    places = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder), "PATH": path}
    words = ["run", "--target", "reference", "--agent-cmd", "agent", "again"]
    output = folder / "out.txt"
    with open(os.devnull, "rb") as source, output.open("wb") as out:
        streams = (source.fileno(), out.fileno(), out.fileno())
        run = start_fork(
            [str(COMMANDS / "harness"), *words], cwd=folder, env=places, streams=streams
        )
    assert run.wait(8 * BOUND) == 0, output.read_text("utf-8")[-6000:]


def remake(folder: Path, *names: str, bare: bool = False) -> None:
    """Make scenarios of the traces of `names`; `bare`: of what their messages say alone."""
    for name in names:
        played = suite_play().scenario(name)
        if played.withheld:
            continue  # Nothing was played that this machine cannot do.
        assert played.verdict is Verdict.PASS, played.reason
        trace = suite_play().trace(name)
        if bare:
            head, *rest = trace.read_text("utf-8").splitlines(keepends=True)
            row = json.loads(head)
            del row["trace"]["given"]
            folder.mkdir(parents=True, exist_ok=True)
            trace = folder / "recording.jsonl"
            trace.write_text(f"{json.dumps(row)}\n{''.join(rest)}", "utf-8")
        write_scenario(from_trace(trace), folder / f"{scenario_of(name)}.scenario.yaml")


def keep_every_form(folder: Path) -> None:
    """Delete scenarios, as long as the others together have each form that any has."""
    forms = {path: set(forms_of(path)) for path in sorted(folder.rglob("*.scenario.yaml"))}
    left = set[object]().union(*forms.values())
    while left:
        chosen = max(forms, key=lambda path: len(forms[path] & left))
        left -= forms.pop(chosen)
    for path in forms:
        path.unlink()


def forms_of(path: Path) -> Iterator[object]:
    """Give the paths of a scenario's members, and the pairs of steps that follow each other."""
    data = load(path).document.value
    yield from members(data)
    for side in ("setup", "client"):
        yield from pairwise(next(iter(step)) for step in data.get(side, []))


def members(data: Any, above: str = "") -> Iterator[str]:
    """Give the paths of all members of a value; the elements of a list share theirs."""
    if isinstance(data, dict):
        for name, value in cast("dict[str, Any]", data).items():
            yield f"{above}.{name}"
            yield from members(value, f"{above}.{name}")
    elif isinstance(data, list):
        for value in cast("list[Any]", data):
            yield from members(value, f"{above}[]")


def test_scenarios_made_of_samples_are_green_where_they_came_from(tmp_path: Path) -> None:
    again = tmp_path / "again"
    remake(again / "messages-alone", *SAMPLE, bare=True)
    remake(again / "with-the-head", *GIVEN)
    remake(again / "events-alone", *(surface_id(name, EXEC) for name in EXEC_SAMPLE), bare=True)
    play(tmp_path)


@pytest.mark.runs
def test_every_form_that_the_bundled_scenarios_have_comes_back_from_their_traces(
    tmp_path: Path,
) -> None:
    for surface in (SESSION, EXEC):
        folder = tmp_path / "again" / surface
        remake(folder, *bundled_ids_on(surface))
        keep_every_form(folder)
    play(tmp_path)
