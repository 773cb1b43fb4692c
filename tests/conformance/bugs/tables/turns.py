"""Bugs about turns: their start and end, settings, messages, and results of thread/read."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.bugs.planting import (
    Message,
    instead,
    received,
    replied,
    sent,
    swap,
    told,
    untold,
)
from tests.conformance.bugs.registry import bug

TURN = "reference_server.engine.turn"


def ends(change: Any) -> None:
    """Change the turn in every turn/completed, in place."""
    told("turn/completed", lambda params: change(params["turn"]))


@bug(reds={"turns/plain-turn": "turn.started-announced"})
def the_start_of_a_turn_is_not_told() -> None:
    """A turn begins with its items."""
    untold("turn/started")


@bug(reds={"turns/bare-thread": "thread.cwd-captured"})
def the_folder_of_a_thread_is_where_the_server_is() -> None:
    """A thread/read shows the root as the folder of every thread."""
    replied("thread/read", lambda result: result["thread"].update(cwd="/"))


@bug(reds={"turns/interrupt-at-gate": "scenario.expectation: v"})
def a_thread_is_finished_once_it_was_interrupted() -> None:
    """The next turn of a thread whose turn was interrupted is interrupted, too."""

    def run(original: Any) -> Any:
        async def changed(turn: Any) -> None:
            if getattr(turn.thread, "was_interrupted", False):
                turn.interrupt()
            await original(turn)
            turn.thread.was_interrupted = turn.is_interrupted

        return changed

    swap(f"{TURN}:ActiveTurn.run", run)


@bug(
    reds={
        "plans/interrupted": "turn.interrupt-ends-interrupted",
        "turns/interrupt-mid-text": "turn.interrupt-ends-interrupted",
    }
)
def an_interrupted_reply_is_a_complete_one() -> None:
    """A turn that is interrupted while the model speaks ends as completed."""
    ends(lambda turn: turn.update(status="completed"))


@bug(
    reds={
        "turns/many-deltas": "delta.rebuilds-reply",
        "reported/unread-deltas": "delta.rebuilds-reply",
    }
)
def one_delta_in_a_hundred_is_lost() -> None:
    """The hundredth delta of a message is not sent."""
    count = 0

    def edit(method: str, message: Message) -> list[Message]:
        nonlocal count
        if method == "item/agentMessage/delta":
            count += 1
            if count % 100 == 0:
                return []
        return [message]

    sent(edit)


@bug(reds={"turns/overrides": "model.schema-this-turn"})
def the_schema_of_a_turn_lasts() -> None:
    """The outputSchema of a turn holds for the turns after it."""

    def receive(method: str, message: Message) -> Message:
        if method == "turn/start":
            schema = message["params"].get("outputSchema")
            kept.update({"outputSchema": schema} if schema else {})
            message["params"] |= kept
        return message

    kept: Message = {}
    received(receive)
    # So that what is about the schema is all that is seen.
    instead(f"{TURN}:ActiveTurn._is_final", _final)


async def _final(turn: Any, answer: Any) -> bool:
    return True


@bug(reds={"turns/personality": "scenario.expectation: answered by an error"})
def a_personality_is_not_known() -> None:
    """A thread/start that names a personality is refused."""

    def receive(method: str, message: Message) -> Message:
        if method == "thread/start" and "personality" in message["params"]:
            message["params"]["personality"] = 7
        return message

    received(receive)


@bug(reds={"turns/phases": "scenario.expectation: Let me see."})
def all_that_the_model_says_in_an_answer_is_one_message() -> None:
    """The messages of one answer are reported as one agentMessage."""

    def message(original: Any) -> Any:
        def first(sampling: Any, phase: Any) -> Any:
            sampling.reply = getattr(sampling, "reply", None) or original(sampling, phase)
            return sampling.reply

        return first

    def end(_: Any) -> Any:
        def wait(sampling: Any, message: Any, whole: str, phase: Any) -> None:
            sampling.result.texts.append(whole)

        return wait

    swap("reference_server.engine.sampling:Sampling._new_message", message)
    swap("reference_server.engine.sampling:Sampling._end_message", end)


@bug(reds={"turns/plan-item": "scenario.expectation: plan"})
def a_proposed_plan_is_part_of_the_message() -> None:
    """The text of a plan that the model proposes is reported as a message."""
    from reference_server.engine.plan_text import Side

    def feed(original: Any) -> Any:
        def changed(splitter: Any, *text: str) -> Any:
            return [(Side.ANSWER, piece) for _, piece in original(splitter, *text)]

        return changed

    swap("reference_server.engine.plan_text:PlanSplitter.feed", feed)
    swap("reference_server.engine.plan_text:PlanSplitter.finish", feed)


@bug(reds={"turns/read-while-active": "status.read-matches-turns"})
def a_thread_that_is_read_is_idle() -> None:
    """A thread/read says idle of a thread with an active turn."""
    replied("thread/read", lambda result: result["thread"].update(status={"type": "idle"}))


@bug(reds={"turns/reasoning-raw": "delta.reasoning-content"})
def all_raw_reasoning_is_the_first_block() -> None:
    """The deltas of raw reasoning all have the index 0."""
    told("item/reasoning/textDelta", lambda params: params.update(contentIndex=0))


@bug(reds={"turns/reasoning": "delta.reasoning-summary"})
def all_reasoning_is_the_first_part() -> None:
    """The deltas of a reasoning summary all have the index 0."""
    told("item/reasoning/summaryTextDelta", lambda params: params.update(summaryIndex=0))


@bug(reds={"turns/sandbox-of-the-turn": "scenario.expectation: made.txt is absent"})
def the_sandbox_of_a_turn_is_not_heeded() -> None:
    """A turn runs in the sandbox of its thread instead of that of its own sandboxPolicy."""

    def receive(method: str, message: Message) -> Message:
        if method == "turn/start":
            message["params"].pop("sandboxPolicy", None)
        return message

    received(receive)


@bug(reds={"turns/sandbox-policies": "turn.sandbox-policy-taken"})
def the_sandbox_of_somebody_else_is_refused() -> None:
    """A turn/start with an externalSandbox is refused."""

    def receive(method: str, message: Message) -> Message:
        if method == "turn/start":
            policy = message["params"].get("sandboxPolicy", {})
            if policy.get("type") == "externalSandbox":
                policy["networkAccess"] = 1
        return message

    received(receive)


@bug(reds={"turns/schema-unmet": "scenario.expectation: call 3"})
def an_answer_that_does_not_fit_is_asked_for_again_and_again() -> None:
    """The model is called a dozen times if its answer does not fit the schema."""

    async def final(turn: Any, answer: Any) -> bool:
        turn.tries = getattr(turn, "tries", 0) + 1
        return turn.tries > 12

    instead(f"{TURN}:ActiveTurn._is_final", final)


@bug(reds={"turns/second-start": "request.answered"})
def a_turn_that_cannot_begin_is_not_refused() -> None:
    """A turn/start while a turn runs gets no answer."""

    def edit(method: str, message: Message) -> list[Message]:
        return [] if method == "error:turn/start" else [message]

    sent(edit)


@bug(reds={"turns/two-threads": "thread.ids-unique"})
def every_thread_is_the_first() -> None:
    """The second thread is reported with the id of the first."""

    def edit(method: str, message: Message) -> list[Message]:
        return [json.loads(json.dumps(message).replace('"thr_2"', '"thr_1"'))]

    sent(edit)


@bug(reds={"turns/two-turns": "read.stored-equals-live"})
def a_turn_that_is_read_has_the_items_of_the_one_before() -> None:
    """A thread/read shows the items of all turns so far in each turn."""

    def pile_up(result: Message) -> None:
        so_far: list[Message] = []
        for turn in result["thread"]["turns"]:
            so_far = [*so_far, *turn["items"]]
            turn["items"] = so_far

    replied("thread/read", pile_up)


@bug(reds={"turns/usage": "turn.usage-told"})
def what_a_turn_costs_is_not_told() -> None:
    """The token usage of a turn is not reported."""
    untold("thread/tokenUsage/updated")


@bug(reds={"plans/changed-twice": "turn.plan-told"})
def a_plan_without_an_explanation_is_not_told() -> None:
    """A change of the plan without an explanation is not reported."""
    untold("turn/plan/updated", lambda params: not params.get("explanation"))


@bug(reds={"plans/four-in-one-answer": "turn.plan-told"})
def a_plan_of_which_nothing_is_left_to_do_is_not_told() -> None:
    """A plan whose steps are all completed is kept from the client."""

    def is_done(params: Any) -> bool:
        return all(step["status"] == "completed" for step in params["plan"])

    untold("turn/plan/updated", lambda params: len(params["plan"]) > 1 and is_done(params))


@bug(reds={"plans/emptied": "turn.plan-told"})
def a_plan_without_steps_is_not_told() -> None:
    """A plan that has no steps is kept from the client."""
    untold("turn/plan/updated", lambda params: not params["plan"])


@bug(reds={"plans/final-differs": "scenario.expectation: plan with text"})
def a_plan_is_what_was_streamed_of_it() -> None:
    """The completed plan has the deltas joined, though the model's whole plan has more."""
    instead("reference_server.engine.reply_items:_last_plan", lambda whole: None)
