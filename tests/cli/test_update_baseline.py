"""`--update-baseline`: a run's findings are written, and KNOWN in the next run."""

import os
import pty
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command_line import PLAIN, ROOT, Said, call

from harness.report.results.baseline_update import NO_ENTRIES
from tests.processes import COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

GOOD = f"python {ROOT}/fixtures/servers/minimal.py"
TWICE = f"python {ROOT}/fixtures/servers/twice.py {GOOD}"
ONCE = "turn.completed-once"
UPDATE = ["--update-baseline", "--reason", "issue 7"]
COMMENT = "# what we know\n"


def run(folder: Path, server: str, *words: str) -> Said:
    options = ["--server-cmd", server, "--baseline", "known.toml", "turns/plain-turn"]
    return call("harness", "run", *options, *words, cwd=folder)


def known(folder: Path) -> str:
    return (folder / "known.toml").read_text("utf-8")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_run_that_writes_is_green_and_so_is_the_next(tmp_path: Path, workers: str) -> None:
    said = run(tmp_path, TWICE, *UPDATE, "--expires", "2100-01-31", "-n", workers)
    assert said.status == 0, said.out
    assert "baseline: known.toml: 1 entry added, 0 taken out" in said.out
    assert "KNOWN turn.completed-once: issue 7" in said.out
    assert known(tmp_path) == (
        f'[[deviations]]\nrule = "{ONCE}"\nscenario = "turns/plain-turn"\n'
        'reason = "issue 7"\nexpires = 2100-01-31\n'
    )
    again = run(tmp_path, TWICE, "-n", workers)
    assert (again.status, "verdict: GREEN" in again.out) == (0, True), again.out
    before = known(tmp_path)
    third = run(tmp_path, TWICE, *UPDATE)
    assert "baseline: known.toml needs no change" in third.out
    assert known(tmp_path) == before


def test_a_green_run_writes_a_file_that_the_next_run_reads(tmp_path: Path) -> None:
    said = run(tmp_path, GOOD, *UPDATE)
    assert "baseline: known.toml: written without entries" in said.out
    assert known(tmp_path) == NO_ENTRIES
    again = run(tmp_path, GOOD)
    assert (again.status, "verdict: GREEN" in again.out) == (0, True), again.out


def test_stale_entries_are_removed_and_comments_stay(tmp_path: Path) -> None:
    run(tmp_path, TWICE, *UPDATE)
    (tmp_path / "known.toml").write_text(COMMENT + known(tmp_path), "utf-8")
    assert run(tmp_path, GOOD).status == 1
    said = run(tmp_path, GOOD, *UPDATE)
    assert (said.status, "baseline.stale" in said.out) == (0, False), said.out
    assert known(tmp_path) == COMMENT


def test_an_entry_whose_day_is_over_gives_way_to_a_new_one(tmp_path: Path) -> None:
    day = datetime.now(UTC).date() - timedelta(days=1)
    old = f'[[deviations]]\nrule = "{ONCE}"\nreason = "old"\nexpires = {day}\n'
    (tmp_path / "known.toml").write_text(old, "utf-8")
    said = run(tmp_path, TWICE, *UPDATE)
    assert (said.status, "baseline.expired" in said.out) == (0, False), said.out
    assert known(tmp_path).count("[[deviations]]") == 1
    assert 'reason = "issue 7"' in known(tmp_path)


def test_a_scenarios_own_failure_is_known_too(tmp_path: Path) -> None:
    text = "title: t\nclient:\n  - start_thread: {as: t}\nexpect: {items: [userMessage]}\n"
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "one.scenario.yaml").write_text(text, "utf-8")
    said = run(tmp_path, GOOD, "my", *UPDATE)
    assert said.status == 0, said.out
    assert "KNOWN scenario my/one: issue 7" in said.out
    assert 'rule = "scenario.expectation"\nscenario = "my/one"' in known(tmp_path)
    assert run(tmp_path, GOOD, "my").status == 0


def test_a_server_that_does_not_start_is_no_known_deviation(tmp_path: Path) -> None:
    said = run(tmp_path, f"python {ROOT}/fixtures/servers/broken/does_not_start.py", *UPDATE)
    assert (said.status, "setup.not-started" in said.out) == (1, True), said.out
    assert not (tmp_path / "known.toml").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--baseline", "k.toml", "--update-baseline"], "needs --reason 'why this is accepted'"),
        (["--update-baseline", "--reason", "r"], "needs --baseline FILE, the file to write"),
        (
            ["--baseline", "k.toml", *UPDATE, "--expires", "tomorrow"],
            "--expires tomorrow: give a day such as 2027-01-31",
        ),
        (["--baseline", "no/k.toml", *UPDATE], "its folder does not exist"),
    ],
)
def test_missing_files_are_reported_before_anything_is_played(
    tmp_path: Path, words: list[str], complaint: str
) -> None:
    said = call("harness", "run", "--server-cmd", GOOD, "turns/plain-turn", *words, cwd=tmp_path)
    assert said.status == 2
    assert complaint in said.err
    assert "Traceback" not in said.err
    assert not list(tmp_path.glob("*.toml"))


def test_at_a_terminal_the_reason_is_asked_for(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["run", "--server-cmd", TWICE, "--baseline", "known.toml", "turns/plain-turn"]
    env = {**os.environ, **PLAIN}
    command = [COMMANDS / "harness", *words, "--update-baseline"]
    os.write(ours, b"since yesterday\n")
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE
    ) as process:
        out, _ = process.communicate(timeout=60)
    asked = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, out
    assert "why is what this run finds accepted?" in asked
    assert 'reason = "since yesterday"' in known(tmp_path)
