"""Content that made a model call fail for good: left out from the next turn on, in words."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from model_side import PIXEL, Reply, calls, event, http_error, runs, says
from session_peer import Peer, session

from reference_server.rejected import leave_out

pytestmark = pytest.mark.anyio
IMAGE = "data:image/png;base64,AAAA"
LARGE = "word " * 1000
HELLO = {"type": "text", "text": "hello"}
TOOL = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}
UNASKED = {"sandbox": "danger-full-access", "approvalPolicy": "never"}


def provider_error(status: int = 400, **error: str) -> Reply:
    return Reply([json.dumps({"error": {"message": "it is bad", **error}}).encode()], status)


@dataclass(frozen=True)
class Cause:
    """Something in a turn that the provider rejects: every call that holds `mark`.

    `failures`: how many turns fail before it is left out.
    """

    mark: str
    error: Reply
    content: Sequence[dict[str, Any]] = (HELLO,)
    replies: Sequence[Reply] = ()
    tool_answer: dict[str, Any] | None = None
    failures: int = 1


CAUSES = {
    "an image": Cause(IMAGE, http_error(400), [HELLO, {"type": "image", "url": IMAGE}]),
    "a local image": Cause("image/png", http_error(422), [{"type": "localImage", "path": "a.png"}]),
    "an image by its code": Cause(
        IMAGE, provider_error(404, code="invalid_image_url"), [{"type": "image", "url": IMAGE}]
    ),
    "an image in a stream": Cause(
        IMAGE,
        Reply([event("response.failed", response={"error": {"code": "invalid_request"}})]),
        [{"type": "image", "url": IMAGE}],
    ),
    "an image that is too large": Cause(IMAGE, http_error(413), [{"type": "image", "url": IMAGE}]),
    "a file of the model's choice": Cause(
        "image/png", http_error(400), replies=[calls("view_image", path="a.png")]
    ),
    "an image of a client's tool": Cause(
        IMAGE,
        http_error(400),
        replies=[calls("look")],
        tool_answer={
            "success": True,
            "contentItems": [{"type": "inputImage", "imageUrl": IMAGE}],
        },
    ),
    "an output": Cause("bad words", http_error(400), replies=[runs("printf 'bad %s' words")]),
    "a large output": Cause(
        "wordy" * 400,
        provider_error(code="context_length_exceeded"),
        replies=[runs("printf 'wordy%.0s' $(seq 1000)")],
    ),
    "a large input": Cause(LARGE, http_error(413), [{"type": "text", "text": LARGE}]),
    "a long text": Cause(
        LARGE, provider_error(code="string_above_max_length"), [{"type": "text", "text": LARGE}]
    ),
    "a prompt": Cause(
        "bad words", provider_error(code="invalid_prompt"), [{"type": "text", "text": "bad words"}]
    ),
    "a text without a reason": Cause(
        "bad words", http_error(400), [{"type": "text", "text": "bad words"}], failures=2
    ),
}


async def spoil(peer: Peer, folder: Path, cause: Cause) -> str:
    """Run turns on a new thread until the rejected content is left out."""
    (folder / "a.png").write_bytes(PIXEL)
    replies = list(cause.replies)

    def take(path: str, _headers: object, body: bytes) -> Reply:
        peer.side.bodies.append(json.loads(body))
        if cause.mark in json.dumps(peer.side.bodies[-1]["input"]):
            return cause.error
        return replies.pop(0) if replies else says("fine")

    # The output of a command is in its arguments too, so these do not count.
    peer.side.take = take  # type: ignore[method-assign]
    thread = await peer.start_thread(cwd=str(folder), dynamicTools=[TOOL], **UNASKED)
    turn = await peer.start_turn(thread, input=list(cause.content))
    if cause.tool_answer is not None:
        question = await peer.until(lambda m: m.get("method") == "item/tool/call")
        answer = {"id": question["id"], "result": cause.tool_answer}
        await peer.send_line(json.dumps(answer).encode())
    assert (await peer.turn_end(turn))["status"] == "failed"
    for _ in range(cause.failures - 1):
        assert (await peer.run_turn(thread, "again"))["status"] == "failed"
    return thread


async def next_turn(peer: Peer, thread: str) -> None:
    assert (await peer.run_turn(thread, "go on"))["status"] == "completed"
    assert (await peer.run_turn(thread, "and on"))["status"] == "completed"


async def compacted(peer: Peer, thread: str) -> None:
    await next_turn(peer, thread)
    await peer.request("thread/compact/start", {"threadId": thread})
    started = [p["turn"]["id"] for p in peer.params_of("turn/started")]
    assert (await peer.turn_end(started[-1]))["status"] == "completed"


async def resumed(peer: Peer, thread: str) -> None:
    await peer.request("thread/unsubscribe", {"threadId": thread})
    assert "result" in await peer.request("thread/resume", {"threadId": thread})
    await next_turn(peer, thread)


async def forked(peer: Peer, thread: str) -> None:
    fork = await peer.request("thread/fork", {"threadId": thread})
    await next_turn(peer, fork["result"]["thread"]["id"])


async def rolled_back(peer: Peer, thread: str) -> None:
    await next_turn(peer, thread)
    assert "result" in await peer.request("thread/rollback", {"threadId": thread, "numTurns": 2})
    await next_turn(peer, thread)


CONTINUED = [next_turn, compacted, resumed, forked, rolled_back]


@pytest.mark.parametrize("name", CAUSES)
@pytest.mark.parametrize("go_on", CONTINUED)
async def test_rejected_content_is_not_sent_from_the_next_turn_on(
    tmp_path: Path, name: str, go_on: Callable[[Peer, str], Any]
) -> None:
    cause = CAUSES[name]
    async with session(tmp_path) as peer:
        thread = await spoil(peer, tmp_path, cause)
        before = len(peer.side.bodies)
        await go_on(peer, thread)
        told = [json.dumps(body["input"]) for body in peer.side.bodies[before:]]
    assert "was left out here" in told[0]
    assert "failed" in told[0]
    if cause.content[0] is HELLO:
        assert "hello" in told[0]


async def test_next_server_leaves_it_out_too(tmp_path: Path) -> None:
    async with session(tmp_path) as peer:
        thread = await spoil(peer, tmp_path, CAUSES["an image"])
    async with session(tmp_path, [says("fine")]) as peer:
        await peer.request("thread/resume", {"threadId": thread})
        assert (await peer.run_turn(thread, "go on"))["status"] == "completed"
        told = json.dumps(peer.side.bodies[0]["input"])
    assert IMAGE not in told
    assert "hello" in told


@pytest.mark.parametrize(
    "error",
    [
        http_error(500),
        http_error(401),
        http_error(429, code="insufficient_quota"),
        http_error(400, code="model_not_found"),
        provider_error(code="invalid_value", param="text.format.schema"),
        provider_error(code="unsupported_parameter", param="reasoning.effort"),
    ],
)
async def test_failure_with_another_cause_leaves_nothing_out(tmp_path: Path, error: Reply) -> None:
    image = {"type": "image", "url": IMAGE}
    async with session(tmp_path, [error, error, says("fine")]) as peer:
        thread = await peer.start_thread()
        for _ in range(2):
            turn = await peer.run_turn(thread, input=[HELLO, image])
            assert turn["status"] == "failed"
        assert (await peer.run_turn(thread, "go on"))["status"] == "completed"
        assert json.dumps(peer.side.bodies[-1]["input"]).count(IMAGE) == 2


async def test_image_that_a_call_has_held_before_stays_for_another_image(tmp_path: Path) -> None:
    first, second = ({"type": "image", "url": IMAGE + word} for word in ("first", "second"))
    replies = [says("seen"), http_error(400), says("fine")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        assert (await peer.run_turn(thread, input=[first]))["status"] == "completed"
        assert (await peer.run_turn(thread, input=[second]))["status"] == "failed"
        assert (await peer.run_turn(thread))["status"] == "completed"
        told = json.dumps(peer.side.bodies[-1]["input"])
    assert IMAGE + "first" in told
    assert IMAGE + "second" not in told


async def test_model_that_takes_no_images_is_not_sent_those_of_another(tmp_path: Path) -> None:
    image = {"type": "image", "url": IMAGE}
    no_images = Reply([b'{"error":{"message":"this model takes no images"}}'], 400)
    async with session(tmp_path, [says("seen"), no_images, says("fine")]) as peer:
        thread = await peer.start_thread()
        assert (await peer.run_turn(thread, input=[image]))["status"] == "completed"
        assert (await peer.run_turn(thread, model="blind"))["status"] == "failed"
        assert (await peer.run_turn(thread))["status"] == "completed"
        assert IMAGE not in json.dumps(peer.side.bodies[-1]["input"])


def test_every_call_keeps_its_output() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "bad"}
    history = [call, output]
    [replaced] = leave_out(history, "content", "because")
    assert (replaced.from_end, history[0]) == (1, call)
    assert history[1]["call_id"] == "c"
    assert "because" in history[1]["output"]
    assert "bad" not in history[1]["output"]
