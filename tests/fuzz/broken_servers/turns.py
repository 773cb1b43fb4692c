"""Bugs within turns: outputs, approvals, steering, interrupts, patches."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import swap
from tests.fuzz.broken_servers.planting import noticed
from tests.fuzz.broken_servers.registry import broken

TURN = "reference_server.engine.turn:ActiveTurn"
CALLS = "reference_server.engine.tool_provider:TurnCalls"
COMMAND = "reference_server.engine.work_items:CommandWork"
PATCH = "reference_server.engine.tools.patch:_PatchRun"


@broken(tells="item.completed-last")
def output_of_the_second_call_goes_to_the_first() -> None:
    """After a retry, output of the second of two commands is streamed as output of the first.

    Sequence: the model's stream breaks off, the server retries, and the new answer, or a later one
    of the turn, has two commands.
    Breaks "Item lifecycle": deltas of an item come before its item/completed, which is last.
    """
    from harness.protocol.wire.item_events import CommandExecutionOutputDeltaNotification
    from reference_server.deltas import DeltaLine

    def tell_retry(original: Any) -> Any:
        def changed(turn: Any, *about: Any) -> None:
            turn.log.tried_again = True
            original(turn, *about)

        return changed

    def carry_out(original: Any) -> Any:
        async def changed(calls: Any, *about: Any) -> None:
            calls._log.first_command = None
            await original(calls, *about)

        return changed

    def began(original: Any) -> Any:
        def changed(work: Any, log: Any, *about: Any) -> None:
            original(work, log, *about)
            if not getattr(log, "tried_again", False):
                return
            first = getattr(log, "first_command", None)
            if first is None:
                log.first_command = work.item.id
            else:
                work._line = DeltaLine(
                    CommandExecutionOutputDeltaNotification(
                        thread_id=log.thread.id, turn_id=log.turn_id, item_id=first, delta=""
                    )
                )

        return changed

    swap(f"{TURN}.tell_retry", tell_retry)
    swap(f"{CALLS}.carry_out", carry_out)
    swap(f"{COMMAND}.__init__", began)


@broken(tells="turn.completes")
def answer_after_a_steer_settles_another_question() -> None:
    """A response that a client sends right after turn/steer resolves its other open approval.

    Sequence: turns of two threads wait for an approval each; the client steers one of the turns,
    and answers one approval request before it sends another request.
    Breaks "Approval sequence": the client answers a request by its id, and only then the work of
    that request goes on.
    """
    last: dict[int, str] = {}

    def notice(connection: Any, request: Any) -> None:
        last[id(connection.outbox)] = request.method

    def take(original: Any) -> Any:
        def changed(requests: Any, request_id: Any, answer: Any, sender: Any) -> None:
            if last.pop(id(sender), "") == "turn/steer":
                others = [
                    one
                    for one, question in requests._open.items()
                    if one != request_id and question.subscribers.has(sender)
                ]
                if request_id in requests._open and others:
                    request_id = others[0]
            original(requests, request_id, answer, sender)

        return changed

    noticed(notice)
    swap("reference_server.session.server_requests:ServerRequests.take_answer", take)


@broken(tells="item.completed-once")
def reconnect_in_a_patch_tells_its_diff_twice() -> None:
    """A client that reconnects during a patch's approval gets item/completed and the diff twice.

    Sequence: the client gets an approval request for a file change, and disconnects; a new
    connection resumes the thread and accepts, or declines.
    Breaks "Item lifecycle" (item/completed carries the final item, once) and "Events"
    (turn/diff/updated after every fileChange item).
    """
    from harness.protocol.wire.item_events import ItemCompletedNotification
    from reference_server.envelope import encode_notification

    def complete(original: Any) -> Any:
        async def changed(run: Any, status: Any) -> None:
            before = run.asked
            await original(run, status)
            context = run._context
            left = [one for one in before if not context.thread.subscribers.has(one)]
            for outbox in context.thread.subscribers.outboxes:
                if left and outbox not in before:
                    outbox.put(
                        encode_notification(
                            "item/completed",
                            ItemCompletedNotification(
                                thread_id=context.thread.id,
                                turn_id=context.log.turn_id,
                                item=run._work.item,
                            ),
                        )
                    )

        return changed

    def began(original: Any) -> Any:
        def changed(run: Any, context: Any, *about: Any) -> None:
            original(run, context, *about)
            run.asked = context.thread.subscribers.outboxes

        return changed

    swap(f"{PATCH}.__init__", began)
    swap(f"{PATCH}._complete", complete)


@broken(tells="turn.started-announced")
def interrupt_of_a_steered_turn_eats_the_next() -> None:
    """An interrupt of a turn with pending steered input also drops the next turn.

    Sequence: a turn runs a tool call (it waits for an approval, or a command runs); the client
    steers it, and interrupts it before the next model call; then it starts another turn.
    Breaks "turn/start": turn/started is emitted, and every turn ends with turn/completed.
    """

    def end(original: Any) -> Any:
        def changed(turn: Any, error: Any) -> None:
            if turn.is_interrupted and turn._steering.has_waiting and turn._calls._unanswered:
                turn.thread.eats = True
            original(turn, error)

        return changed

    def run(original: Any) -> Any:
        def changed(engine: Any, thread: Any, turn: Any) -> None:
            if getattr(thread, "eats", False):
                thread.eats = False
                thread.turn = None
                return
            original(engine, thread, turn)

        return changed

    swap(f"{TURN}._end", end)
    swap("reference_server.engine.start:Engine.run", run)


@broken(tells="approval.session-remembered")
def interrupt_forgets_what_its_turn_accepted() -> None:
    """A command accepted for the session needs an approval again if its turn is interrupted later.

    Sequence: a command is accepted with acceptForSession, its turn is interrupted, and the same
    command comes in the next turn.
    Breaks "Approval sequence": acceptForSession approves, and caches for the session.
    """

    def begin(original: Any) -> Any:
        def changed(turn: Any) -> None:
            turn.accepted = set(turn.thread.consents._commands)
            original(turn)

        return changed

    def end(original: Any) -> Any:
        def changed(turn: Any, error: Any) -> None:
            original(turn, error)
            if turn.is_interrupted:
                turn.thread.consents._commands = turn.accepted

        return changed

    swap(f"{TURN}._begin", begin)
    swap(f"{TURN}._end", end)
