"""Invalid model answers: web pages, huge ones, incomplete ones, missing bodies."""

import json

import anyio
import pytest
from model_side import CREATED, CUT, ModelSide, Reply, completed, delta, http_error, message, opened
from session_peer import Peer, config, session

from reference_server.model import client, sse
from reference_server.model.errors import DETAILS_LIMIT


async def failure(tmp_path, reply: Reply) -> dict[str, str]:
    async with session(tmp_path, [reply]) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["status"] == "failed"
    return end["error"]


async def test_a_page_in_the_place_of_a_stream_is_shown(tmp_path) -> None:
    page = Reply([b"<html>Please ", b"log in</html>"], headers={"content-type": "text/html"})
    error = await failure(tmp_path, page)
    assert error["agentErrorInfo"] == "ResponseStreamDisconnected"
    assert "no stream of events: text/html" in error["additionalDetails"]
    assert "<html>Please log in</html>" in error["additionalDetails"]


async def test_events_are_read_whatever_type_they_are_said_to_have(tmp_path) -> None:
    reply = Reply(
        [CREATED, *message("a"), completed()], headers={"content-type": "application/json"}
    )
    async with session(tmp_path, [reply]) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"


async def test_an_empty_stream_of_events_was_cut(tmp_path) -> None:
    error = await failure(tmp_path, Reply(headers={"content-type": "text/event-stream"}))
    assert "ended before response.completed" in error["additionalDetails"]


async def test_a_redirect_says_what_to_set(tmp_path) -> None:
    error = await failure(tmp_path, http_error(307, location="https://other.invalid/v1"))
    assert (error["agentErrorInfo"], "base_url" in error["additionalDetails"]) == ("Other", True)
    assert "https://other.invalid/v1" in error["additionalDetails"]


async def test_an_event_without_an_end_is_given_up(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sse, "EVENT_LIMIT", 1000)
    endless = Reply([CREATED, b"data: ", *[b"x" * 100] * 11, anyio.Event()])
    error = await failure(tmp_path, endless)
    assert "longer than 1000 bytes" in error["additionalDetails"]


async def test_an_event_in_many_lines_without_an_end_is_given_up(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sse, "EVENT_LIMIT", 1000)
    endless = Reply([CREATED, *[b"data: " + b"x" * 100 + b"\n"] * 11, anyio.Event()])
    error = await failure(tmp_path, endless)
    assert "longer than 1000 bytes" in error["additionalDetails"]


async def test_of_a_heap_only_the_beginning_is_read(tmp_path) -> None:
    never = anyio.Event()
    heap = Reply([b"first words " + b"x" * (1 << 16), never], 400)
    error = await failure(tmp_path, heap)
    assert error["agentErrorInfo"] == "BadRequest"
    assert error["additionalDetails"].startswith("first words xxx")
    assert len(error["additionalDetails"]) == DETAILS_LIMIT


@pytest.mark.parametrize("rest", [CUT, None], ids=["cut", "stalled"])
async def test_a_status_counts_though_its_body_does_not_come(
    tmp_path, monkeypatch, rest: object
) -> None:
    monkeypatch.setattr(client, "ERROR_BODY_TIME", 0.01)
    tail = CUT if rest is CUT else anyio.Event()
    error = await failure(tmp_path, Reply([b"half a rea", tail], 503))
    assert error["agentErrorInfo"] == "InternalServerError"
    assert error["additionalDetails"] == "half a rea"


@pytest.mark.parametrize(
    ("body", "details"),
    [
        (b"", "HTTP status 400 without a text"),
        (b"<h1>No</h1>", "<h1>No</h1>"),
        (b"[1]", "[1]"),
        (b'{"detail": "odd"}', '{"detail": "odd"}'),
        (b'{"error": "odd"}', '{"error": "odd"}'),
        (b'{"error": {"message": "odd", "code": null}}', "odd"),
        (b'{"error": {"code": 7}}', "7"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
    ids=str,
)
async def test_a_body_of_any_form_is_told(tmp_path, body: bytes, details: str) -> None:
    error = await failure(tmp_path, Reply([body], 400))
    assert error["agentErrorInfo"] == "BadRequest"
    assert error["additionalDetails"] == details


def texts(peer: Peer, call: int) -> list[str]:
    return [part["text"] for item in peer.side.bodies[call]["input"] for part in item["content"]]


async def test_nothing_of_a_failed_answer_is_told_the_model_later(tmp_path) -> None:
    half = Reply([CREATED, *message("whole but lost"), opened(1), delta("half", 1), CUT])
    fine = Reply([CREATED, *message("fine"), completed()])
    async with session(tmp_path, [half, fine]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        await peer.run_turn(thread, "second")
    assert texts(peer, 1) == ["first", "second"]


async def test_a_server_that_starts_again_tells_the_model_no_more(tmp_path) -> None:
    half = Reply([CREATED, opened(), delta("half"), CUT])
    async with session(tmp_path, [half]) as peer:
        thread = await peer.start_thread()
        end = await peer.run_turn(thread, "first")
    async with session(tmp_path) as peer:
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    [turn] = read["result"]["thread"]["turns"]
    assert (turn["status"], turn["error"]) == ("failed", end["error"])
    assert read["result"]["thread"]["status"] == {"type": "notLoaded"}
    records = "".join(path.read_text() for path in tmp_path.glob("sessions/**/*.jsonl"))
    histories = [json.loads(line) for line in records.splitlines() if '"history"' in line]
    assert histories
    assert "half" not in json.dumps(histories)


async def test_a_pause_that_was_asked_for_is_told_in_time_and_kept(tmp_path) -> None:
    """The error comes before the pause, so that a client can say that it waits."""
    settings = config(request_max_retries=1)
    side: ModelSide
    async with session(
        tmp_path, [http_error(429, "rate_limit_exceeded", retry_after="200")], settings=settings
    ) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        error = await peer.event("error")
        side = peer.side
        assert (error["willRetry"], len(side.bodies)) == (True, 1)
        read = await peer.request("thread/read", {"threadId": thread})
        assert read["result"]["thread"]["status"]["type"] == "active"
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        await peer.turn_end(turn)
    assert len(side.bodies) == 1


async def test_a_pause_too_long_for_a_turn_ends_it(tmp_path) -> None:
    settings = config(request_max_retries=3)
    reply = http_error(503, retry_after="3600")
    async with session(tmp_path, [reply], settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert [error["willRetry"] for error in peer.params_of("error")] == [False]
    assert end["error"]["agentErrorInfo"] == "InternalServerError"


async def test_the_status_moves_back_with_the_next_turn(tmp_path) -> None:
    fine = Reply([CREATED, *message("fine"), completed()])
    async with session(tmp_path, [http_error(400), http_error(400), fine]) as peer:
        thread = await peer.start_thread()
        shown: list[str] = []
        for _ in range(3):
            await peer.run_turn(thread)
            read = await peer.request("thread/read", {"threadId": thread})
            shown.append(read["result"]["thread"]["status"]["type"])
    assert shown == ["systemError", "systemError", "idle"]
    told = [params["status"]["type"] for params in peer.params_of("thread/status/changed")]
    assert told == ["active", "systemError", "active", "systemError", "active", "idle"]
