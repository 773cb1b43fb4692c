"""A conversation that is a block: stepped through by its caller, ended whatever the caller does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.client.inbox import TargetGone
from harness.client.target.profile import load_profile
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.model.script import ModelStep
from harness.play.bench import Bench, open_bench
from harness.play.session.conversation import Needs
from harness.protocol.spec.loading import load_book
from harness.protocol.values import dig
from harness.report.progress.log import ProgressLog
from harness.scenario.loader import load_text
from harness.trace.frame import Frame
from harness.trace.marks import Setup
from harness.trace.trace import End

pytestmark = [pytest.mark.anyio, pytest.mark.socket, pytest.mark.slow]

MINIMAL = Path(__file__).parents[3] / "fixtures" / "servers" / "minimal.py"
BOOK = load_book()
BOUND = 30
REPLY = {"t": [ModelStep.model_validate({"reply": [{"message": "hello"}]})]}
SCENARIO = """
title: a scenario
model: [{reply: [{message: {deltas: [a, {hold: g}, b]}}]}]
setup:
  - start_thread: {as: t}
client:
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {gate: g}
  - open: g
  - wait: {turn: u, status: completed}
"""


@asynccontextmanager
async def benched(
    folder: Path, *, step: float = 5.0, server: Path = MINIMAL
) -> AsyncGenerator[Bench]:
    """A bench with the minimal server; `step` is the bound of a step in seconds."""
    profile = load_profile("spec")
    bounds = profile.bounds.model_copy(update={"step": step})
    command = [sys.executable, str(server)]
    profile = profile.model_copy(update={"command": command, "bounds": bounds})
    with anyio.fail_after(BOUND):
        async with open_bench(profile, BOOK, base=folder) as bench:
            yield bench


def told(frames: list[Frame], method: str) -> list[Frame]:
    return [frame for frame in frames if frame.method == method]


def broken_rules(trace: Any) -> set[str]:
    rows = judge(BOOK, trace, all_rules().values())
    return {row.rule for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)}


async def test_between_two_steps_the_caller_sees_what_came(tmp_path: Path) -> None:
    loaded = load_text(SCENARIO)
    seen: list[tuple[str, int, int]] = []
    async with benched(tmp_path) as bench:
        async with bench.conversation_of(loaded) as stage, bench.player(loaded, stage) as player:
            while player.next_step is not None:
                name = next(iter(type(player.next_step).model_fields))
                assert await player.step() is None
                deltas = told(stage.frames, "item/agentMessage/delta")
                seen.append((name, len(deltas), len(told(stage.frames, "turn/completed"))))
        run = stage.run
    # Before the gate is open the model has not said "b", and after it nothing is certain yet.
    assert [one[0] for one in seen] == ["start_thread", "start_turn", "wait", "open", "wait"]
    assert [one[2] for one in seen] == [0, 0, 0, 0, 1]
    assert max(one[1] for one in seen[:3]) <= 1
    assert seen[-1] == ("wait", 2, 1)
    assert run.unmet is None
    assert run.ending.end is End.QUIESCENT
    assert broken_rules(run.trace) == set()
    marks = [mark.body.active for mark in run.trace.marks_of(Setup)]
    assert marks == [True, False, True, False]  # the start of the process, the scenario's own


async def test_who_speaks_himself_gets_a_trace_that_is_judged(tmp_path: Path) -> None:
    async with benched(tmp_path) as bench:
        async with bench.conversation("mine", REPLY) as stage:
            answer = await stage.request("thread/start", {"cwd": str(stage.cwd)})
            thread = stage.cast.threads["t"] = dig(answer.result, "thread", "id")
            given = [{"type": "text", "text": "hello"}]
            asked = await stage.send("turn/start", {"threadId": thread, "input": given})
            ended = await stage.wait(lambda frame: frame.method == "turn/completed")
            assert dig((await stage.answer_to(asked)).result, "turn", "id") == dig(
                ended.params, "turn", "id"
            )
            with pytest.raises(RuntimeError, match="not over"):
                _ = stage.run
        run = stage.run
    assert (run.unmet, run.ending.end, len(run.model.calls)) == (None, End.QUIESCENT, 1)
    assert broken_rules(run.trace) == set()
    assert run.trace.header.scenario == "mine"


async def test_trace_has_what_the_server_wrote_to_its_standard_error(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        f"import sys\nsys.path.insert(0, {str(MINIMAL.parent)!r})\nimport minimal\n"
        "class Writes(minimal.Server):\n"
        "    def finish(self, thread, status, error=None):\n"
        "        print(len(thread.turns), 'ended', file=sys.stderr, flush=True)\n"
        "        super().finish(thread, status, error)\n"
        "Writes().serve()\n"
    )
    async with benched(tmp_path, server=server) as bench:
        for _ in range(2):
            loaded = load_text(SCENARIO)
            async with bench.conversation_of(loaded) as stage, bench.player(loaded, stage) as play:
                while play.next_step is not None:
                    assert await play.step() is None
            [line] = stage.run.trace.stderr
            [ended] = told(stage.run.trace.frames, "turn/completed")
            assert line.text == "1 ended"
            [asked] = told(stage.run.trace.frames, "turn/start")
            assert asked.seq <= line.after
            assert asked.at <= line.at <= ended.at


async def test_progress_hears_what_each_step_waits_for_and_how_long(tmp_path: Path) -> None:
    waits: list[tuple[str, str, float]] = []

    class Waits(ProgressLog):
        def begin_wait(self, lane: str, waits_for: str, bound: float) -> None:
            waits.append((lane, waits_for, bound))

    async with benched(tmp_path) as bench:
        bench.report_steps(Waits(), "main-2")
        loaded = load_text(SCENARIO)
        async with bench.conversation_of(loaded) as stage, bench.player(loaded, stage) as player:
            while player.next_step is not None:
                await player.step()
    assert list(dict.fromkeys(waits)) == [
        ("main-2", words, 5.0)
        for words in ("an answer", "the model's stream at gate g", "the end of turn u")
    ]


async def test_a_missing_message_ends_the_block_and_is_its_reason(tmp_path: Path) -> None:
    async with benched(tmp_path, step=0.2) as bench:
        async with bench.conversation("mine", {}) as stage:
            await stage.wait(lambda frame: frame.method == "turn/completed", "the end of a turn")
            pytest.fail("it came")
        unmet = stage.run.unmet
        assert unmet is not None
        assert unmet.kind == "timeout"
        assert unmet.message == "waited 0.2 s for the end of a turn; it did not come"
        assert stage.run.ending.end is End.QUIESCENT
        assert bench.servers.current is None


async def test_server_that_leaves_ends_the_block_and_the_trace(tmp_path: Path) -> None:
    async with benched(tmp_path) as bench:
        async with bench.conversation("mine", {}) as stage:
            assert bench.servers.current is not None
            os.kill(bench.servers.current.process.pid, signal.SIGKILL)
            await stage.wait(lambda frame: frame.method == "turn/completed")
        assert stage.run.unmet is not None
        assert stage.run.unmet.kind == "crash"
        assert stage.run.has_died
        async with bench.conversation("another", {}) as stage:
            await stage.request("thread/start", {"cwd": str(stage.cwd)})
        assert stage.run.unmet is None


async def test_any_other_exception_goes_on_as_it_is_and_costs_the_process(tmp_path: Path) -> None:
    async with benched(tmp_path) as bench:
        with pytest.raises(ZeroDivisionError):
            async with bench.conversation("mine", {}, needs=Needs(pipes=["p"])):
                _ = 1 / 0
        assert bench.servers.current is None
        run = await bench.run(load_text(SCENARIO))
        assert run.unmet is None


async def test_steps_are_played_within_the_block_and_no_further_than_the_last(
    tmp_path: Path,
) -> None:
    loaded = load_text(SCENARIO)
    async with benched(tmp_path) as bench, bench.conversation_of(loaded) as stage:
        player = bench.player(loaded, stage)
        with pytest.raises(RuntimeError, match="async with player"):
            await player.step()
        assert await player.play() is None
        assert player.next_step is None
        async with player:
            with pytest.raises(RuntimeError, match="no step is left"):
                await player.step()


async def test_exception_between_steps_reaches_the_conversation_as_it_is(tmp_path: Path) -> None:
    loaded = load_text(SCENARIO)
    async with benched(tmp_path) as bench:
        async with bench.conversation_of(loaded) as stage, bench.player(loaded, stage) as player:
            await player.step()
            raise TargetGone("the caller has seen enough")
        assert stage.run.unmet is not None
        assert stage.run.unmet.message == "the caller has seen enough"
        # What was begun as set-up is over all the same once its last step was played.
        assert [mark.body.active for mark in stage.run.trace.marks_of(Setup)][-1] is False
