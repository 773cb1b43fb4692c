"""An outputSchema that is too costly to check: rejected or failed in time, nothing left."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
from model_side import says
from session_peer import Peer, session

from reference_server.engine import output_schema, schema_process
from reference_server.engine.output_schema import CheckFailed, SchemaChecker

pytestmark = [pytest.mark.slow, pytest.mark.socket]
INPUT = [{"type": "text", "text": "hi"}]


def doubling(depth: int, leaf: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Each definition asks twice for the next one: 2**depth ways to the leaf."""
    ways = {
        f"d{at}": {"anyOf": 2 * [{"$ref": f"#/$defs/d{at + 1}"}], **more} for at in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**ways, f"d{depth}": leaf}}


STRING = {"type": "string"}
NOT_TO_COMPILE = doubling(40, STRING, unevaluatedProperties=False)
NOT_TO_JUDGE_BY = doubling(40, STRING)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_schema, "CPU_TIME", 1)


def judges() -> list[psutil.Process]:
    """The processes of this one that judge."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if _is_judge(one)]


def _is_judge(process: psutil.Process) -> bool:
    try:
        return any("schema_process" in word for word in process.cmdline())
    except psutil.Error:
        return False


async def a_judge() -> psutil.Process:
    with anyio.fail_after(10):
        while not (found := judges()):
            await anyio.lowlevel.checkpoint()
    return found[0]


async def answered(peer: Peer, request: int) -> dict[str, Any]:
    """The answer to a request that may take as long as a judge."""
    with anyio.fail_after(20):
        while True:
            for message in peer.seen:
                if message.get("id") == request and "method" not in message:
                    return message
            peer.seen.append(json.loads(await peer.transport.take()))


@pytest.mark.usefixtures("brief")
async def test_a_schema_that_takes_for_ever_is_refused_and_the_thread_goes_on(tmp_path) -> None:
    async with session(tmp_path, [says("1")]) as peer:
        thread = await peer.start_thread()
        params = {"threadId": thread, "input": INPUT, "outputSchema": NOT_TO_COMPILE}
        asked = await peer.send("turn/start", params)
        await a_judge()
        # Others are answered meanwhile.
        assert await peer.start_thread()
        assert asked not in [message.get("id") for message in peer.seen]
        error = (await answered(peer, asked))["error"]
        assert error["code"] == -32602
        assert error["message"].startswith("outputSchema: it cannot be compiled: it takes more")
        assert (await peer.run_turn(thread))["status"] == "completed"
    assert judges() == []


@pytest.mark.usefixtures("brief")
async def test_a_message_that_cannot_be_judged_in_time_fails_the_turn(tmp_path) -> None:
    async with session(tmp_path, [says("1"), says("2")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, outputSchema=NOT_TO_JUDGE_BY)
        await a_judge()
        assert await peer.start_thread()
        with anyio.fail_after(20):
            while "turn/completed" not in peer.methods():
                peer.seen.append(json.loads(await peer.transport.take()))
        end = await peer.turn_end(turn)
        assert end["status"] == "failed"
        assert end["error"]["message"] == "The final message cannot be checked against outputSchema"
        assert "1 s of a processor" in end["error"]["additionalDetails"]
        assert (await peer.run_turn(thread))["status"] == "completed"
    assert judges() == []


async def test_an_interrupt_ends_the_judging(tmp_path) -> None:
    async with session(tmp_path, [says("1")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, outputSchema=NOT_TO_JUDGE_BY)
        judge = await a_judge()
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        assert not judge.is_running()


async def test_a_turn_that_waits_for_its_schema_comes_before_the_next_one(tmp_path) -> None:
    async with session(tmp_path, [says("1"), says('"2"')]) as peer:
        thread = await peer.start_thread()
        params = {"threadId": thread, "input": INPUT}
        first = await peer.send("turn/start", {**params, "outputSchema": STRING})
        second = await peer.send("turn/start", params)
        turn = (await answered(peer, first))["result"]["turn"]["id"]
        assert turn in (await answered(peer, second))["error"]["message"]
        await peer.turn_end(turn)


def test_the_judge_ends_though_nobody_is_left_to_kill_it() -> None:
    question = {"schema": NOT_TO_JUDGE_BY, "text": "1", "seconds": 1, "bytes": 1 << 30}
    command = [sys.executable, "-P", schema_process.__file__]
    done = subprocess.run(
        command, input=json.dumps(question).encode(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


async def test_a_judge_that_only_waits_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program := tmp_path / "schema_process.py").write_text("import signal\nsignal.pause()\n")
    monkeypatch.setattr(output_schema, "_PROGRAM", program)
    monkeypatch.setattr(output_schema, "WALL_TIME", 0.2)
    with pytest.raises(CheckFailed, match=r"more than 0\.2 s"):
        await SchemaChecker().ask({}, None)
    assert judges() == []


async def test_a_judge_that_takes_too_much_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_schema, "MEMORY", 96 * 2**20)
    with pytest.raises(CheckFailed, match="96 MiB"):
        await SchemaChecker().ask({}, "[" + "[]," * 1_000_000 + "[]]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"x"', {}),
        ("1", {"objection": 'at /: 1 is not of type "string"'}),
        (None, {}),
    ],
)
def test_the_schema_process_says_whether_an_answer_fits(
    text: str | None, said: dict[str, str]
) -> None:
    assert schema_process.check(STRING, text) == said


WORDS = "x" * 5_000


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        ({"properties": [{WORDS: 1}]}, None, 'is not of type "object"'),
        ({"properties": {"a": {"type": WORDS}}}, None, "'anyOf' keyword"),
        ({"type": "string"}, json.dumps({"a": WORDS}), 'is not of type "string"'),
        ({"properties": {"a": {"maxLength": 3}}}, json.dumps({"a": WORDS}), "3 characters"),
    ],
)
def test_a_long_value_does_not_cut_off_the_reason(schema, text, reason) -> None:
    answer = schema_process.check(schema, text)
    [words] = answer.values()
    assert words.startswith("at /")
    assert words.endswith(reason)
    assert "more…" in words
    assert len(words) < 600
