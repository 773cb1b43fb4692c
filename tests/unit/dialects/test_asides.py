"""Notifications of a thread for connections that are not subscribed to it."""

from typing import Any

import pytest

from harness.protocol.dialects.table import DropRow, OrderRow, load_dialect
from harness.protocol.wire.thread_operations import ThreadClosedNotification
from reference_server.dialect.choice import told_to_all_of
from reference_server.dialect.transport import DialectTransport
from reference_server.envelope import ASIDE
from reference_server.outbox import Outbox
from reference_server.session.subscribers import Everyone, Subscribers
from tests.unit.dialects.test_dialect_transport import THREAD, TURN, Lines, Wire
from tests.unit.dialects.test_release_rows import BOTH, NEWER, OLDER, start, steps, wire_of
from tests.unit.dialects.test_sequence import (
    ACTIVE,
    IDLE,
    STARTED,
    methods,
    note,
)

pytestmark = pytest.mark.anyio

CLOSED = ThreadClosedNotification(thread_id="thr_1")
METHOD = "thread/closed"


def aside(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "method": ASIDE + message["method"]}


def elsewhere(message: dict[str, Any]) -> dict[str, Any]:
    """Return a notification of another thread."""
    return {**message, "params": {**message["params"], "threadId": "thr_2"}}


class Queue(Outbox):
    """An outbox that keeps the methods of what is put into it."""

    def __init__(self) -> None:
        super().__init__(Lines())
        self.lines: list[bytes] = []

    def put(self, message: bytes) -> None:
        self.lines.append(message)


def queues_of(methods: tuple[str, ...]) -> tuple[Queue, Queue, Subscribers]:
    """Return the queues of a subscriber and of another connection, and the subscribers."""
    subscriber, other = Queue(), Queue()
    subscribers = Subscribers(Everyone(lambda: [other, subscriber], methods))
    subscribers.add(subscriber)
    return subscriber, other, subscribers


def test_each_connection_gets_a_notification_once_with_and_without_a_subscription() -> None:
    subscriber, other, subscribers = queues_of((METHOD,))
    subscribers.notify(CLOSED)
    plain, marked = subscriber.lines[0], other.lines[0]
    assert marked.replace(ASIDE.encode(), b"") == plain != marked
    subscribers.add(other)
    subscribers.remove(subscriber)
    subscribers.notify(CLOSED)
    assert (subscriber.lines, other.lines) == ([plain, marked], [marked, plain])
    subscribers.remove(other)
    subscribers.notify(CLOSED)
    assert (subscriber.lines, other.lines) == ([plain, marked, marked], [marked, plain, marked])


def test_other_notifications_and_servers_without_a_dialect_reach_subscribers_alone() -> None:
    subscriber, other, subscribers = queues_of(("turn/started",))
    subscribers.notify(CLOSED)
    assert (len(subscriber.lines), other.lines) == (1, [])
    assert (told_to_all_of({}), Everyone(list).methods) == ((), ())


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (OLDER, {"thread/status/changed", "turn/started"}),
        (NEWER, {"thread/status/changed"}),
    ],
)
def test_rows_name_what_each_release_tells_all(release: str, expected: set[str]) -> None:
    assert told_to_all_of({"AGENT_DIALECT": release}) == expected


@BOTH
async def test_aside_is_in_the_words_of_the_release_and_nothing_is_added(release: str) -> None:
    wire = wire_of(release)
    asides = [aside(one) for one in (STARTED, ACTIVE, IDLE)]
    written = await wire.written(*asides)
    assert steps(written) == [
        "turn/started",
        "thread/status/changed active",
        "thread/status/changed idle",
    ]
    assert methods(written) == [one["method"].removeprefix(ASIDE) for one in asides]
    assert {one["params"]["threadId"] for one in written} == {THREAD}
    assert all(("emittedAtMs" in one) == (release == NEWER) for one in written)


async def test_aside_that_the_client_opted_out_of_is_left_out() -> None:
    wire = wire_of(NEWER)
    params = {"capabilities": {"optOutNotificationMethods": ["thread/status/changed"]}}
    await wire.received({"id": 1, "method": "initialize", "params": params})
    assert methods(await wire.written(aside(ACTIVE), aside(STARTED))) == ["turn/started"]


async def test_messages_are_exchanged_although_an_aside_stands_between_them() -> None:
    rows = (OrderRow("thread/status/changed active", "turn/started"),)
    wire = Wire(orders=rows, holds=(), notifications=(), drops=())
    written = await wire.written(STARTED, elsewhere(aside(IDLE)), ACTIVE)
    assert steps(written) == [
        "thread/status/changed active",
        "turn/started",
        "thread/status/changed idle",
    ]


async def test_a_message_is_not_dropped_because_an_aside_follows_it() -> None:
    row = DropRow(method="turn/started", before="thread/status/changed idle")
    wire = Wire(orders=(), holds=(), notifications=(), drops=(row,))
    written = await wire.written(STARTED, elsewhere(aside(IDLE)), ACTIVE)
    assert methods(written) == ["turn/started", *["thread/status/changed"] * 2]
    written = await wire.written(STARTED, elsewhere(aside(ACTIVE)), IDLE)
    assert methods(written) == ["thread/status/changed"] * 2


async def test_aside_ends_no_wait_for_the_next_message_of_a_turn() -> None:
    wire = wire_of(OLDER)
    await start(wire)
    usage = {"total": {}, "last": {}}
    item = {"type": "userMessage", "id": "item_1", "content": []}
    told = note("thread/tokenUsage/updated", turnId="turn_1", tokenUsage=usage)
    await wire.written(STARTED, ACTIVE, told)
    sent = note("item/completed", turnId="turn_1", item=item)
    failed = note("thread/status/changed", status={"type": "systemError"})
    written = await wire.written(sent, elsewhere(aside(IDLE)), failed)
    # What waits for the next message is lost with the failure, which is not that of another thread.
    assert steps(written) == [
        "item/completed userMessage",
        "thread/status/changed idle",
        "thread/status/changed systemError",
    ]


@pytest.mark.parametrize(("release", "is_told"), [(OLDER, False), (NEWER, True)])
async def test_start_of_a_compaction_is_left_out_for_others_too(
    release: str, is_told: bool
) -> None:
    wire = wire_of(release)
    await wire.received({"id": 1, "method": "thread/compact/start", "params": {"threadId": THREAD}})
    written = methods(await wire.written(aside(STARTED), aside(ACTIVE)))
    assert written == ["turn/started"] * is_told + ["thread/status/changed"]


@BOTH
async def test_others_read_of_a_turn_after_an_interrupted_one(release: str) -> None:
    wire, others = wire_of(release), Wire()
    others.edge = DialectTransport(others.lines, load_dialect(release), "/home", wire.edge.memory)
    await start(wire)
    await wire.written(STARTED, ACTIVE)
    asked = {"type": "active", "activeFlags": ["waitingOnApproval"]}
    waiting = note("thread/status/changed", status=asked)
    assert len(await others.written(aside(ACTIVE), aside(waiting))) == 2
    params = {"threadId": THREAD, "turnId": TURN}
    await wire.received({"id": 1, "method": "turn/interrupt", "params": params})
    await wire.written({"id": 1, "result": {}}, ACTIVE, IDLE)
    # The end of the question is not told, the end of the turn and the next turn are.
    assert steps(await others.written(aside(ACTIVE), aside(IDLE))) == ["thread/status/changed idle"]
    assert steps(await others.written(aside(ACTIVE))) == ["thread/status/changed active"]


@pytest.mark.parametrize("method", ["thread/start", "thread/fork"])
async def test_thread_of_another_client_is_idle_before_it_is_started(method: str) -> None:
    wire = wire_of(OLDER)
    thread = {"id": "thr_1", "cwd": "/w", "updatedAt": 1, "status": {"type": "idle"}}
    started = {"method": "thread/started", "params": {"thread": thread}}
    told = ["thread/status/changed idle", "thread/started"]
    others = {**started, "params": {"thread": {**thread, "id": "thr_2"}}}
    assert steps(await wire.written(others)) == told
    params = {"threadId": "thr_9"} if method == "thread/fork" else {}
    await wire.received({"id": 1, "method": method, "params": params})
    answer = {"id": 1, "result": {"model": "gpt-5.5", "cwd": "/w", "thread": thread}}
    # The status of a thread of its own is told before the answer, and once.
    written = steps(await wire.written(answer, started))
    assert written == ["thread/status/changed idle", "answer", "thread/started"]
