"""Malformed tool calls, counts and messages of a model: the turn goes on."""

from pathlib import Path
from typing import Any

import pytest
from model_side import (
    CREATED,
    Reply,
    completed,
    delta,
    done,
    function_call,
    message_item,
    opened,
    runs,
    says,
)
from session_peer import session


def call(name: str, arguments: str) -> Reply:
    item = {**function_call(name), "arguments": arguments}
    return Reply([CREATED, done(item), completed()])


async def told(home: Path, reply: Reply) -> str:
    """Return the output that the model gets for its call, in a turn that goes on after it."""
    unasked = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
    async with session(home, [reply, says("go on")]) as peer:
        end = await peer.run_turn(await peer.start_thread(**unasked))
    assert (end["status"], end["error"]) == ("completed", None)
    return peer.told_model()


@pytest.mark.parametrize("name", ["exec_command", "update_plan", "view_image"])
async def test_arguments_that_are_too_deep_to_read_are_no_json(tmp_path, name: str) -> None:
    assert "the arguments are not JSON" in await told(tmp_path, call(name, "[" * 200_000))


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("exec_command", '{"cmd": "echo \\ud800", "workdir": "/nowhere"}', "not run"),
        ("exec_command", '{"cmd": "echo a", "workdir": "/nowhere/\\uD800"}', "not run"),
        ("view_image", '{"path": "\\ud800.png"}', "failed to read"),
        ("update_plan", '{"plan": [{"step": "\\ud800", "status": "pending"}]}', "Plan updated"),
    ],
)
async def test_half_a_surrogate_pair_in_arguments_fails_no_turn(
    tmp_path, name: str, arguments: str, words: str
) -> None:
    assert words in await told(tmp_path, call(name, arguments))


@pytest.mark.parametrize("limit", ["1e300", "1" + "0" * 400, "NaN", "-1", "true", "0"])
async def test_a_time_limit_that_is_none_is_said_to_be_none(tmp_path, limit: str) -> None:
    arguments = f'{{"cmd": "echo a", "timeout_ms": {limit}}}'
    assert "must be a positive number" in await told(tmp_path, call("exec_command", arguments))


@pytest.mark.parametrize("count", [-5, True, "7", 1.5, None, [], {}])
async def test_a_count_that_is_none_counts_nothing(tmp_path, count: Any) -> None:
    usage = {"input_tokens": 7, "output_tokens": count, "total_tokens": count}
    async with session(tmp_path, [says("a", usage=usage)]) as peer:
        end = await peer.run_turn(await peer.start_thread(approvalPolicy="never"))
    assert end["status"] == "completed"
    [told_usage] = peer.params_of("thread/tokenUsage/updated")
    last = told_usage["tokenUsage"]["last"]
    assert (last["inputTokens"], last["outputTokens"], last["totalTokens"]) == (7, 0, 7)


async def test_a_message_without_its_own_end_was_said_all_the_same(tmp_path) -> None:
    """The client was shown it as completed; so the model is told it with the next call."""
    open_end = Reply([CREATED, opened(), delta("I said "), delta("this."), completed()])
    async with session(tmp_path, [open_end, says("more")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread, "go on")
    assert [item["text"] for item in peer.completed_items("agentMessage")] == [
        "I said this.",
        "more",
    ]
    said = [item for item in peer.side.bodies[1]["input"] if item.get("role") == "assistant"]
    assert [item["content"][0]["text"] for item in said] == ["I said this."]


async def test_a_final_message_without_its_own_end_is_judged_by_the_schema(tmp_path) -> None:
    open_end = Reply([CREATED, opened(), delta("7"), completed()])
    async with session(tmp_path, [open_end]) as peer:
        end = await peer.run_turn(await peer.start_thread(), outputSchema={"type": "number"})
    assert (end["status"], peer.params_of("error")) == ("completed", [])


@pytest.mark.parametrize("answer", ['"\\ud800"', "[" * 600 + "]" * 600], ids=["half", "deep"])
async def test_a_final_message_that_no_schema_can_judge_is_asked_for_again(
    tmp_path, answer: str
) -> None:
    said = Reply([CREATED, done(message_item(answer)), completed()])
    async with session(tmp_path, [said, says('"fine"')]) as peer:
        end = await peer.run_turn(await peer.start_thread(), outputSchema={"type": ["string"]})
    assert (end["status"], end["error"]) == ("completed", None)
    [error] = peer.params_of("error")
    assert error["willRetry"] is True
    assert "cannot be checked against the schema" in error["error"]["additionalDetails"]


async def test_a_command_line_that_no_system_runs_is_refused(tmp_path) -> None:
    words = await told(tmp_path, runs("echo " + "é" * 65_536))
    assert "`cmd` is longer than 131071 bytes" in words
    assert "write it to a script" in words


@pytest.mark.slow
@pytest.mark.socket
async def test_the_longest_command_line_runs(tmp_path) -> None:
    words = await told(tmp_path, runs(": " + "x" * (128 * 1024 - 3)))
    assert "Exit code: 0" in words
