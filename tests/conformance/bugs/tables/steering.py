"""Bugs about input added to a running turn."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import Message, received, sent, swap
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.interrupts import refuses_the_next_turn
from tests.conformance.bugs.tables.turns import TURN

STEERING = "reference_server.engine.steering:Steering"


def forgets(when: Any) -> None:
    """Drop added input before it joins the conversation if `when(steering)` is true."""

    def join(original: Any) -> Any:
        def changed(steering: Any) -> None:
            if when(steering):
                steering._waiting = []
            original(steering)

        return changed

    swap(f"{STEERING}.join", join)


@bug(
    reds={
        "steering/at-its-end": "steer.input-arrives",
        "steering/while-it-speaks": "steer.input-arrives",
    }
)
def what_is_added_while_the_last_message_streams_is_dropped() -> None:
    """Input added during the last answer of a turn is dropped."""

    def keep(original: Any) -> Any:
        def changed(turn: Any, answer: Any) -> None:
            if not answer.calls:
                turn._steering._waiting = []
            original(turn, answer)

        return changed

    swap(f"{TURN}:ActiveTurn._keep", keep)


@bug(reds={"steering/before-a-retry": "steer.input-arrives"})
def what_is_added_in_a_pause_is_forgotten() -> None:
    """Input added during the pause before a retry is accepted, but never sent to the model."""

    def tell(original: Any) -> Any:
        def changed(turn: Any, *failure: Any) -> None:
            turn._steering.is_deaf = True
            original(turn, *failure)

        return changed

    def accept(original: Any) -> Any:
        def changed(steering: Any, *given: Any) -> Any:
            answer = original(steering, *given)
            if getattr(steering, "is_deaf", False):
                steering._waiting = []
            return answer

        return changed

    swap(f"{TURN}:ActiveTurn.tell_retry", tell)
    swap(f"{STEERING}.accept", accept)


@bug(reds={"steering/during-a-command": "steer.input-arrives"})
def what_is_added_while_a_command_runs_is_forgotten() -> None:
    """Input added while a command runs is lost when the command ends."""

    def carry_out(original: Any) -> Any:
        async def changed(toolbox: Any, call: Any, scene: Any, *other: Any) -> Message:
            answer: Message = await original(toolbox, call, scene, *other)
            scene.thread.turn._steering._waiting = []
            return answer

        return changed

    swap("reference_server.engine.tools.toolbox:Toolbox.carry_out", carry_out)


@bug(reds={"steering/during-an-approval": "scenario.expectation: declined"})
def what_is_added_answers_the_question() -> None:
    """A question that is open when something is added is taken for declined."""

    def steer(original: Any) -> Any:
        def changed(turn: Any, content: Any, words: Message) -> Any:
            for question in turn._support.tools._server_requests._open.values():
                question.answer = {"result": {"decision": "decline"}}
                question.answered.set()
            return original(turn, content, words)

        return changed

    swap(f"{TURN}:ActiveTurn.steer", steer)


@bug(reds={"steering/every-kind-of-input": "scenario.expectation: turn/steer was answered"})
def only_texts_can_be_added() -> None:
    """Input that is more than text is refused where it is added to a turn."""

    def receive(method: str, message: Message) -> Message:
        if method == "turn/steer" and len(message["params"]["input"]) > 1:
            message["params"]["input"] = []
        return message

    received(receive)


@bug(reds={"steering/refused": "steer.precondition"})
def the_expected_turn_is_not_looked_at() -> None:
    """Input is added to the active turn of its thread, even if another turn was expected."""
    active: dict[str, str] = {}

    def edit(method: str, message: Message) -> list[Message]:
        if method == "turn/started":
            active[message["params"]["threadId"]] = message["params"]["turn"]["id"]
        return [message]

    def receive(method: str, message: Message) -> Message:
        if method == "turn/steer":
            params = message["params"]
            params["expectedTurnId"] = active.get(params["threadId"], "")
        return message

    sent(edit)
    received(receive)


@bug(reds={"steering/right-after-the-start": "steer.input-arrives"})
def what_is_added_before_the_first_item_is_forgotten() -> None:
    """Input added right after the answer to turn/start is accepted, but never sent to the model."""

    def accept(original: Any) -> Any:
        def changed(steering: Any, *given: Any) -> Any:
            tell = original(steering, *given)
            steering._waiting = []
            return tell

        return changed

    swap(f"{STEERING}.accept", accept)


@bug(reds={"steering/several-at-once": "steer.input-arrives"})
def of_several_additions_the_last_is_heard() -> None:
    """Added input replaces earlier input that was not yet sent to the model."""

    def accept(original: Any) -> Any:
        def changed(steering: Any, *given: Any) -> Any:
            steering._waiting = []
            return original(steering, *given)

        return changed

    swap(f"{STEERING}.accept", accept)


@bug(reds={"steering/then-interrupted": "scenario.expectation: the thread is not ready"})
def a_thread_with_input_that_was_not_heard_is_stuck() -> None:
    """A thread is stuck if its turn was interrupted before added input was sent to the model."""
    refuses_the_next_turn(lambda turn: turn.is_interrupted and turn._steered_bytes > 0)


@bug(reds={"steering/then-killed": "scenario.expectation: thread/read was answered by an error"})
def input_that_was_not_heard_cannot_be_read_back() -> None:
    """A thread that was killed after something was added is not found again."""

    def read(original: Any) -> Any:
        def changed(reader: Any, *others: Any, **more: Any) -> Any:
            if '"steered"' in reader._path.read_text():
                raise OSError("this cannot be read")
            return original(reader, *others, **more)

        return changed

    swap("reference_server.rollout.reader:RolloutReader.read", read)
