"""Bugs about interrupts: missing effects, wrong ends, actions that go on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.conformance.bugs.planting import Message, items, received, sent, swap
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.approvals import asked, run_at_once
from tests.conformance.bugs.tables.turns import TURN, ends

HANDLER = "reference_server.handlers.turn"


def refuses_the_next_turn(after: Any) -> None:
    """Refuse a turn/start on a thread whose last turn is one that `after` picks."""

    def run(original: Any) -> Any:
        async def changed(turn: Any) -> None:
            await original(turn)
            turn.thread.is_stuck = after(turn)

        return changed

    def check(original: Any) -> Any:
        def idle(thread: Any) -> None:
            from reference_server.refusal import invalid_request

            original(thread)
            if getattr(thread, "is_stuck", False):
                raise invalid_request("the thread is not ready")

        return idle

    swap(f"{TURN}:ActiveTurn.run", run)
    swap("reference_server.engine.start:check_idle", check)


@bug(reds={"interrupts/after-the-end": "turn.completed-once"})
def a_turn_that_has_ended_is_interrupted() -> None:
    """An interrupt that comes when its turn has ended ends it once more."""
    ended: dict[str, Message] = {}
    late: dict[Any, Message] = {}

    def receive(method: str, message: Message) -> Message:
        if method == "turn/interrupt" and message["params"]["turnId"] in ended:
            late[message["id"]] = ended[message["params"]["turnId"]]
        return message

    def edit(method: str, message: Message) -> list[Message]:
        if method == "turn/completed":
            ended[message["params"]["turn"]["id"]] = message
        if method == "error:turn/interrupt" and message["id"] in late:
            return [message, late[message["id"]]]
        return [message]

    received(receive)
    sent(edit)


@bug(
    reds={
        "interrupts/another-turn": "request.answered",
        "interrupts/no-turn-id": "request.answered",
    }
)
def an_interrupt_that_names_another_turn_is_not_answered() -> None:
    """An interrupt that fits no turn of its thread gets no answer."""

    def edit(method: str, message: Message) -> list[Message]:
        return [] if method == "error:turn/interrupt" else [message]

    sent(edit)


@bug(reds={"interrupts/no-such-thread": "scenario.expectation: ended as interrupted"})
def any_turn_of_the_id_is_interrupted() -> None:
    """An interrupt ends the turn of its id on any thread."""
    thread_of: dict[str, str] = {}

    def edit(method: str, message: Message) -> list[Message]:
        if method == "turn/started":
            params = message["params"]
            thread_of[params["turn"]["id"]] = params["threadId"]
        return [message]

    def receive(method: str, message: Message) -> Message:
        if method == "turn/interrupt":
            params = message["params"]
            params["threadId"] = thread_of[params["turnId"]]
        return message

    sent(edit)
    received(receive)


@bug(reds={"interrupts/before-a-retry": "scenario.timeout: step wait"})
def an_interrupt_ends_the_pause_before_a_retry() -> None:
    """A turn that is interrupted in the pause before a retry goes on with the retry."""

    def interrupt(original: Any) -> Any:
        def only_the_pause(turn: Any) -> None:
            if turn.is_pausing:
                turn._interrupted.set()
                turn._interrupted = type(turn._interrupted)()
            else:
                original(turn)

        return only_the_pause

    def tell(original: Any) -> Any:
        def pausing(turn: Any, *failure: Any) -> None:
            type(turn).is_pausing = True
            original(turn, *failure)

        return pausing

    swap(f"{TURN}:ActiveTurn.interrupt", interrupt)
    swap(f"{TURN}:ActiveTurn.tell_retry", tell)


@bug(reds={"interrupts/during-a-command": "scenario.expectation: the thread is not ready"})
def a_thread_whose_command_was_interrupted_is_stuck() -> None:
    """No turn can begin where one was interrupted while it ran a command."""
    refuses_the_next_turn(lambda turn: turn.is_interrupted and turn._calls._unanswered == [])


@bug(reds={"interrupts/twice": "turn.completed-once"})
def each_interrupt_ends_the_turn() -> None:
    """A turn ends as often as it was interrupted."""
    wanted, told = Counter[str](), Counter[str]()
    final: dict[str, Message] = {}

    def receive(method: str, message: Message) -> Message:
        if method == "turn/interrupt":
            wanted[message["params"]["turnId"]] += 1
        return message

    def edit(method: str, message: Message) -> list[Message]:
        if method == "turn/completed":
            turn = message["params"]["turn"]["id"]
            final[turn], told[turn] = message, 1
        # The second interrupt may come when the end is told already.
        late = [turn for turn in final for _ in range(wanted[turn] - told[turn])]
        told.update(late)
        return [message, *(final[turn] for turn in late)]

    received(receive)
    sent(edit)


@bug(reds={"interrupts/during-a-file-approval": "scenario.expectation: made.txt exists"})
def an_interrupted_question_about_files_is_a_yes() -> None:
    """A file change whose approval is open when its turn is interrupted is made."""
    from reference_server.patch.apply import apply_plan

    def complete(original: Any) -> Any:
        async def made(patch: Any, status: Any) -> None:
            apply_plan(patch._plan, None)
            await original(patch, status)

        return made

    swap("reference_server.engine.tools.patch:_PatchRun._complete", complete)


@bug(reds={"interrupts/during-an-approval": "scenario.expectation: made.txt exists"})
def an_interrupted_question_about_a_command_is_a_yes() -> None:
    """A command whose approval is open when its turn is interrupted runs."""
    questions: dict[Any, Message] = {}
    asked(questions.__setitem__)

    def edit(method: str, message: Message) -> list[Message]:
        if method == "serverRequest/resolved":
            run_at_once(questions[message["params"]["requestId"]])
        return [message]

    sent(edit)


@bug(
    reds={
        "interrupts/during-compaction": "scenario.expectation: the thread is not ready",
        "compaction/automatic-interrupted": "scenario.expectation: the thread is not ready",
    }
)
def a_thread_whose_compaction_was_interrupted_is_stuck() -> None:
    """No turn can begin where a compaction was interrupted."""
    refuses_the_next_turn(lambda turn: turn.is_interrupted)


@bug(reds={"interrupts/during-reasoning": "turn.interrupt-ends-interrupted"})
def an_interrupted_thought_is_a_failure() -> None:
    """A turn that is interrupted while the model thinks ends as failed."""
    thinking: set[str] = set()
    items("reasoning", lambda _, item: thinking.add(item["id"]))
    error = {"message": "cut short", "agentErrorInfo": "Other", "additionalDetails": ""}
    ends(lambda turn: turn.update(status="failed", error=error) if thinking else None)


@bug(reds={"interrupts/right-after-the-start": "turn.interrupt-ends-interrupted"})
def an_interrupt_before_the_first_item_is_forgotten() -> None:
    """An interrupt before the first output of the model is accepted, but has no effect."""

    def interrupt(original: Any) -> Any:
        def late(turn: Any) -> None:
            if turn._sampling._open:
                original(turn)

        return late

    swap(f"{TURN}:ActiveTurn.interrupt", interrupt)
