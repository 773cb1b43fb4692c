"""`harness watch`: a run is followed from any moment, and its end, killed or not, is shown."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from event_client import events, serve

from harness.cli.commands.watch import Watch
from harness.judge.verdict import Verdict
from harness.report.history import FILE, add_run
from harness.report.progress.events import Event, Found, PlayEnded, RunEnded, RunStarted
from harness.report.progress.log import ProgressLog, progress_path
from harness.report.results.report import Report, ScenarioResult

pytestmark = [pytest.mark.slow, pytest.mark.socket]
HOSTILE = "</script><script>alert(1)</script>\u202e"
STARTED = RunStarted(run="r1", target=HOSTILE, pid=os.getpid(), total=2)
TRACE = Path(__file__).parents[3] / "fixtures/traces/good/commands.jsonl"


def _write(base: Path, run: str, *written: Event) -> None:
    log = ProgressLog(progress_path(base, run))
    for event in written:
        log.write(event)
    log.close()


async def _next(stream: Any, count: int) -> list[tuple[str, Any, str]]:
    return [await anext(stream) for _ in range(count)]


async def test_a_run_is_followed_from_before_it_begins_to_after_it_ends(tmp_path: Path) -> None:
    async with (
        serve(Watch(tmp_path, []).routes) as client,
        events(client, "/events") as stream,
    ):
        _write(tmp_path, "r1", STARTED)
        (name, data, id_), (second, first_row, _) = await _next(stream, 2)
        assert (name, data, id_, second) == ("begin", {"run": "r1"}, "r1:0", "progress")
        assert (first_row["event"], first_row["total"]) == ("run-started", 2)
        played = PlayEnded(scenario="a", lane="main", verdict="PASS")
        _write(tmp_path, "r1", played, RunEnded(verdict="GREEN"))
        rows = await _next(stream, 2)
        assert [row["event"] for _, row, _ in rows] == ["play-ended", "run-ended"]
        _write(tmp_path, "r2", RunStarted(run="r2", pid=os.getpid()))
        assert (await anext(stream))[:2] == ("begin", {"run": "r2"})


async def test_a_client_that_reconnects_gets_what_it_missed(tmp_path: Path) -> None:
    plays = [PlayEnded(scenario=f"s{n}", lane="main", verdict="PASS") for n in range(4)]
    _write(tmp_path, "r1", STARTED, *plays[:2])
    async with serve(Watch(tmp_path, []).routes) as client:
        async with events(client, "/events") as stream:
            before = await _next(stream, 4)
        _write(tmp_path, "r1", *plays[2:])
        async with events(client, "/events", before[2][2]) as stream:
            after = await _next(stream, 3)
        async with events(client, "/events", "r0:17") as stream:
            other = await _next(stream, 2)
    assert [row["scenario"] for _, row, _ in after] == ["s1", "s2", "s3"]
    assert [name for name, *_ in other] == ["begin", "progress"]


async def test_a_run_that_was_killed_is_shown_so(tmp_path: Path) -> None:
    gone = await anyio.run_process([sys.executable, "-c", "import os; print(os.getpid())"])
    _write(tmp_path, "r1", RunStarted(run="r1", pid=int(gone.stdout)))
    async with serve(Watch(tmp_path, []).routes) as client:
        async with events(client, "/events?run=r1") as stream:
            assert [name for name, *_ in await _next(stream, 3)] == ["begin", "progress", "gone"]
        assert "killed" in (await client.get("/")).text


async def test_pages_escape_what_a_server_says(tmp_path: Path) -> None:
    scenario = ScenarioResult(HOSTILE, "", HOSTILE, Verdict.FAIL, HOSTILE, 1.0, "QUIESCENT")
    report = Report(HOSTILE, HOSTILE, scenarios=[scenario], release=HOSTILE)
    add_run(tmp_path / FILE, "r1", report)
    _write(tmp_path, "r1", STARTED, RunEnded(verdict=HOSTILE))
    async with serve(Watch(tmp_path, [HOSTILE]).routes) as client:
        for path in ("/", "/history", f"/?run={HOSTILE}"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "<script>alert" not in answer.text
            assert "\u202e" not in answer.text
            assert "connect-src &#39;self&#39;" in answer.text


async def test_a_history_that_is_broken_is_said_on_its_page(tmp_path: Path) -> None:
    async with serve(Watch(tmp_path, []).routes) as client:
        assert "No run was recorded yet" in (await client.get("/history")).text
        (tmp_path / FILE).write_text("not a database " * 100)
        assert "not a database; delete it" in (await client.get("/history")).text


async def test_only_conversations_that_a_run_names_are_read(tmp_path: Path) -> None:
    named = Found(rule="r", level="MUST", text="", scenario="a", trace=str(TRACE))
    lost = Found(rule="r", level="MUST", text="", scenario="b", trace=str(tmp_path / "gone.jsonl"))
    _write(tmp_path, "r1", STARTED, named, lost)

    async with serve(Watch(tmp_path, []).routes) as client:
        answer = await client.get("/conversation", params={"run": "r1", "scenario": "a"})
        assert answer.json()["rows"]
        for path in (
            "/conversation?run=r1&scenario=b",
            f"/conversation?run=r1&scenario={TRACE}",
            "/conversation?run=../r1&scenario=a",
            "/report?run=../../etc",
            "/report?file=9",
            "/recording?file=-1",
            "/events?recording=9",
        ):
            assert (await client.get(path)).status_code == 404


async def test_a_recording_is_drawn_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    lines = TRACE.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    async with serve(Watch(tmp_path, [path]).routes) as client:
        assert (await client.get("/recording?file=0")).status_code == 200
        async with events(client, "/events?recording=0") as stream:
            name, first, _ = await anext(stream)
            assert (name, first["from"]) == ("diagram", 0)
            path.write_bytes(b"".join(lines))
            name, change, _ = await anext(stream)
            assert change["from"] + len(change["rows"]) > len(first["rows"])
