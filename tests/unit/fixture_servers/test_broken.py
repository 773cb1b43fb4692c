"""Each broken server is broken in the way that its file says, and in no other.

The controls are the point of half of these tests: a server that fails in a second way would let
a judge be right for the wrong reason.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from .conftest import Start
from .driver import SERVERS, Session
from .fake_model import COMPLETED, FakeModel, message

pytestmark = pytest.mark.socket
PLAIN_TURN = [
    "turn/started",
    "thread/status/changed",
    "item/started",
    "item/completed",
    "item/started",
    "item/agentMessage/delta",
    "item/agentMessage/delta",
    "item/completed",
    "thread/tokenUsage/updated",
    "thread/status/changed",
    "turn/completed",
]


def methods(server: Session) -> list[str]:
    """Return the methods of the notifications of turns, in order."""
    return [m["method"] for m in server.messages if "threadId" in m.get("params", {})]


def play_turn(server: Session, model: FakeModel) -> dict[str, Any]:
    """Start a thread and a turn with two deltas; return the thread."""
    model.will(message("Hel", "lo"), COMPLETED)
    thread = server.start_thread()
    server.start_turn(thread, "hi")
    return thread


def test_every_broken_server_says_what_a_judge_must_say() -> None:
    scripts = [path for path in (SERVERS / "broken").glob("*.py") if path.name != "_base.py"]
    assert len(scripts) == 40
    for script in scripts:
        assert "A judge\nmust say" in script.read_text() or "A judge must say" in script.read_text()


def test_does_not_start_ends_with_its_reason(start: Start) -> None:
    with start("broken/does_not_start.py") as server:
        assert server.drain() == 3
        assert b"libmissing" in server.stderr
        assert server.lines == []


def test_noise_first_behaves_after_its_noise(start: Start, model: FakeModel) -> None:
    with start("broken/noise_first.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert [line[:7] for line in server.lines[:4]] == [b"Loading", b"[2026-0", b"", b'"just a']
        assert len(server.messages) == len(server.lines) - 4
        assert methods(server) == PLAIN_TURN


def test_never_answers_reads_all_and_writes_nothing(start: Start) -> None:
    with start("broken/never_answers.py") as server:
        server.send("initialize")
        server.write(b"x" * (1 << 20) + b"\n")  # more than a pipe holds, so it is being read
        assert server.process.poll() is None
        assert server.end() == 0
        assert (server.lines, server.tail) == ([], b"")


def test_answers_initialize_only(start: Start) -> None:
    with start("broken/answers_initialize_only.py") as server:
        assert "result" in server.request("initialize")
        server.send("thread/start")
        assert "result" in server.request("initialize")  # by now thread/start has been read
        assert len(server.lines) == 2


def test_floods_with_legal_deltas_until_interrupted(start: Start) -> None:
    with start("broken/floods.py") as server:
        thread = server.start_thread()
        turn = server.answer(server.start_turn(thread, "hi"))["result"]["turn"]
        assert server.until(lambda: len(server.lines) > 2000)
        assert "result" in server.request("thread/read", threadId=thread["id"])
        server.request("turn/interrupt", threadId=thread["id"], turnId=turn["id"])
        assert server.wait("turn/completed")["turn"]["status"] == "interrupted"
        told = [method for method in methods(server) if method != "item/agentMessage/delta"]
        assert told == [*PLAIN_TURN[:5], PLAIN_TURN[7], *PLAIN_TURN[9:]]
        assert methods(server)[-4] == "item/agentMessage/delta"


def test_half_line_stays_alive_and_silent(start: Start, model: FakeModel) -> None:
    with start("broken/half_line.py") as server:
        play_turn(server, model)
        assert server.until(lambda: server.tail)
        server.send("initialize")
        assert server.process.poll() is None
        assert server.end() == 0
        assert server.tail.startswith(b'{"id": 2, "result"')
        assert methods(server) == []


def test_dies_mid_turn_with_a_traceback(start: Start, model: FakeModel) -> None:
    with start("broken/dies_mid_turn.py") as server:
        play_turn(server, model)
        assert server.drain() == 1
        assert methods(server) == PLAIN_TURN[:6]
        assert b"Traceback" in server.stderr


def test_ignores_sigterm_and_end_of_input(start: Start, model: FakeModel) -> None:
    gate = threading.Event()
    with start("broken/ignores_sigterm.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        model.will(message("Hel"), gate, message("lo", item_id="msg_2"), COMPLETED)
        server.start_turn(server.named("thread/started")[0]["thread"], "more")
        server.wait("item/agentMessage/delta", 3)
        os.kill(server.process.pid, signal.SIGTERM)
        assert server.process.stdin
        server.process.stdin.close()
        gate.set()
        server.wait("turn/completed", 2)  # it still works, after both
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.1)


def test_invalid_utf8_is_one_line_within_a_good_turn(start: Start, model: FakeModel) -> None:
    with start("broken/invalid_utf8.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        bad = [index for index, line in enumerate(server.lines) if b"\xff" in line]
        assert len(bad) == 2
        for index in bad:
            with pytest.raises(UnicodeDecodeError):
                server.lines[index].decode()
        assert methods(server) == PLAIN_TURN


def test_huge_line_has_100_megabytes_within_a_good_turn(start: Start, model: FakeModel) -> None:
    with start("broken/huge_line.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        (huge,) = [line for line in server.lines if len(line) > 1 << 20]
        assert len(huge) + 1 == 100_000_000
        assert huge.startswith(b'{"method": "core/dumped"')
        assert huge.endswith(b'x"}}')
        assert methods(server) == PLAIN_TURN


def test_no_model_call_completes_all_the_same(start: Start, model: FakeModel) -> None:
    with start("broken/no_model_call.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == [m for m in PLAIN_TURN if m != "item/agentMessage/delta"]
    assert model.calls == []


def test_leaked_child_outlives_its_turn_but_not_the_server(start: Start, model: FakeModel) -> None:
    with start("broken/leaks_child.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        assert server.until(lambda: server.stderr.endswith(b"\n"))
        child = int(server.stderr.split()[1])
        assert os.getpgid(child) != os.getpgid(server.process.pid)
        os.kill(server.process.pid, signal.SIGKILL)
        assert server.until(lambda: server.closed)  # the child holds stdout open while it lives


def test_never_completes_sends_all_but_the_last_message(start: Start, model: FakeModel) -> None:
    with start("broken/never_completes.py") as server:
        thread = play_turn(server, model)
        server.wait("thread/status/changed", 2)
        server.request("thread/read", threadId=thread["id"])
        assert methods(server) == PLAIN_TURN[:-1]


def test_wrong_id_is_the_only_fault_of_the_answer(start: Start, model: FakeModel) -> None:
    with start("broken/wrong_id.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        answers = [sent for sent in server.messages if "method" not in sent]
        assert [sent["id"] for sent in answers] == [1, 1_000_002]
        assert answers[1]["result"]["turn"]["status"] == "inProgress"
        assert methods(server) == PLAIN_TURN


def test_double_completed_repeats_one_line(start: Start, model: FakeModel) -> None:
    with start("broken/double_completed.py") as server:
        play_turn(server, model)
        server.wait("turn/completed", 2)
        assert methods(server) == [*PLAIN_TURN, "turn/completed"]
        assert server.lines[-1] == server.lines[-2]


def test_chatty_stderr_is_otherwise_correct(start: Start, model: FakeModel) -> None:
    with start("broken/chatty_stderr.py") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        assert server.end() == 0
        assert len(server.stderr) == 8 << 20


def test_wrong_at_one_position_is_right_before_and_after_it(start: Start, model: FakeModel) -> None:
    with start("broken/wrong_at_one_position.py lost-end") as server:
        play_turn(server, model)
        server.wait("turn/completed")
        assert methods(server) == PLAIN_TURN
        assert server.end() == 0


def test_no_broken_server_speaks_of_the_harness() -> None:
    sources = [path.read_text() for path in Path(SERVERS).rglob("*.py")]
    assert len(sources) > 25
    for source in sources:
        imported = [line for line in source.splitlines() if line.startswith(("import", "from"))]
        assert not [line for line in imported if "harness" in line or "reference_server" in line]
