"""Turns that may still run, since their end was not reported to any client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.play.session.unfinished_turns import may_still_run
from harness.trace.frame import Direction
from harness.trace.marks import ServerEnded
from harness.trace.recorder import Recorder

START, COMPACT = "turn/start", "thread/compact/start"
RUNNING = {"turn": {"id": "u", "status": "inProgress"}}


def ask(recorder: Recorder, method: str, **answer: Any) -> None:
    """A client's request about thread t and the server's answer."""
    asked = {"id": len(recorder.trace.frames), "method": method, "params": {"threadId": "t"}}
    recorder.record(json.dumps(asked).encode(), Direction.TO_TARGET)
    told = json.dumps({"id": asked["id"], **answer})
    recorder.record(told.encode(), Direction.FROM_TARGET)


def end(recorder: Recorder, turn: str = "u", connection: str = "c1") -> None:
    params = {"threadId": "t", "turn": {"id": turn, "status": "completed"}}
    told = json.dumps({"method": "turn/completed", "params": params})
    recorder.record(told.encode(), Direction.FROM_TARGET, connection=connection)


@pytest.mark.parametrize("method", [START, "review/start"])
def test_turn_that_was_granted_runs_until_its_end_is_told_to_anybody(method: str) -> None:
    recorder = Recorder()
    ask(recorder, method, result=RUNNING)
    assert may_still_run(recorder.trace)
    end(recorder, "another")
    assert may_still_run(recorder.trace)
    end(recorder, connection="c2")
    assert not may_still_run(recorder.trace)


def test_end_that_is_told_before_the_answer_is_an_end() -> None:
    recorder = Recorder()
    end(recorder)
    ask(recorder, START, result=RUNNING)
    assert not may_still_run(recorder.trace)


def test_compaction_runs_until_a_turn_of_its_thread_ends() -> None:
    recorder = Recorder()
    end(recorder, "earlier")
    ask(recorder, COMPACT, result={})
    assert may_still_run(recorder.trace)
    end(recorder, "of-the-compaction")
    assert not may_still_run(recorder.trace)


@pytest.mark.parametrize("method", [START, COMPACT])
def test_a_refused_turn_does_not_run(method: str) -> None:
    recorder = Recorder()
    ask(recorder, method, error={"code": -32600, "message": "no"})
    assert not may_still_run(recorder.trace)


def test_turn_of_a_process_that_was_ended_does_not_run_in_the_next() -> None:
    recorder = Recorder()
    ask(recorder, START, result=RUNNING)
    recorder.mark(ServerEnded(killed=True))
    assert not may_still_run(recorder.trace)
    ask(recorder, START, result={"turn": {"id": "v", "status": "inProgress"}})
    assert may_still_run(recorder.trace)
