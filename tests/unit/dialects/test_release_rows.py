"""Rows of the releases at work: reviews, compactions, plans, patches and commands.

Each test sends what the server says of such a turn, and reads what a client of the release gets.
"""

from pathlib import Path
from typing import Any

import pytest

from harness.protocol.dialects.table import load_dialect
from reference_server.dialect.transport import DialectTransport
from tests.unit.dialects.test_dialect_transport import THREAD, TURN, Wire
from tests.unit.dialects.test_progress import ANSWER, USER, item
from tests.unit.dialects.test_sequence import ACTIVE, COMPLETED, IDLE, STARTED, USAGE, note, turn

pytestmark = pytest.mark.anyio

OLDER, NEWER = "codex-0.107", "codex-0.169"
BOTH = pytest.mark.parametrize("release", [OLDER, NEWER])
_TOLD_OFTEN = ("account/rateLimits/updated", "thread/readState/changed", "warning")


def wire_of(release: str, home: str = "/home") -> Wire:
    wire = Wire()
    wire.edge = DialectTransport(wire.lines, load_dialect(release), home)
    return wire


def steps(written: list[Any]) -> list[str]:
    """Return the methods with the type of the item or the status, of what is not in any turn."""
    named: list[str] = []
    for one in written:
        if "method" not in one:
            named.append("answer")
        elif one["method"] not in _TOLD_OFTEN:
            params = one["params"]
            kind = params.get("item", {}).get("type") or (params.get("status") or {}).get("type")
            named.append(" ".join(filter(None, (one["method"], kind))))
    return named


async def start(wire: Wire, **settings: Any) -> None:
    """Start a thread with settings of its answer, which every client reads first."""
    thread = {"id": "thr_1", "cwd": "/w", "updatedAt": 1, "status": {"type": "idle"}}
    thread |= {"ephemeral": settings.pop("ephemeral", False)}
    result = {"model": "gpt-5.5", "cwd": "/w", "approvalPolicy": "never", "thread": thread}
    await wire.received({"id": 0, "method": "thread/start", "params": {}})
    await wire.written({"id": 0, "result": {**result, **settings}})


REVIEW = "Nothing to mend."
UNFINISHED = "The review did not come to an end."


def review_item(event: str, kind: str, text: str) -> dict[str, Any]:
    return note(
        f"item/{event}", turnId="turn_1", item={"type": kind, "id": f"item_{kind}", "review": text}
    )


ENTERED = [review_item(event, "enteredReviewMode", "all") for event in ("started", "completed")]
PROMPT = ["item/started userMessage", "item/completed userMessage"]


def exited(text: str) -> list[dict[str, Any]]:
    return [review_item(event, "exitedReviewMode", text) for event in ("started", "completed")]


async def begin_review(wire: Wire) -> list[str]:
    params = {"threadId": THREAD, "target": {"type": "uncommittedChanges"}}
    await wire.received({"id": 1, "method": "review/start", "params": params})
    result = {"turn": turn("inProgress"), "reviewThreadId": "thr_1"}
    return steps(await wire.written({"id": 1, "result": result}, STARTED, ACTIVE, *ENTERED))


@BOTH
async def test_a_review_begins_with_its_items_and_a_message_for_the_reviewer(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    entered = ["item/started enteredReviewMode", "item/completed enteredReviewMode"]
    active = "thread/status/changed active"
    expected = {
        OLDER: ["answer", "turn/started", *entered, active, *PROMPT],
        NEWER: ["answer", *entered, active, "turn/started", *PROMPT],
    }
    assert await begin_review(wire) == expected[release]


@BOTH
async def test_the_answer_of_a_reviewer_begins_and_its_tokens_are_not_told(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    await begin_review(wire)
    delta = note("item/agentMessage/delta", turnId="turn_1", itemId="item_2", delta=REVIEW)
    written = await wire.written(USAGE, *exited(REVIEW), ANSWER, delta)
    assert steps(written) == [
        "item/started agentMessage",
        "item/started exitedReviewMode",
        "item/completed exitedReviewMode",
        "item/started agentMessage",
    ]


@BOTH
async def test_a_review_that_fails_ends_after_its_error(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    await begin_review(wire)
    error = {"message": "no", "agentErrorInfo": None, "additionalDetails": None}
    failed = note("error", turnId="turn_1", error=error, willRetry=False)
    broken = note("thread/status/changed", status={"type": "systemError"})
    assert steps(await wire.written(*exited(UNFINISHED), failed, broken)) == [
        "thread/status/changed systemError",
        "error",
        "item/started exitedReviewMode",
        "item/completed exitedReviewMode",
        "item/started agentMessage",
        "item/completed agentMessage",
    ]


@BOTH
async def test_the_interrupt_of_a_review_is_answered_after_its_end(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    await begin_review(wire)
    params = {"threadId": THREAD, "turnId": TURN}
    await wire.received({"id": 2, "method": "turn/interrupt", "params": params})
    written = steps(await wire.written({"id": 2, "result": {}}, *exited(UNFINISHED)))
    assert written[-1] == "answer"
    assert written[-2] == "item/completed agentMessage"


COMPACTED = [item(event, "contextCompaction") for event in ("started", "completed")]


@BOTH
async def test_a_full_history_is_compacted_before_the_message(release: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("model_auto_compact_token_limit = 100")
    wire = wire_of(release, str(tmp_path))
    await start(wire)
    usage = {"total": {}, "last": {"totalTokens": 200}}
    full = note("thread/tokenUsage/updated", turnId="turn_1", tokenUsage=usage)
    await wire.written(STARTED, full, IDLE, COMPLETED)
    written = steps(await wire.written(*USER, *COMPACTED))
    assert written[0] == "item/started contextCompaction"
    assert written[-2:] == PROMPT or written[-3:-1] == PROMPT
    # The history is short again.
    await wire.written(IDLE, COMPLETED)
    second = note("turn/started", turn={**turn("inProgress"), "id": "turn_2"})
    again = [{**one, "params": {**one["params"], "turnId": "turn_2"}} for one in USER]
    assert steps(await wire.written(second, *again))[1:] == PROMPT


@BOTH
async def test_a_message_that_is_a_plan_alone_is_no_message(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    plan = {"threadId": THREAD, "input": [], "collaborationMode": {"mode": "plan"}}
    await wire.received({"id": 1, "method": "turn/start", "params": plan})
    await wire.written(STARTED)
    assert steps(await wire.written(ANSWER)) == []
    completed = item("completed", "agentMessage", identifier="item_2")
    assert steps(await wire.written(completed)) == []
    (ended,) = await wire.written(COMPLETED)
    assert not ended["params"]["turn"]["items"]
    delta = note("item/agentMessage/delta", turnId="turn_1", itemId="item_2", delta="look")
    assert "item/started agentMessage" in steps(await wire.written(ANSWER, delta))


@pytest.mark.parametrize(("ephemeral", "is_told"), [(True, False), (False, True)])
async def test_an_ephemeral_thread_has_no_state_of_reading(ephemeral: bool, is_told: bool) -> None:
    wire = wire_of(NEWER)
    await start(wire, ephemeral=ephemeral)
    said = item("completed", "agentMessage", identifier="item_2")
    said["params"]["item"]["text"] = "done"
    written = await wire.written(STARTED, ACTIVE, *USER, ANSWER, said, IDLE, COMPLETED)
    assert ("thread/readState/changed" in [one["method"] for one in written]) == is_told
    await wire.received({"id": 1, "method": "thread/read", "params": {"threadId": THREAD}})
    thread = {"id": "thr_1", "cwd": "/w", "updatedAt": 1, "status": {"type": "idle"}, "turns": []}
    thread |= {"ephemeral": ephemeral}
    (answer,) = await wire.written({"id": 1, "result": {"thread": thread}})
    assert (answer["result"]["readState"] is not None) == is_told


async def test_the_older_release_tells_the_diff_of_a_patch_that_failed() -> None:
    wire = wire_of(OLDER)
    await start(wire, approvalPolicy="on-request")
    await wire.written(STARTED, ACTIVE, *USER)
    patch = [item("started", "fileChange", "inProgress"), item("completed", "fileChange", "failed")]
    assert steps(await wire.written(*patch)).count("turn/diff/updated") == 2
    assert steps(await wire.written(IDLE)) == ["turn/diff/updated", "thread/status/changed idle"]


@pytest.mark.parametrize(("policy", "is_told"), [("on-failure", True), ("on-request", False)])
async def test_a_patch_that_failed_in_the_sandbox_has_output_before_the_question(
    policy: str, is_told: bool
) -> None:
    wire = wire_of(OLDER)
    await start(wire, approvalPolicy=policy)
    await wire.written(STARTED, ACTIVE, *USER)
    waiting = {"type": "active", "activeFlags": ["waitingOnApproval"]}
    asked = note("thread/status/changed", status=waiting)
    written = steps(await wire.written(item("started", "fileChange", "inProgress"), asked))
    assert ("item/fileChange/outputDelta" in written) == is_told


async def test_the_tool_of_a_client_ends_before_the_answer_to_the_interrupt() -> None:
    wire = wire_of(NEWER)
    await start(wire)
    await wire.written(STARTED, *USER, item("started", "dynamicToolCall", "inProgress"))
    params = {"threadId": THREAD, "turnId": TURN}
    await wire.received({"id": 2, "method": "turn/interrupt", "params": params})
    ended = item("completed", "dynamicToolCall", "failed")
    written = steps(await wire.written({"id": 2, "result": {}}, ended))
    assert written == ["item/completed dynamicToolCall", "answer"]


@BOTH
async def test_the_interrupt_of_a_compaction_tells_the_tokens_so_far(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    await wire.written(STARTED, USAGE, IDLE, COMPLETED, COMPACTED[0])
    params = {"threadId": THREAD, "turnId": TURN}
    await wire.received({"id": 2, "method": "turn/interrupt", "params": params})
    written = steps(await wire.written({"id": 2, "result": {}}))
    assert written == ["thread/tokenUsage/updated", "answer"]


@pytest.mark.parametrize(
    ("release", "method", "is_refused"),
    [
        (OLDER, "thread/resume", True),
        (NEWER, "thread/resume", True),
        (OLDER, "thread/archive", True),
        (NEWER, "thread/archive", False),
    ],
)
async def test_a_thread_without_turns_is_not_stored(
    release: str, method: str, is_refused: bool
) -> None:
    wire = wire_of(release)
    await start(wire)
    request = {"id": 1, "method": method, "params": {"threadId": THREAD}}
    assert ((await wire.received(request))["method"] != method) == is_refused
    unknown = {"id": 1, "error": {"code": -32601, "message": "there is no method"}}
    (answer,) = await wire.written(unknown)
    assert answer["error"]["message"].startswith("no rollout found") == is_refused
    await wire.written(STARTED, *USER)
    assert (await wire.received({**request, "id": 2}))["method"] == method


@BOTH
async def test_the_progress_of_a_tool_of_an_mcp_server_is_not_told(release: str) -> None:
    wire = wire_of(release)
    await start(wire)
    params = {"turnId": "turn_1", "itemId": "item_2", "message": "half"}
    written = await wire.written(STARTED, note("item/mcpToolCall/progress", **params))
    assert steps(written) == ["turn/started"]


@BOTH
@pytest.mark.parametrize(
    ("message", "info", "is_told"),
    [
        ("The model reported a failure (x)", "Other", True),
        ("The model's response stream was disconnected", "ResponseStreamDisconnected", True),
        ("The model answered with HTTP status 429", "UsageLimitExceeded", True),
        ("The model answered with HTTP status 404", "Other", False),
    ],
)
async def test_limits_are_told_before_the_last_failure_of_an_answer(
    release: str, message: str, info: str, is_told: bool
) -> None:
    wire = wire_of(release)
    await start(wire)
    await wire.written(STARTED, ACTIVE)
    await wire.written(*USER)
    error = {"message": message, "agentErrorInfo": info, "additionalDetails": "d"}
    failed = note("error", turnId="turn_1", error=error, willRetry=False)
    told = [one["method"] for one in await wire.written(failed)]
    assert told == ["account/rateLimits/updated"] * is_told + ["error"]


async def test_a_steered_answer_tells_the_tokens_so_far_in_the_newer_release() -> None:
    wire = wire_of(NEWER)
    await start(wire)
    await wire.written(STARTED, USAGE, IDLE, COMPLETED, STARTED, *USER, ANSWER)
    told = [one["method"] for one in await wire.written(USER[0])]
    assert told == ["thread/tokenUsage/updated", "account/rateLimits/updated", "item/started"]
