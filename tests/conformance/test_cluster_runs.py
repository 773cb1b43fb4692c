"""`harness run --on`: the report of one machine, whichever worker, scheduler or run is killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import COMMANDS, Said, run_warm
from tools import three_machines

from .cluster_processes import DaskCluster, dask_cluster
from .judging import SERVERS, Running, command, fork_pytest

pytestmark = [pytest.mark.slow, pytest.mark.socket]

AGENT = COMMANDS / "agent"
REFERENCE = ("--server-cmd", f"{AGENT} app-server", "--agent-cmd", str(AGENT))
BAD = ("--server-cmd", command(Path("{place}/bad.py")), "--timeout-scale", "0.5")
# Has a finding when it ends, and only then.
DEAF = ("--server-cmd", command("broken/ignores_sigterm"), "--timeout-scale", "0.5")
STALE, PANIC = {"baseline.stale"}, "hygiene.panic"
KNOWN = """
[[deviations]]
rule = "turn.completed-once"
scenario = "turns/usage"
reason = "stale on the reference server, in one of three scenarios on the bad one"
"""
# Breaks a rule; has findings outside scenarios, some of which come when the server ends.
BAD_SERVER = f"""
import signal, sys
sys.path.insert(0, {str(SERVERS / "broken")!r})
from double_completed import DoubleCompleted
from ignores_sigterm import IgnoresSigterm
from panics import Panics
class Bad(DoubleCompleted, IgnoresSigterm, Panics):
    pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Bad().serve()
"""
MINE = """
title: a file beside the scenario
workspace: {files: {note.txt: {from: note.txt}}}
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u, status: completed}
expect: {workspace: {note.txt: "beside"}}
"""
# Says its process id in the FIFO and hangs in the first turn with this text, if `hangs` is there.
HANGS_ONCE = """
import os, pathlib, signal, sys
sys.path.insert(0, {servers!r})
from minimal import Server
class HangsOnce(Server):
    def turn_start(self, params, reply):
        hangs = pathlib.Path({folder!r}, "hangs")
        if "say b" in str(params) and hangs.exists():
            hangs.unlink()
            pathlib.Path({folder!r}, "fifo").write_text(str(os.getpid()))
            signal.pause()
        return super().turn_start(params, reply)
HangsOnce().serve()
"""
SAY = """
title: say {name}
model: [{{reply: [{{message: "hello"}}]}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "say {name}", as: u}}
  - wait: {{turn: u, status: completed}}
"""


MATRIX = f"""
scenarios = ["turns/plain-turn"]
[[target]]
name = "server"
versions = ["minimal", "broken/double_completed"]
server-cmd = {command(SERVERS / "{version}.py")!r}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two workers."""
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.address


def run(folder: Path, *words: str) -> Said:
    return harness(folder, "run", *words)


def harness(folder: Path, *words: str) -> Said:
    return run_warm("harness", *words, cwd=folder, env={**os.environ, "NO_COLOR": "1"})


def essence(path: Path) -> dict[str, Any]:
    """Return what a report says, without times and the frames of one play."""
    plain = json.loads(path.read_text("utf-8"))
    told = {name: plain[name] for name in ("red", "exit", "unchecked", "requirements")}
    told["choices"] = sorted(plain["choices"])
    for name, keys in {
        "rules": ("id", "verdict", "level", "reason", "missing", "counts"),
        "scenarios": ("id", "verdict", "reason", "messages", "runs"),
        "races": ("id", "verdict", "reason", "messages", "runs"),
        "issues": ("id", "message", "where", "paste", "repeat"),
    }.items():
        told[name] = [{key: row.get(key) for key in keys} for row in plain[name]]
    return told


@pytest.mark.parametrize(
    ("words", "status", "issues"),
    [
        ((*REFERENCE, "threads/read-turns", "turns/usage", "exec/model", "mine"), 1, STALE),
        ((*REFERENCE, "turns/plain-turn", "--race", "interrupt,disconnect"), 0, set[str]()),
        ((*BAD, "turns/plain-turn", "turns/usage"), 1, {"hygiene.ignores-term", PANIC}),
        ((*DEAF, "turns/plain-turn"), 0, {"hygiene.ignores-term"}),
    ],
    ids=["green", "race", "bad", "deaf"],
)
def test_run_on_a_cluster_reports_what_one_machine_does(
    words: tuple[str, ...], status: int, issues: set[str], address: str, place: Path
) -> None:
    (place / "known.toml").write_text(KNOWN, "utf-8")
    (place / "bad.py").write_text(BAD_SERVER, "utf-8")
    (place / "mine").mkdir()
    (place / "mine/own.scenario.yaml").write_text(MINE, "utf-8")
    (place / "mine/note.txt").write_text("beside", "utf-8")
    words = tuple(word.replace("{place}", str(place)) for word in words)
    words += () if "--race" in words else ("--baseline", "known.toml")
    assert run(place, *words, "--json", "one.json", "--junit", "one.xml").status == status
    said = run(place, *words, "--on", address, "--json", "on.json", "--junit", "on.xml")
    assert said.status == status, said
    told = essence(place / "on.json")
    assert told == essence(place / "one.json")
    assert {issue["id"] for issue in told["issues"]} == issues
    broken = [rule["id"] for rule in told["rules"] if rule["verdict"] == "FAIL"]
    assert broken == (["turn.completed-once"] if PANIC in issues else [])
    cases = [(place / file).read_text("utf-8").count("<testcase") for file in ("one.xml", "on.xml")]
    assert cases[0] == cases[1]
    rows = json.loads((place / "on.json").read_text("utf-8"))["scenarios"]
    assert all(Path(row["trace"]).is_file() for row in rows if row["verdict"] == "PASS")


def hanging(place: Path, mark: str, *options: str) -> tuple[Running, psutil.Process]:
    """Return a run of three scenarios, and its server that hangs in the second."""
    (place / "mine").mkdir()
    for name in ("a", "b", "c"):
        (place / f"mine/{name}.scenario.yaml").write_text(SAY.format(name=name), "utf-8")
    script = HANGS_ONCE.format(servers=str(SERVERS), folder=str(place))
    (place / "server.py").write_text(script, "utf-8")
    os.mkfifo(place / "fifo")
    (place / "hangs").touch()
    running = fork_pytest(*words_of(place), *options, folder=place, mark=mark)
    return running, psutil.Process(int((place / "fifo").read_text("utf-8")))


def words_of(place: Path) -> list[str]:
    return ["--server-cmd", command(place / "server.py"), "mine", "--no-bundled"]


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {one["id"].rpartition("/")[2]: one["verdict"] for one in report["scenarios"]}


@pytest.fixture
def own(place: Path, mark: str) -> Iterator[DaskCluster]:
    """A cluster of this test, whose processes have the mark until the end of the test."""
    assert mark
    (place / "dask").mkdir()
    with dask_cluster(place / "dask") as cluster:
        yield cluster


def test_unit_of_a_worker_killed_in_mid_play_counts_once(
    own: DaskCluster, place: Path, mark: str
) -> None:
    running, server = hanging(place, mark, "--on", own.address)
    worker = server.parents()[1]
    started = worker.children(recursive=True)
    worker.kill()
    ran = running.end()
    assert (ran.status, verdicts(ran.report)) == (0, dict.fromkeys("abc", "PASS")), ran.text
    assert [one["runs"] for one in ran.report["scenarios"]] == [1, 1, 1]
    assert psutil.wait_procs(started, timeout=30)[1] == []


def test_run_without_its_scheduler_says_so_and_goes_on_with_resume(
    own: DaskCluster, place: Path, mark: str
) -> None:
    running, server = hanging(place, mark, "--on", own.address)
    programs = server.parents()[:1]
    own.scheduler.kill()
    ran = running.end()
    assert (ran.status, ran.report["interrupted"]) == (1, "the scheduler of the cluster went away")
    assert verdicts(ran.report)["a"] == "PASS"
    assert verdicts(ran.report)["b"] == "NOT_EXERCISED"
    assert "the run is not whole: the same command with --resume goes on" in ran.text
    psutil.wait_procs([server, *programs], timeout=30)
    (stored,) = (place / "home").rglob("unfinished/*.jsonl")
    with stored.open("a", encoding="utf-8") as file:
        file.write('\n{"name": "mine/b", "race": fa')  # As of a run that was killed.
    rest = fork_pytest(*words_of(place), "--resume", folder=place, mark=mark).end()
    assert (rest.status, verdicts(rest.report)) == (0, dict.fromkeys("abc", "PASS")), rest.text
    assert "of 3 were played by an earlier part of this run" in rest.text
    begun = [one["began"] for one in rest.report["scenarios"]]
    assert begun[0] == ran.report["scenarios"][0]["began"]
    assert begun[1] > begun[0]
    again = fork_pytest(*words_of(place), "--resume", folder=place, mark=mark).end()
    assert "--resume: nothing is stored of a run with these options" in again.text


def test_interrupted_run_ends_its_programs_and_servers(
    own: DaskCluster, place: Path, mark: str
) -> None:
    running, server = hanging(place, mark, "--on", own.address)
    os.kill(running.pid, signal.SIGINT)
    ran = running.end()
    assert (ran.status, ran.report["interrupted"]) == (130, "SIGINT")
    left = [psutil.Process(worker.pid).children(recursive=True) for worker in own.workers]
    assert (left, server.is_running()) == ([[], []], False)


def test_ctrl_c_of_a_terminal_reaches_the_workers_here_and_disturbs_none(
    place: Path, mark: str
) -> None:
    running, server = hanging(place, mark, "--on", "local:2")
    run = psutil.Process(running.pid)
    started = run.children(recursive=True)
    for process in [run, *run.children()]:
        process.send_signal(signal.SIGINT)
    ran = running.end()
    assert psutil.wait_procs(started, timeout=30)[1] == []
    assert (ran.status, ran.report["interrupted"]) == (130, "SIGINT")
    assert verdicts(ran.report) == {"a": "PASS", "b": "NOT_EXERCISED", "c": "NOT_EXERCISED"}
    assert (server.is_running(), "KeyboardInterrupt" in ran.text) == (False, False)


@pytest.mark.parametrize("option", ["-n2", "--snapshots=kept", "--confine", "--confine-auto"])
def test_option_without_a_meaning_on_a_cluster_is_refused(option: str, tmp_path: Path) -> None:
    said = run(tmp_path, *REFERENCE, "turns/usage", "--on", "local:1", option)
    name = option.partition("=")[0].removesuffix("2")
    assert (said.status, f"--on local:1: leave out {name}:" in said.out + said.err) == (2, True)


def test_targets_and_releases_are_judged_on_a_cluster(address: str, place: Path) -> None:
    (place / "m.toml").write_text(MATRIX)
    options = ("--dir", "kept", "--no-confine", "--on", address, "--json", "-")
    plain = json.loads(harness(place, "matrix", "m.toml", *options).out)
    verdicts = {one["name"]: one["verdict"] for one in plain["targets"]}
    assert verdicts == {"server@minimal": "GREEN", "server@broken/double_completed": "RED"}
    lanes = {
        row["lane"].rpartition("-")[0]
        for report in (place / "kept").rglob("report.json")
        for row in json.loads(report.read_text("utf-8"))["scenarios"]
    }
    assert lanes
    assert all(lane.startswith("127.0.0.1:") for lane in lanes)
    releases = ("--versions", "minimal,broken/double_completed", "--server-cmd")
    server = command(SERVERS / "{version}.py")
    finding = ("--finding", "turn.completed-once@turns/plain-turn")
    found = json.loads(harness(place, "bisect", *finding, *releases, server, *options).out)
    assert (found["last_old"], found["first_new"]) == ("minimal", "broken/double_completed")


@pytest.mark.parametrize("name", ["matrix", "bisect"])
def test_confined_releases_on_a_cluster_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MATRIX)
    words = ("m.toml",) if name == "matrix" else ("--versions", "1,2", "--scenario", "turns/usage")
    said = harness(tmp_path, name, *words, "--on", "local:1")
    assert (said.status, "not confined on a cluster; add --no-confine" in said.err) == (2, True)


def test_machines_that_cannot_be_made_are_a_clear_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert three_machines.main([str(tmp_path)]) == 2
    assert "root and ip are needed" in capsys.readouterr().err
