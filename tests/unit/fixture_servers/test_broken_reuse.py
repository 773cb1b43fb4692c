"""Servers that are correct at first and not later, or not always: broken only as they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Start
from .fake_model import FakeModel
from .test_broken import PLAIN_TURN, methods, play_turn

pytestmark = pytest.mark.socket


def test_leaks_state_serves_its_first_thread_correctly(start: Start, model: FakeModel) -> None:
    with start("broken/leaks_state.py") as server:
        play_turn(server, model)
        first = server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        play_turn(server, model)
        server.wait("turn/completed", 2)
        items = [params["item"]["id"] for params in server.named("item/completed")]
        assert items[3:5] == items[:2]
        assert len(set(items)) == 4
        again = server.named("item/completed")[3]
        assert again["threadId"] != first["threadId"]
        extra = ["item/completed"] * 2
        assert methods(server) == [*PLAIN_TURN, *PLAIN_TURN[:4], *extra, *PLAIN_TURN[4:]]


def test_unsteady_repeats_the_end_of_one_turn_only(
    start: Start, model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for ends in (1, 2, 1):
        with start("broken/unsteady.py") as server:
            play_turn(server, model)
            server.wait("turn/completed", ends)
            assert server.end() == 0
            assert methods(server) == [*PLAIN_TURN, *["turn/completed"] * (ends - 1)]


def test_stuck_after_failure_ends_no_turn_after_one_that_failed(
    start: Start, model: FakeModel
) -> None:
    with start("broken/stuck_after_failure.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        model.will(500)
        server.start_turn(server.start_thread(), "hi")
        assert server.wait("turn/completed", 2)["turn"]["status"] == "failed"
        play_turn(server, model)
        server.wait("item/completed", 5)
        assert len(server.named("turn/completed")) == 2


@pytest.mark.parametrize("script", ["leaks_descriptors", "leaves_files", "panics", "says_goodbye"])
def test_servers_that_are_careless_beside_the_protocol_keep_to_it(
    script: str, start: Start, model: FakeModel
) -> None:
    with start(f"broken/{script}.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        assert server.end() == 0
        assert (b"RuntimeError: the cache" in server.stderr) == (script == "panics")
        assert (server.lines[-1] == b"Goodbye!") == (script == "says_goodbye")
