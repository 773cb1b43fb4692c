"""review/start: the items around a review, its text, its thread, and the thread's history."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, delta, http_error, opened, runs, says
from session_peer import Message, Peer, session

from reference_server.engine.review import UNFINISHED
from reference_server.engine.review_text import EMPTY_REVIEW, review_text
from reference_server.rollout.reader import read_rollout

FINDING = {
    "title": "Off by one",
    "body": "It begins\nat two.",
    "confidence_score": 0.9,
    "priority": 1,
    "code_location": {"absolute_file_path": "/w/a.py", "line_range": {"start": 2, "end": 3}},
}
ANSWER = json.dumps({"findings": [FINDING], "overall_explanation": "Mostly right."})
TEXT = "Mostly right.\n\n- Off by one (/w/a.py:2-3)\n  It begins\n  at two."
CUSTOM = {"type": "custom", "instructions": "review a.py"}


async def start_review(peer: Peer, thread: str, target: Any = CUSTOM, **params: Any) -> Message:
    given = {"threadId": thread, "target": target, **params}
    return (await peer.request("review/start", given))["result"]


async def review(peer: Peer, thread: str, target: Any = CUSTOM, **params: Any) -> Message:
    started = await start_review(peer, thread, target, **params)
    return await peer.turn_end(started["turn"]["id"])


async def test_a_review_is_a_turn_with_a_beginning_an_end_and_a_report(tmp_path) -> None:
    async with session(tmp_path, [says(*ANSWER)]) as peer:
        thread = await peer.start_thread()
        started = await start_review(peer, thread)
        end = await peer.turn_end(started["turn"]["id"])
    assert started["turn"] == {**end, "status": "inProgress"}
    assert started["reviewThreadId"] == thread
    assert end == {"id": end["id"], "items": [], "status": "completed", "error": None}
    items = [
        (m["method"], m["params"]["item"])
        for m in peer.seen
        if m.get("method") in ("item/started", "item/completed")
    ]
    assert [(method, item["type"]) for method, item in items] == [
        ("item/started", "enteredReviewMode"),
        ("item/completed", "enteredReviewMode"),
        ("item/started", "exitedReviewMode"),
        ("item/completed", "exitedReviewMode"),
        ("item/started", "agentMessage"),
        ("item/completed", "agentMessage"),
    ]
    entered, left, report = (item for method, item in items if method == "item/completed")
    assert (entered["review"], left["review"], report["text"]) == ("review a.py", TEXT, TEXT)
    assert len({entered["id"], left["id"], report["id"]}) == 3


async def test_the_reviewer_works_in_a_conversation_of_its_own(tmp_path) -> None:
    replies = [says("hello"), runs("cat a.py"), says(ANSWER), says("I see.")]
    async with session(tmp_path / "home", replies) as peer:
        params = {"cwd": str(tmp_path), "approvalPolicy": "never", "sandbox": "danger-full-access"}
        (tmp_path / "a.py").write_text("1\n")
        thread = await peer.start_thread(**params)
        await peer.run_turn(thread, "hi")
        await review(peer, thread)
        await peer.run_turn(thread, "well?")
    first, second, after = peer.side.bodies[1:]
    assert [i["content"][0]["text"] for i in first["input"]] == ["review a.py"]
    assert first["instructions"] != after["instructions"]
    assert first["text"]["format"]["type"] == "json_schema"
    assert [i["type"] for i in second["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [i["status"] for i in peer.completed_items("commandExecution")] == ["completed"]
    texts = [(i["role"], i["content"][0]["text"]) for i in after["input"]]
    assert texts[:2] == [("user", "hi"), ("assistant", "hello")]
    assert texts[2][0] == "developer"
    assert "review a.py" in texts[2][1]
    assert texts[3:] == [("assistant", TEXT), ("user", "well?")]


TARGETS: dict[str, tuple[dict[str, Any], str, str]] = {
    "what is not committed": ({"type": "uncommittedChanges"}, "current changes", "no commit"),
    "a branch": (
        {"type": "baseBranch", "branch": "main"},
        "changes against 'main'",
        "merge base",
    ),
    "a commit": (
        {"type": "commit", "sha": "1234567deadbeef", "title": "Tidy"},
        "commit 1234567: Tidy",
        "1234567deadbeef (Tidy)",
    ),
    "a commit without title": (
        {"type": "commit", "sha": "1234567deadbeef"},
        "commit 1234567",
        "1234567deadbeef changes",
    ),
    "instructions": ({"type": "custom", "instructions": " look \n"}, "look", "look"),
}


@pytest.mark.parametrize("name", TARGETS)
async def test_the_target_is_the_label_and_the_task(tmp_path, name: str) -> None:
    target, label, words = TARGETS[name]
    async with session(tmp_path, [says("{}")]) as peer:
        await review(peer, await peer.start_thread(), target)
    assert [i["review"] for i in peer.completed_items("enteredReviewMode")] == [label]
    assert words in peer.side.bodies[0]["input"][0]["content"][0]["text"]


EMPTY = {
    "instructions": {"type": "custom", "instructions": "  "},
    "branch": {"type": "baseBranch", "branch": ""},
    "sha": {"type": "commit", "sha": ""},
}


@pytest.mark.parametrize("member", EMPTY)
async def test_a_target_that_names_nothing_is_refused(tmp_path, member: str) -> None:
    async with session(tmp_path) as peer:
        given = {"threadId": await peer.start_thread(), "target": EMPTY[member]}
        error = (await peer.request("review/start", given))["error"]
    assert error == {"code": -32602, "message": f"target.{member}: must not be empty"}
    assert peer.params_of("turn/started") == []


async def test_a_detached_review_runs_in_a_thread_of_its_own(tmp_path) -> None:
    gate = anyio.Event()
    busy = Reply([CREATED, gate, completed()])
    async with session(tmp_path, [busy, says(ANSWER), says("on")]) as peer:
        thread = await peer.start_thread(model="bigger", serviceName="tests")
        turn = await peer.start_turn(thread)
        started = await start_review(peer, thread, delivery="detached")
        other = started["reviewThreadId"]
        await peer.turn_end(started["turn"]["id"])
        gate.set()
        await peer.turn_end(turn)
        await peer.run_turn(other, "well?")
    assert other != thread
    told = [p["thread"] for p in peer.params_of("thread/started")]
    assert [t["id"] for t in told] == [thread, other]
    assert (told[1]["status"], told[1]["cwd"]) == ({"type": "idle"}, told[0]["cwd"])
    [left] = [
        p for p in peer.params_of("item/completed") if p["item"]["type"] == "exitedReviewMode"
    ]
    assert left["threadId"] == other
    assert [b["model"] for b in peer.side.bodies] == ["bigger"] * 3
    assert peer.side.bodies[2]["metadata"] == {"service_name": "tests"}
    assert peer.side.bodies[2]["input"][1]["content"][0]["text"] == TEXT


async def test_a_detached_review_of_an_ephemeral_thread_leaves_nothing_on_disk(tmp_path) -> None:
    async with session(tmp_path, [says(ANSWER)]) as peer:
        thread = await peer.start_thread(ephemeral=True)
        await review(peer, thread, delivery="detached")
        files = rollouts_in(tmp_path)
    assert files == []


def rollouts_in(home: Path) -> list[Path]:
    return list(home.rglob("rollout-*.jsonl"))


async def test_a_review_is_refused_while_a_turn_runs_and_takes_no_input(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, gate, *says(ANSWER).parts[1:]])
    async with session(tmp_path, [held]) as peer:
        thread = await peer.start_thread()
        started = await start_review(peer, thread)
        turn = started["turn"]["id"]
        again = await peer.request("review/start", {"threadId": thread, "target": CUSTOM})
        steer = {
            "threadId": thread,
            "input": [{"type": "text", "text": "x"}],
            "expectedTurnId": turn,
        }
        steered = await peer.request("turn/steer", steer)
        gate.set()
        await peer.turn_end(turn)
    assert turn in again["error"]["message"]
    assert "takes no input" in steered["error"]["message"]


async def test_an_interrupted_review_is_left_and_says_nothing(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, opened(), delta('{"fin'), gate])
    async with session(tmp_path, [held, says("on")]) as peer:
        thread = await peer.start_thread()
        turn = (await start_review(peer, thread))["turn"]["id"]
        await peer.event("item/completed", turnId=turn)
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await peer.turn_end(turn)
        await peer.run_turn(thread)
    assert end["status"] == "interrupted"
    assert [i["review"] for i in peer.completed_items("exitedReviewMode")] == [UNFINISHED]
    assert len(peer.completed_items("agentMessage")) == 1
    assert [i["role"] for i in peer.side.bodies[-1]["input"]] == ["user"]


async def test_a_command_of_an_interrupted_review_leaves_no_trace_for_the_model(tmp_path) -> None:
    async with session(tmp_path, [runs("sleep 100"), says("on")]) as peer:
        thread = await peer.start_thread(approvalPolicy="never", sandbox="danger-full-access")
        turn = (await start_review(peer, thread))["turn"]["id"]
        await peer.until(
            lambda m: (
                m.get("method") == "item/started"
                and m["params"]["item"]["type"] == "commandExecution"
            )
        )
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        await peer.turn_end(turn)
        await peer.run_turn(thread)
    assert [i["type"] for i in peer.side.bodies[-1]["input"]] == ["message"]


async def test_a_failed_review_is_left_and_fails_its_turn(tmp_path) -> None:
    async with session(tmp_path, [http_error(400, "invalid_prompt")]) as peer:
        end = await review(peer, await peer.start_thread())
    assert end["status"] == "failed"
    assert [i["review"] for i in peer.completed_items("exitedReviewMode")] == [UNFINISHED]
    assert peer.completed_items("agentMessage") == []


async def test_a_reviewer_that_never_stops_calling_is_stopped(tmp_path) -> None:
    async with session(tmp_path, [runs("") for _ in range(60)]) as peer:
        end = await review(peer, await peer.start_thread(approvalPolicy="never"))
    assert end["status"] == "failed"
    assert len(peer.side.bodies) == 50


USAGE = {"input_tokens": 70, "output_tokens": 30, "total_tokens": 100}


async def test_a_review_costs_tokens_and_fills_no_context(tmp_path) -> None:
    async with session(tmp_path, [says("hi", usage=USAGE), says("{}", usage=USAGE)]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        [loaded] = peer.server.services.threads.loaded_threads
        before = loaded.context_tokens
        await review(peer, thread)
        [file] = rollouts_in(tmp_path)
        stored = read_rollout(file)
    told = [p["tokenUsage"] for p in peer.params_of("thread/tokenUsage/updated")]
    assert [t["total"]["totalTokens"] for t in told] == [100, 200]
    assert before == loaded.context_tokens == stored.context_tokens == 100
    assert [count.total_tokens for count in stored.tokens] == [100, 100]
    assert stored.history == loaded.history


ANSWERS = {
    ANSWER: TEXT,
    "plain words\n": "plain words",
    "": EMPTY_REVIEW,
    "{}": "{}",
    "[1]": "[1]",
    '{"findings": []}': EMPTY_REVIEW,
    '{"findings": [], "overall_explanation": "Fine."}': "Fine.",
    '{"findings": [{"title": "T"}]}': "- T",
    '{"findings": [7, {"title": "T", "body": "b", "code_location": {}}]}': "- T\n  b",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_review_is_plain_text(answer: str) -> None:
    assert review_text(answer) == ANSWERS[answer]


def test_a_finding_in_one_line_names_that_line() -> None:
    location = {"absolute_file_path": "/a", "line_range": {"start": 4, "end": 4}}
    answer = {"findings": [{"title": "T", "code_location": location}]}
    assert review_text(json.dumps(answer)) == "- T (/a:4)"
