"""The events of a turn of `agent exec`, their order, and its ends (mcp-cli-and-sdk "Events")."""

import json

import anyio
import pytest
from model_side import CUT, PIXEL, ModelSide, Reply
from turns import Fields, model, play

from reference_server.agent_exec.ending import Interruption, NotBegun
from reference_server.agent_exec.follower import Follower
from reference_server.transport.base import PeerGone

pytestmark = pytest.mark.anyio

DONE = "[{message: done}]"


async def test_the_order_is_thread_turn_items_end(tmp_path) -> None:
    played = await play(tmp_path, "[{run: 'true'}]", DONE)
    assert played.types == [
        "thread.started",
        "turn.started",
        "item.started",
        "item.completed",
        "item.completed",
        "turn.completed",
    ]
    assert (played.status, played.finished) == (0, True)


async def test_usage_is_the_sum_of_this_turns_calls(tmp_path) -> None:
    first = await play(
        tmp_path,
        "[{run: 'true'}, {usage: {input: 100, cached: 60, output: 7}}]",
        "[{message: m}, {usage: {input: 20, cached: 1, output: 3}}]",
    )
    usage = {"input_tokens": 120, "cached_input_tokens": 61, "output_tokens": 10}
    assert first.events[-1] == {"type": "turn.completed", "usage": usage}
    thread = first.events[0]["thread_id"]
    # Not that of the whole thread.
    second = await play(tmp_path, "[{message: m}, {usage: {input: 9, output: 1}}]", resume=thread)
    usage = {"input_tokens": 9, "cached_input_tokens": 0, "output_tokens": 1}
    assert second.events[-1] == {"type": "turn.completed", "usage": usage}


async def test_usage_is_there_where_the_model_reports_none(tmp_path) -> None:
    call = {"type": "response.completed", "response": {"id": "r", "output": []}}
    side = ModelSide([Reply([f"data: {json.dumps(call)}\n\n".encode()])])
    played = await play(tmp_path, transport=side.transport)
    assert set(played.events[-1]["usage"].values()) == {0}


async def test_a_failed_turn_ends_with_its_error_and_nothing_else(tmp_path) -> None:
    played = await play(tmp_path, "fail: {status: 401}")
    assert played.types == ["thread.started", "turn.started", "error", "turn.failed"]
    assert played.events[-2]["message"] == played.events[-1]["error"]["message"]
    assert set(played.events[-1]) == {"type", "error"}
    assert set(played.events[-1]["error"]) == {"message"}
    assert "401" in played.events[-1]["error"]["message"]
    assert played.status == 1


async def test_a_failed_turn_completes_what_it_began(tmp_path) -> None:
    plan = "[{update_plan: {steps: [{step: look, status: pending}]}}]"
    played = await play(tmp_path, plan, "fail: {status: 400}")
    assert played.types[-4:] == ["item.started", "item.completed", "error", "turn.failed"]
    assert played.events[-3]["item"]["type"] == "todo_list"


async def test_a_lost_stream_is_asked_for_again_without_a_fatal_error(tmp_path) -> None:
    played = await play(tmp_path, "[{message: {deltas: [half, {disconnect: true}]}}]", DONE)
    assert played.types[-1] == "turn.completed"
    assert "error" not in played.types
    assert [item["text"] for _, item in played.of_type("agent_message")][-1] == "done"


async def test_retries_come_to_an_end_as_a_failed_turn(tmp_path) -> None:
    side = ModelSide([Reply([CUT]) for _ in range(6)])
    played = await play(tmp_path, transport=side.transport)
    assert len(played.of_type("error")) == 5
    assert played.types[-2:] == ["error", "turn.failed"]
    assert played.types.count("error") == 1


def stopping(interruption: Interruption, kind: str, number: int = 15):
    def seen(event: Fields) -> None:
        if event["type"] == kind:
            interruption.stop_by_signal(number)

    return seen


@pytest.mark.parametrize(("number", "name"), [(2, "SIGINT"), (15, "SIGTERM"), (1, "SIGHUP")])
async def test_a_signal_interrupts_the_turn_and_says_so(tmp_path, number: int, name: str) -> None:
    interruption = Interruption()
    seen = stopping(interruption, "item.started", number)
    command = "[{run: 'touch begun; sleep 60'}]"
    with anyio.fail_after(20):
        played = await play(tmp_path, command, interruption=interruption, seen=seen)
    assert played.types[-2:] == ["item.completed", "error"]
    assert played.events[-2]["item"]["status"] == "failed"
    assert name in played.events[-1]["message"]
    assert played.status == 128 + number


async def test_a_signal_before_the_turn_is_a_fatal_error(tmp_path) -> None:
    interruption = Interruption()
    played = await play(
        tmp_path, DONE, interruption=interruption, seen=stopping(interruption, "thread.started")
    )
    assert played.types == ["thread.started", "error"]
    assert set(played.events[-1]) == {"type", "message"}
    assert played.status == 143


async def test_a_signal_before_the_thread_leaves_no_word(tmp_path) -> None:
    interruption = Interruption()
    interruption.stop_by_signal(2)
    played = await play(tmp_path, DONE, interruption=interruption)
    assert (played.types, played.status) == ([], 130)
    assert not list(tmp_path.glob("home/sessions/**/*.jsonl"))


@pytest.mark.parametrize(
    "kind", ["thread.started", "turn.started", "item.started", "item.completed"]
)
async def test_output_that_nobody_reads_ends_the_turn_quietly(tmp_path, kind: str) -> None:
    def seen(event: Fields) -> None:
        if event["type"] == kind:
            raise PeerGone

    with anyio.fail_after(20):
        command = "true" if kind == "item.completed" else "sleep 60"
        played = await play(tmp_path, f"[{{run: '{command}'}}]", DONE, seen=seen)
    assert played.types[-1] == kind
    assert played.status == 141


async def test_a_thread_of_exec_says_so(tmp_path) -> None:
    await play(tmp_path, DONE)
    [path] = tmp_path.glob("home/sessions/**/*.jsonl")
    assert json.loads(path.read_text().splitlines()[0])["source"] == "exec"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_an_ephemeral_thread_leaves_nothing_on_disk(tmp_path) -> None:
    played = await play(tmp_path, DONE, ephemeral=True)
    assert played.status == 0
    assert not list(tmp_path.glob("home/sessions/**/*.jsonl"))


async def test_a_final_message_that_fits_the_schema_is_json_text(tmp_path) -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}
    played = await play(tmp_path, "[{message: '{\"a\": 1}'}]", schema=schema)
    assert json.loads(played.of_type("agent_message")[-1][1]["text"]) == {"a": 1}
    assert played.status == 0


async def test_the_schema_is_asked_for_strictly(tmp_path) -> None:
    schema = {"type": "object"}
    call = {"type": "response.completed", "response": {"id": "r", "output": []}}
    side = ModelSide([Reply([f"data: {json.dumps(call)}\n\n".encode()]) for _ in range(2)])
    await play(tmp_path, transport=side.transport, schema=schema)
    form = side.bodies[0]["text"]["format"]
    assert (form["type"], form["strict"], form["schema"]) == ("json_schema", True, schema)


async def test_a_final_message_that_never_fits_fails_the_turn(tmp_path) -> None:
    played = await play(
        tmp_path, "[{message: no}]", "[{message: still not}]", schema={"type": "object"}
    )
    assert (played.types[-1], played.status) == ("turn.failed", 1)
    assert len(played.of_type("error")) == 1


async def test_an_image_goes_to_the_model_before_the_words(tmp_path) -> None:
    (tmp_path / "one.png").write_bytes(PIXEL)
    call = {"type": "response.completed", "response": {"id": "r", "output": []}}
    side = ModelSide([Reply([f"data: {json.dumps(call)}\n\n".encode()])])
    await play(tmp_path, transport=side.transport, images=(str(tmp_path / "one.png"),))
    parts = side.bodies[0]["input"][-1]["content"]
    assert [part["type"] for part in parts] == ["input_image", "input_text"]


async def test_requests_of_the_server_that_are_no_approvals_are_refused() -> None:
    answers: list[tuple[int, Fields]] = []

    async def take(_method: str, _params: Fields) -> None:
        pytest.fail("a request is no notification")

    follower = Follower(take, lambda number, answer: answers.append((number, answer)))
    await follower.send([b'{"method":"item/tool/call","id":7,"params":{}}'])
    [(number, answer)] = answers
    assert (number, answer["error"]["code"]) == (7, -32601)


async def test_a_gate_that_nobody_opens_waits_for_a_signal(tmp_path) -> None:
    interruption = Interruption()
    transport = model(tmp_path, "[{message: {deltas: [a, {hold: never}, b]}}]")
    with anyio.fail_after(20):
        played = await play(
            tmp_path,
            transport=transport,
            interruption=interruption,
            seen=stopping(interruption, "turn.started"),
        )
    assert played.types[-1] == "error"


@pytest.mark.usefixtures("bubblewrap")
async def test_an_image_that_the_sandbox_hides_is_refused_before_anything_is_done(
    tmp_path,
) -> None:
    hidden = tmp_path / "home" / "auth.png"
    hidden.parent.mkdir()
    hidden.write_bytes(PIXEL)
    with pytest.raises(NotBegun, match="the sandbox hides it"):
        await play(tmp_path, DONE, images=(str(hidden),), sandbox_mode="read-only")
    assert not list(tmp_path.glob("home/sessions/**/*.jsonl"))
