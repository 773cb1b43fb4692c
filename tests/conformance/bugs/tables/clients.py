"""Bugs about several clients of one server: missing reports, and clients that block others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.conformance.bugs.planting import (
    Message,
    items,
    received,
    replied,
    sent_to,
    swap,
    untold,
)
from tests.conformance.bugs.registry import bug

END = "turn/completed"


def _is_read(message: Message) -> bool:
    """Return True if a message answers a thread/read."""
    result = message.get("result", {})
    return "thread" in result and "model" not in result


def _kept_from(method: str, *, first: int) -> None:
    """Drop a notification to the clients from this number on."""

    def edit(number: int, message: Message) -> list[Message]:
        return [] if number >= first and message.get("method") == method else [message]

    sent_to(edit)


@bug(reds={"clients/both-hear-the-turn": "delta.rebuilds-reply"})
def another_client_misses_the_first_delta() -> None:
    """The first delta of a message is sent to the first client only."""
    begun: set[str] = set()

    def edit(number: int, message: Message) -> list[Message]:
        if number == 1 or message.get("method") != "item/agentMessage/delta":
            return [message]
        item = message["params"]["itemId"]
        missed = item not in begun
        begun.add(item)
        return [] if missed else [message]

    sent_to(edit)


@bug(reds={"clients/same-request-ids": "request.answered"})
def of_two_equal_ids_one_is_answered() -> None:
    """A thread/read is not answered whose id another client has used for one."""
    used: dict[Any, int] = {}

    def edit(number: int, message: Message) -> list[Message]:
        if not _is_read(message):
            return [message]
        return [message] if used.setdefault(message["id"], number) == number else []

    sent_to(edit)


@bug(
    reds={
        "clients/either-may-accept": "clients.answer-carried-out",
        "clients/either-accepts-a-patch": "clients.answer-carried-out",
    }
)
def what_a_client_accepts_is_declined() -> None:
    """An item that one of several clients accepts ends as declined."""

    def change(moment: str, item: Message) -> None:
        if moment == "completed":
            item["status"] = "declined"

    items("commandExecution", change)
    items("fileChange", change)


@bug(reds={"clients/declined-by-either": "clients.answer-carried-out"})
def what_a_client_declines_is_completed() -> None:
    """An item that one of several clients declines ends as completed."""

    def change(moment: str, item: Message) -> None:
        if moment == "completed":
            item["status"] = "completed"

    items("commandExecution", change)


@bug(reds={"clients/answers-differ": "clients.same-item"})
def each_client_is_told_that_its_answer_counted() -> None:
    """A command is reported as completed to the first client, as declined to all others."""

    def edit(number: int, message: Message) -> list[Message]:
        item = message.get("params", {}).get("item", {})
        if message.get("method") == "item/completed" and item["type"] == "commandExecution":
            item["status"] = "completed" if number == 1 else "declined"
        return [message]

    sent_to(edit)


@bug(
    reds={
        "clients/interrupted-by-another": "clients.same-end",
        "clients/cancelled-by-either": "clients.same-end",
    }
)
def the_first_client_is_told_of_no_interrupt() -> None:
    """An interrupted turn is reported to the first client as completed."""

    def edit(number: int, message: Message) -> list[Message]:
        if number == 1 and message.get("method") == END:
            message["params"]["turn"]["status"] = "completed"
        return [message]

    sent_to(edit)


@bug(reds={"clients/steered-by-another": "steer.names-turn"})
def who_did_not_begin_a_turn_steers_another() -> None:
    """A turn/steer of another client than the first is answered with an unknown turn."""

    def edit(number: int, message: Message) -> list[Message]:
        if number > 1 and "turnId" in message.get("result", {}):
            message["result"]["turnId"] = "turn_77"
        return [message]

    sent_to(edit)


@bug(reds={"clients/two-start-at-once": "request.answered"})
def who_comes_second_is_not_answered() -> None:
    """The second of two turn/start at once is rejected without an answer."""
    sent_to(lambda _, message: [] if "error" in message else [message])


@bug(
    reds={
        "clients/starter-leaves": "scenario.timeout: the end of turn v",
        "clients/watcher-leaves": "scenario.timeout: the end of turn v",
        "clients/unsubscribed-mid-turn": "scenario.timeout: the end of turn v",
    }
)
def a_turn_has_no_end_once_a_client_left() -> None:
    """The end of a turn is not reported to the remaining clients if another one left during it."""
    left: list[str] = []

    def receive(method: str, message: Message) -> Message:
        if method == "thread/unsubscribe":
            left.append(method)
        return message

    def unsubscribe(original: Any) -> Any:
        def changed(server: Any, connection: Any) -> None:
            left.append("gone")
            original(server, connection)

        return changed

    received(receive)
    swap("reference_server.server:Server._unsubscribe", unsubscribe)
    sent_to(lambda _, message: [] if left and message.get("method") == END else [message])


@bug(reds={"clients/all-leave": "request.answered"})
def a_thread_that_all_have_left_cannot_be_read() -> None:
    """A thread/read is not answered once two clients have disconnected."""
    left: list[Any] = []

    def unsubscribe(original: Any) -> Any:
        def changed(server: Any, connection: Any) -> None:
            left.append(connection)
            original(server, connection)

        return changed

    swap("reference_server.server:Server._unsubscribe", unsubscribe)
    sent_to(lambda _, message: [] if len(left) > 1 and _is_read(message) else [message])


@bug(reds={"clients/both-unsubscribe": "loading.closed-told"})
def the_last_of_two_clients_leaves_in_silence() -> None:
    """A thread that the second of two clients leaves is not reported as closed."""
    untold("thread/closed")


@bug(reds={"clients/started-by-a-stranger": "turn.started-announced"})
def a_thread_that_nobody_follows_runs_a_turn_unheard() -> None:
    """A thread stays loaded without subscribers, and its next turn is not reported to a client."""

    def unload(_: Any) -> Any:
        async def changed(threads: Any, thread: Any) -> None:
            await thread.end_turn()

        return changed

    swap("reference_server.session.registry:Threads.unload", unload)


@bug(reds={"clients/archived-by-another": "archive.told", "clients/named-by-another": "name.told"})
def what_another_client_does_is_not_told() -> None:
    """The archiving or naming of a thread is not reported to any client."""

    def edit(_: int, message: Message) -> list[Message]:
        news = message.get("method") in ("thread/archived", "thread/name/updated")
        return [] if news else [message]

    sent_to(edit)


@bug(reds={"clients/rolled-back-by-another": "rollback.drops"})
def a_rollback_by_another_client_drops_nothing() -> None:
    """A thread/rollback returns the turn that it was to drop."""
    ended: list[Message] = []

    def edit(_: int, message: Message) -> list[Message]:
        if message.get("method") == END:
            ended.append(message["params"]["turn"])
        return [message]

    sent_to(edit)
    replied("thread/rollback", lambda result: result["thread"]["turns"].append(ended[-1]))


@bug(reds={"clients/many-clients": "turn.completes"})
def the_fifth_client_is_told_no_end() -> None:
    """The end of a turn is reported to at most four clients."""
    _kept_from(END, first=5)


@bug(reds={"clients/resumed-before-its-first-message": "turn.completes"})
def who_comes_before_the_first_message_is_told_no_end() -> None:
    """The end of a turn is reported to the first client only."""
    _kept_from(END, first=2)


@bug(reds={"clients/silent-client": "scenario.timeout: the end of turn u"})
def a_second_client_has_to_speak_first() -> None:
    """The end of a turn is not reported while one client has not sent a request."""
    seen: set[int] = set()

    def edit(number: int, message: Message) -> list[Message]:
        seen.add(number)
        return [] if len(seen) > 1 and message.get("method") == END else [message]

    sent_to(edit)


@bug(reds={"clients/two-threads-at-once": "turn.completes"})
def turns_of_two_clients_are_mixed_up() -> None:
    """The end of a turn is reported to another client under the thread of the first."""
    threads: list[str] = []

    def edit(number: int, message: Message) -> list[Message]:
        params = message.get("params", {})
        if message.get("method") == "thread/started":
            threads.append(params["thread"]["id"])
        if number > 1 and message.get("method") == END:
            params["threadId"] = threads[0]
        return [message]

    sent_to(edit)


@bug(reds={"clients/slow-client": "delta.rebuilds-reply"})
def who_reads_late_misses_a_delta() -> None:
    """The fourth delta of a message is sent to the first client only."""
    count = 0

    def edit(number: int, message: Message) -> list[Message]:
        nonlocal count
        late = number > 1 and message.get("method") == "item/agentMessage/delta"
        count += late
        return [] if late and count == 4 else [message]

    sent_to(edit)


@bug(reds={"clients/slow-client-of-much-output": "scenario.timeout: the end of turn v"})
def all_wait_for_the_slowest_client() -> None:
    """A turn goes at the pace of its slowest reader."""

    def room(_: Any) -> Any:
        async def changed(subscribers: Any) -> None:
            for outbox in subscribers.outboxes:
                await outbox.wait_for_room()

        return changed

    swap("reference_server.session.subscribers:Subscribers.wait_for_room", room)


@bug(reds={"clients/joined-while-asked": "scenario.timeout: the end of turn v"})
def who_comes_in_while_another_is_asked_stops_the_turn() -> None:
    """The end of a turn is not reported once another client has resumed its thread during it."""
    asked: set[int] = set()

    def edit(number: int, message: Message) -> list[Message]:
        method = message.get("method", "")
        if method.endswith("/requestApproval"):
            asked.add(number)
        return [] if method == END and len(asked) > 1 else [message]

    sent_to(edit)


@bug(reds={"clients/asked-client-leaves": "scenario.timeout: the end of turn v"})
def a_question_outlives_who_was_asked() -> None:
    """The end of a turn is not reported once a client with an approval request has disconnected."""
    asked: set[int] = set()
    left: list[Any] = []

    def unsubscribe(original: Any) -> Any:
        def changed(server: Any, connection: Any) -> None:
            left.append(connection)
            original(server, connection)

        return changed

    def edit(number: int, message: Message) -> list[Message]:
        method = message.get("method", "")
        if method.endswith("/requestApproval"):
            asked.add(number)
        return [] if method == END and asked and left else [message]

    # The question comes at once, as from a server whose tools are there.
    import_module("reference_server.engine.tools.standard")
    swap("reference_server.server:Server._unsubscribe", unsubscribe)
    sent_to(edit)
