"""Servers that omit messages, each only those that its docstring says."""

from __future__ import annotations

import shlex
import sys
import threading

import pytest

from .conftest import Start
from .driver import SERVERS
from .fake_model import BOUND, COMPLETED, FakeModel, message
from .test_broken import PLAIN_TURN, methods, play_turn

pytestmark = pytest.mark.socket


class Sent(threading.Event):
    """A part of a model's reply that is reached when all before it was sent."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True

    def came(self) -> bool:
        return super().wait(BOUND)


def test_wrong_ids_answers_with_ids_of_nobody(start: Start) -> None:
    with start("broken/wrong_ids.py") as server:
        assert "result" in server.request("initialize")
        server.send("thread/start")
        server.wait("thread/started")
        assert [sent["id"] for sent in server.messages if "method" not in sent][1:] == [1_000_002]


def test_hangs_after_model_reads_the_whole_response(start: Start, model: FakeModel) -> None:
    with start("broken/hangs_after_model.py") as server:
        sent = Sent()
        model.will(message("Hello"), COMPLETED, sent)
        server.start_turn(server.start_thread(), "hi")
        assert sent.came()
        assert "result" in server.request("initialize")
        assert methods(server) == PLAIN_TURN[:4]


def test_every_second_request_is_not_answered(start: Start) -> None:
    with start("broken/every_second.py") as server:
        assert "result" in server.request("initialize")
        server.send("initialize")
        assert "result" in server.request("initialize")
        assert [sent["id"] for sent in server.messages] == [1, 3]


def test_other_thread_names_one_in_the_end_of_turns_alone(start: Start, model: FakeModel) -> None:
    with start("broken/other_thread.py") as server:
        thread = play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        named = {
            sent["params"]["threadId"]
            for sent in server.messages
            if "turn" in sent.get("params", {})
        }
        assert named == {thread["id"], "thr_0"}


def test_never_interrupted_goes_on_in_silence(start: Start, model: FakeModel) -> None:
    with start("broken/never_interrupted.py") as server:
        thread = play_turn(server, model)
        server.send("turn/interrupt", threadId=thread["id"], turnId="turn_1")
        server.wait("turn/completed")
        assert "result" in server.request("initialize")
        assert methods(server) == PLAIN_TURN


def test_swallows_takes_one_method_and_hands_on_the_rest(start: Start, model: FakeModel) -> None:
    line = shlex.join(["turn/interrupt", sys.executable, str(SERVERS / "minimal.py")])
    with start(f"broken/swallows.py {line}") as server:
        thread = play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        server.send("turn/interrupt", threadId=thread["id"], turnId="turn_1")
        assert "result" in server.request("initialize")
        ids = [sent["id"] for sent in server.messages if "method" not in sent]
        assert ids == [1, 2, 4]
