"""Units on the workers of a Dask cluster: the same results as on one machine, and lost workers."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.cli.commands.mutate import mutate_target
from harness.errors import UsageError
from harness.play.config import Config, configure
from harness.search.cluster import connection, facts
from harness.search.cluster.connection import Cluster, open_cluster
from harness.search.sequences import search as searching
from harness.search.sequences.processes import WORKER, ClusterPlayer
from harness.search.sequences.result import decode_result
from harness.search.sequences.search import search_sequences
from harness.search.sequences.worker import first_message
from harness.search.worker_processes import WorkerLost

from .cluster_processes import dask_cluster

pytestmark = [pytest.mark.slow, pytest.mark.socket]
ROOT = Path(__file__).parents[2]
MINIMAL = f"'{sys.executable}' '{ROOT}/fixtures/servers/minimal.py'"
# A server that says its process id and then waits, but once only, when the file `wait` is there.
WAITS_ONCE = """
import os, pathlib, runpy, sys
wait = pathlib.Path({folder!r}, "wait")
if wait.exists():
    wait.unlink()
    pathlib.Path({folder!r}, "pid").write_text(str(os.getpid()))
    sys.stdin.read()
else:
    runpy.run_path({minimal!r}, run_name="__main__")
"""
LIST = {"method": "thread/loaded/list", "params": {}, "expect": "any"}
UNIT = {"number": 7, "document": {"title": "one request", "client": [{"request": LIST}]}}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with two workers."""
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.address


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    return configure(target="spec", server_cmd=MINIMAL)


def test_sequences_on_a_cluster_cover_the_same(
    address: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[int] = []
    play_jobs = ClusterPlayer.play_jobs

    async def count_plays(player: ClusterPlayer, jobs: Any, on_result: Any) -> None:
        def count(number: int, result: Any) -> None:
            played.append(number)
            on_result(number, result)

        await play_jobs(player, jobs, count)

    monkeypatch.setattr(ClusterPlayer, "play_jobs", count_plays)
    monkeypatch.setattr(searching, "MAX_FURTHER_PROCESSES", 0)
    alone = search_sequences(config, 2, math.inf)
    with open_cluster(address, config) as cluster:
        shared = search_sequences(config, 2, math.inf, cluster=cluster)
    assert [failure.text for failure in shared.failures] == []
    assert (shared.cases, shared.rules) == (alone.cases, alone.rules)
    assert shared.coverage.goals == alone.coverage.goals
    assert shared.problems == []
    assert 0 < len(played) < shared.cases


def test_faults_on_a_cluster_have_the_same_outcomes(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    units: list[tuple[int, str]] = []
    submit = Cluster.submit

    def count_units(cluster: Cluster, slot: int, spec: Any, job: Any, bound: Any) -> Any:
        units.append((slot, next(iter(job))))
        return submit(cluster, slot, spec, job, bound)

    monkeypatch.setattr(Cluster, "submit", count_units)

    def outcomes(**more: Any) -> list[Any]:
        options: dict[str, Any] = {"sample": 2, "json_target": "m.json", "say": said.append, **more}
        fault = "turn-ends-twice,turn-announced-twice,summary-delta-lost"
        mutate_target({"target": "reference"}, fault=fault, workers=1, **options)
        results = json.loads(Path("m.json").read_text())["faults"]
        return [(one["fault"], one["outcome"], len(one["attempts"])) for one in results]

    said: list[str] = []
    alone = outcomes()
    assert {outcome for _, outcome, _ in alone} == {"KILLED"}
    assert units == []
    assert outcomes(on=address) == alone
    assert {slot for slot, _ in units} == {0, 1}
    assert {kind for _, kind in units} == {"clean", "fault"}


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        ("_package_digest", "the harness is 0.1.0"),
        ("_greet", "the server is minimal; expected, as here: another"),
    ],
)
def test_worker_with_another_version_is_named_before_anything_is_played(
    plant: str, message: str, address: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, plant, lambda *_: "another")
    with (
        pytest.raises(UsageError, match=rf"worker tcp://[^ ]+: {message}"),
        open_cluster(address, config),
    ):
        pytest.fail("it was opened")


def test_server_that_is_missing_on_a_worker_is_told(address: str, config: Config) -> None:
    config.profile.command[1:] = ["no-such-file.py"]
    with pytest.raises(UsageError, match="not usable"), open_cluster(address, config):
        pytest.fail("it was opened")


def test_scheduler_that_does_not_answer_is_told(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CONNECT_SECONDS", 0.2)
    for on, message in (
        ("tcp://127.0.0.1:1", "no scheduler answers"),
        ("local:many", "expected local, local:4"),
    ):
        with pytest.raises(UsageError, match=message), open_cluster(on, config):
            pytest.fail("it was opened")


def test_without_the_extra_one_message_says_what_to_install(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install distributed .*extra \[cluster\]"):
        open_cluster("local", config).__enter__()


@pytest.mark.parametrize("allowed_failures", [1, 0])
def test_unit_of_a_killed_worker_is_played_by_another_if_that_is_allowed(
    allowed_failures: int, config: Config, tmp_path: Path
) -> None:
    server = tmp_path / "waits_once.py"
    minimal = f"{ROOT}/fixtures/servers/minimal.py"
    server.write_text(WAITS_ONCE.format(folder=str(tmp_path), minimal=minimal))
    config.profile.command[1:] = [str(server)]
    os.mkfifo(tmp_path / "pid")
    with (
        dask_cluster(tmp_path, 2, allowed_failures) as dask,
        open_cluster(dask.address, config) as cluster,
    ):
        (tmp_path / "wait").touch()
        program = cluster.program(WORKER, first_message(config, "killed", 1))
        unit = cluster.submit(0, program, UNIT)
        waiting_server = psutil.Process(int((tmp_path / "pid").read_text()))
        worker = waiting_server.parents()[1]
        assert worker.pid in [process.pid for process in dask.workers]
        started = worker.children(recursive=True)
        worker.kill()
        if allowed_failures:
            answer = unit.result(timeout=60)
            assert answer["number"] == UNIT["number"]
            assert decode_result(answer["result"]).problems == []
        else:
            with pytest.raises(WorkerLost, match="each worker that played it was killed"):
                unit.result(timeout=60)
    assert waiting_server in started
    assert psutil.wait_procs(started, timeout=30)[1] == []


def test_run_whose_scheduler_is_killed_ends_with_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "MAX_CONNECT_SECONDS", 3.0)
    said: list[str] = []
    submit = Cluster.submit
    with dask_cluster(tmp_path, workers=1) as dask:

        def kill_at_first_fault(
            cluster: Cluster, slot: int, spec: Any, job: Any, bound: Any
        ) -> Any:
            if "fault" in job:
                dask.scheduler.kill()
            return submit(cluster, slot, spec, job, bound)

        monkeypatch.setattr(Cluster, "submit", kill_at_first_fault)
        options: dict[str, Any] = {"fault": "turn-ends-twice", "json_target": "m.json"}
        status = mutate_target({"target": "reference"}, on=dask.address, say=said.append, **options)
    assert status == 1
    assert "the scheduler of the cluster went away" in "\n".join(said)
    assert json.loads(Path("m.json").read_text())["interrupted"]
