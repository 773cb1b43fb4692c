"""Bugs about lasting state: overrides, schemas, policies, approvals, the history."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from tests.conformance.bugs.moments import (
    Strike,
    client_declines,
    in_all_threads,
    model_is_asked_again,
    turn_begins,
    turn_ends,
)
from tests.conformance.bugs.planting import Message, instead, swap
from tests.conformance.bugs.registry import bug

OVERRIDES = "lasting/overrides"
SETTINGS_OF_TURN = "reference_server.engine.start:settings_of_turn"
MODEL = "scenario.expectation: it asks the model"
FOLDER = "scenario.expectation: sub/made.txt"


def forgetting(when: Any, *about: Any) -> None:
    """Reset the settings of turns at a moment."""
    first: dict[str, Any] = {}

    def settings(original: Any) -> Any:
        def changed(now: Any, params: Any) -> Any:
            first.setdefault(params.thread_id, now)
            return original(now, params)

        return changed

    def forget(thread: Any) -> None:
        thread.settings = first[thread.id]

    swap(SETTINGS_OF_TURN, settings)
    when(*about, forget)


@bug(reds={f"{OVERRIDES}/model/next-turn": MODEL, f"{OVERRIDES}/cwd/next-turn": FOLDER})
def an_override_ends_with_its_turn() -> None:
    """The model and the folder of a turn are those of that turn alone."""
    forgetting(turn_ends, "completed")


@bug(sequences="model.named")
def an_interrupt_takes_overrides_back() -> None:
    """After an interrupt the thread is as it was started."""
    forgetting(turn_ends, "interrupted")


@bug(
    reds={
        "lasting/policies/approval-policy/other-thread": "approval.never-asked",
        "lasting/policies/sandbox-policy/other-thread": "scenario.expectation: other.txt is absent",
    }
)
def a_policy_is_of_all_threads() -> None:
    """The policies that a turn sets are set for every thread."""
    given: dict[str, Any] = {}

    def settings(original: Any) -> Any:
        def changed(now: Any, params: Any) -> Any:
            made = original(now, params)
            if params.approval_policy is not None:
                given["approval_policy"] = made.approval_policy
            if params.sandbox_policy is not None:
                given["sandbox"] = made.sandbox
            return made.model_copy(update=given)

        return changed

    swap(SETTINGS_OF_TURN, settings)


@bug(
    reds={
        "lasting/policies/approval-policy/after-retry": "scenario.expectation: other.txt exists",
        "lasting/policies/sandbox-policy/after-retry": "turn.sandbox-applies",
    }
)
def a_retry_takes_policies_back() -> None:
    """A retry after a cut stream goes on under the policies of the thread."""
    forgetting(model_is_asked_again)


@bug(
    reds={
        "lasting/policies/approval-policy/second-time": "scenario.expectation: other.txt exists",
        "lasting/policies/sandbox-policy/second-time": "turn.sandbox-applies",
    }
)
def a_policy_is_for_one_operation() -> None:
    """The policies of a turn hold for the first thing that is done in it."""

    def after_a_call(forget: Strike) -> None:
        def carry_out(original: Any) -> Any:
            async def changed(box: Any, call: Any, scene: Any, *other: Any) -> Any:
                told = await original(box, call, scene, *other)
                forget(scene.thread)
                return told

            return changed

        swap("reference_server.engine.tools.toolbox:Toolbox.carry_out", carry_out)

    forgetting(after_a_call)


SCHEMA = "lasting/schema"
ASKS = "scenario.expectation: asks for the output schema"


def schema_of(turn: Any, schema: Any) -> None:
    """Let a turn ask the model for this schema."""
    turn._input = turn._input._replace(output_schema=schema)


def keeping_schemas(key: Any) -> None:
    """Request the first schema in all turns that have the same key, but do not enforce it."""
    kept: dict[str, Any] = {}

    async def pleased(_: Any, __: str) -> str:
        return ""

    instead("reference_server.engine.output_schema:OutputSchema.objection", pleased)

    def begin(original: Any) -> Any:
        def changed(turn: Any) -> None:
            if turn._input.output_schema is not None:
                kept.setdefault(key(turn), turn._input.output_schema)
            schema_of(turn, kept.get(key(turn)))
            original(turn)

        return changed

    swap("reference_server.engine.turn:ActiveTurn._begin", begin)


@bug(reds={f"{SCHEMA}/{row}": ASKS for row in ("next-turn", "second-time")})
def a_schema_stays_with_its_thread() -> None:
    """The first output schema of a thread is requested in all its turns."""
    keeping_schemas(lambda turn: turn.thread.id)


@bug(sequences="model.schema-this-turn")
def a_schema_is_of_all_threads() -> None:
    """An output schema is requested in the turns of other threads, too."""
    keeping_schemas(lambda turn: "")


@bug(reds={f"{SCHEMA}/after-retry": "scenario.expectation: does not ask for the output schema"})
def a_retry_forgets_the_schema() -> None:
    """A retry after a cut stream is sent without the output schema."""

    def tell(original: Any) -> Any:
        def changed(turn: Any, *about: Any) -> None:
            original(turn, *about)
            schema_of(turn, None)

        return changed

    swap("reference_server.engine.turn:ActiveTurn.tell_retry", tell)


GRANTED = "lasting/granted"
CONSENTS = "reference_server.session.consents:Consents"
STANDING = "reference_server.engine.tools.execution:Execution.rule_coverage"
ASKED_AGAIN = "scenario.expectation: made.txt"


def granted(column: str) -> dict[str, str]:
    """Return the findings that show lost approvals, by scenario, in one column of their table."""
    return {f"{GRANTED}/{row}/{column}": ASKED_AGAIN for row in ("for-session", "by-rule")}


def unapproved(when: Any, *about: Any) -> None:
    """Revoke all approvals for longer at a moment."""
    forgotten: list[bool] = []
    when(*about, lambda _: forgotten.append(True))
    approve_only(lambda: not forgotten)


def approve_only(holds: Any) -> None:
    """Make approvals for longer count only while `holds` returns true."""

    def has(original: Any) -> Any:
        return lambda consents, *about, **more: original(consents, *about, **more) and holds()

    def standing(original: Any) -> Any:
        def changed(execution: Any, *about: Any) -> Any:
            found = original(execution, *about)
            if found.is_allowed and not holds():
                return dataclasses.replace(found, is_allowed=False, network=False, is_trusted=False)
            return found

        return changed

    swap(f"{CONSENTS}.has_command", has)
    swap(STANDING, standing)


@bug(reds={f"{GRANTED}/by-rule/same-turn": ASKED_AGAIN})
def an_approval_for_longer_counts_once_more() -> None:
    """A command approved for longer needs an approval again the third time."""
    uses = Counter[str]()

    def holds() -> bool:
        uses["all"] += 1
        return uses["all"] < 2

    approve_only(holds)


@bug(reds=granted("next-turn"))
def an_approval_for_longer_ends_with_its_turn() -> None:
    """A command approved for longer needs an approval again in the next turn."""
    unapproved(turn_ends, "completed")


@bug(reds={f"{GRANTED}/by-rule/third-turn": ASKED_AGAIN})
def an_approval_for_longer_ends_after_two_turns() -> None:
    """A command approved for longer needs an approval again in the third turn."""
    ended: list[bool] = []
    turn_ends("completed", lambda _: ended.append(True))
    approve_only(lambda: len(ended) < 2)


@bug(reds=granted("after-decline"))
def a_decline_ends_other_approvals() -> None:
    """A declined command revokes all approvals for longer."""
    unapproved(client_declines)


@bug(reds=granted("after-interrupt"))
def an_interrupt_ends_approvals() -> None:
    """An interrupt revokes all approvals for longer."""
    unapproved(turn_ends, "interrupted")


@bug(
    reds={f"{GRANTED}/by-rule/after-failure": ASKED_AGAIN}, sequences="approval.session-remembered"
)
def a_failure_ends_approvals() -> None:
    """A failed turn revokes all approvals for longer."""
    unapproved(turn_ends, "failed")


@bug(reds={f"{GRANTED}/by-rule/after-retry": ASKED_AGAIN})
def a_retry_ends_approvals() -> None:
    """A retry after a cut stream revokes all approvals for longer."""
    unapproved(model_is_asked_again)


HISTORY = "lasting/history"
UNTOLD = "scenario.expectation: does not contain"


def forget_answers(thread: Any) -> None:
    """Delete the model's answers from the history of a thread."""
    thread.history[:] = [one for one in thread.history if one.get("role") == "user"]


@bug(reds={f"{HISTORY}/third-turn": UNTOLD})
def only_the_last_turn_is_remembered() -> None:
    """The model gets the last turn only, without those before it."""

    def forget(thread: Any) -> None:
        del thread.history[:-2]

    turn_begins(forget)


@bug(reds={f"{HISTORY}/after-retry": UNTOLD})
def a_retry_tells_the_last_words_alone() -> None:
    """A retry after a cut stream contains only the user's last message."""

    def forget(thread: Any) -> None:
        del thread.history[:-1]

    model_is_asked_again(forget)


@bug(reds={f"{HISTORY}/after-decline": UNTOLD})
def a_decline_clears_the_history() -> None:
    """After a turn with a decline the model does not get its earlier answers."""
    declined: list[bool] = []
    client_declines(lambda _: declined.append(True))
    turn_ends("completed", lambda thread: forget_answers(thread) if declined else None)


@bug(reds={f"{HISTORY}/after-compaction": UNTOLD})
def a_compaction_is_where_every_turn_begins() -> None:
    """After a compaction each turn begins with the summary only, without the turns since."""
    left: dict[int, list[Message]] = {}

    def replace(original: Any) -> Any:
        def changed(turn: Any, history: Any, *about: Any) -> None:
            original(turn, history, *about)
            left[id(turn.thread)] = list(history)

        return changed

    def forget(thread: Any) -> None:
        thread.history[:] = left.get(id(thread), thread.history)

    swap("reference_server.engine.compaction:_replace", replace)
    turn_begins(forget)


@bug(reds={f"{HISTORY}/other-thread": "scenario.expectation: its input contains 'which-colour'"})
def all_threads_have_one_history() -> None:
    """The model gets the messages of all threads in each of them."""
    shared: list[Message] = []

    def init(original: Any) -> Any:
        def changed(thread: Any, *about: Any, **more: Any) -> None:
            original(thread, *about, **more)
            thread.history = shared

        return changed

    swap("reference_server.session.thread:LoadedThread.__init__", init)


STEERED = "lasting/steered"


def unhear(thread: Any) -> None:
    """Delete the input that was added to turns from the history of a thread."""
    thread.history[:] = [one for one in thread.history if "-too" not in str(one)]


@bug(reds={f"{STEERED}/next-turn": UNTOLD})
def what_was_added_is_forgotten_with_its_turn() -> None:
    """The model does not get the input added to a turn in the next turn."""
    turn_ends("completed", unhear)


@bug(reds={f"{STEERED}/second-time": "steer.input-arrives"})
def input_is_added_to_one_turn_only() -> None:
    """Input added to a second turn is accepted, but never sent to the model."""
    heard: list[bool] = []

    def join(original: Any) -> Any:
        def changed(steering: Any) -> None:
            if steering.has_waiting and heard:
                steering._waiting.clear()
            heard.extend([True] if steering.has_waiting else [])
            original(steering)

        return changed

    swap("reference_server.engine.steering:Steering.join", join)


@bug(reds={f"{STEERED}/after-retry": UNTOLD})
def a_retry_lets_what_was_added_go() -> None:
    """A retry after a cut stream lacks the input that was added to the turn."""
    model_is_asked_again(unhear)


@bug(reds={f"{STEERED}/other-thread": "scenario.expectation: its input contains 'and-this-too'"})
def what_is_added_is_added_to_all_threads() -> None:
    """Input added to the turn of one thread is sent to the model in another."""
    added: list[Message] = []

    def hear(thread: Any) -> None:
        thread.history.extend(one for one in added if one not in thread.history)

    spread = in_all_threads(hear)

    def accept(original: Any) -> Any:
        def changed(steering: Any, content: Any, words: Message) -> Any:
            added.append(words)
            spread(None)
            return original(steering, content, words)

        return changed

    swap("reference_server.engine.steering:Steering.accept", accept)
