"""Readings 1 to 5 and 15 to 21 as behaviour of the rules: violations, and open choices.

The numbers in the names are those of the readings of the specification. A wrong reading that the
text settles is a finding of a named rule; one that it leaves open is none of level MUST.
"""

from typing import Any

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.rules.case import opened, running
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    Talk,
    agent_message,
    command,
    mcp_call,
    settings,
    step,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

BOOK, RULES = load_book(), all_rules()
ITEMS = [agent_message("m-1", "Hello")]
PLAN_DELTA = "item/plan/delta"
OUTPUT = "item/commandExecution/outputDelta"


def wrong(talk: Talk | Trace, *levels: Level) -> set[str]:
    """The rules broken, at any of these levels (MUST and SHOULD where none is given)."""
    trace = talk.trace() if isinstance(talk, Talk) else talk
    return {row.rule for row in _broken(trace) if row.level in (levels or _WEIGHTY)}


def _broken(trace: Trace) -> list[Row]:
    rows = judge(BOOK, trace, rules=RULES.values())
    return [row for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]


_WEIGHTY = (Level.MUST, Level.SHOULD)


# 1: items of a turn are filled in history alone.


@pytest.mark.parametrize("place", ["turn/start", "turn/started", "turn/completed"])
def test_01_a_turn_outside_history_has_no_items(place: str) -> None:
    whole = {method: turn_object() for method in ("turn/start", "turn/started")}
    whole["turn/completed"] = turn_object(status="completed")
    whole[place] = {**whole[place], "items": ITEMS}
    talk = opened().ask_turn().answers({"turn": whole["turn/start"]}).status("active")
    talk.tells("turn/started", threadId=THREAD, turn=whole["turn/started"]).status("idle")
    talk.tells("turn/completed", threadId=THREAD, turn=whole["turn/completed"])
    assert wrong(talk) == {"turn.start-reply" if place == "turn/start" else "turn.items-empty"}


@pytest.mark.parametrize("method", ["thread/resume", "thread/fork", "thread/rollback"])
def test_01_02_history_may_have_turns_with_items(method: str) -> None:
    thread = thread_object("thr_2", turns=[stored_plain_turn()], preview="hello")
    talk = opened().asks(method, threadId=THREAD).answers({"thread": thread, **settings()})
    assert "turn.items-empty" not in wrong(talk)


def test_01_read_with_turns_may_have_items_and_read_without_may_not() -> None:
    assert wrong(opened().plain_turn().read(stored_plain_turn())) == set()
    shown = thread_object(turns=[stored_plain_turn()], preview="hello")
    talk = opened().plain_turn().asks("thread/read", threadId=THREAD).answers({"thread": shown})
    assert {"turn.items-empty", "read.omits-turns"} <= wrong(talk)


# 2: turns of a thread where they cannot be asked for.


def test_02_turns_that_are_announced_with_a_fork_have_no_items() -> None:
    fork = thread_object("thr_2", turns=[stored_plain_turn()])
    assert wrong(opened().tells("thread/started", thread=fork)) == {"turn.items-empty"}
    bare = thread_object("thr_2", turns=[turn_object(status="completed")])
    assert wrong(opened().tells("thread/started", thread=bare)) == set()


# 3: three things are called status.


def test_03_each_status_has_its_own_form() -> None:
    said: dict[str, Any] = {"threadId": THREAD, "status": "idle"}
    assert "shape.notification" in wrong(opened().tells("thread/status/changed", **said))
    flagless = {**said, "status": {"type": "active"}}
    assert "shape.notification" in wrong(opened().tells("thread/status/changed", **flagless))
    ended = turn_object(status="completed")
    talk = running().status("idle")
    talk.tells("turn/completed", threadId=THREAD, turn={**ended, "status": {"type": "completed"}})
    assert "shape.notification" in wrong(talk)
    assert wrong(running().end_turn()) == set()


def test_03_the_values_of_flags_are_open() -> None:
    waiting = {"type": "active", "activeFlags": ["waiting", {"on": "nobody"}]}
    talk = running().tells("thread/status/changed", threadId=THREAD, status=waiting).end_turn()
    assert wrong(talk) == set()


# 4: whether a loaded thread is read as notLoaded.


@pytest.mark.parametrize("status", ["notLoaded", "idle"])
def test_04_a_loaded_thread_may_be_read_either_way(status: str) -> None:
    assert wrong(opened().read_status(status)) == set()


@pytest.mark.parametrize("status", ["notLoaded", "idle", "systemError"])
def test_04_also_after_an_error(status: str) -> None:
    talk = running().failing(will_retry=False).end_turn(status="failed", error=TROUBLE)
    assert wrong(talk.read_status(status)) == set()


def test_04_idle_and_active_are_judged_where_the_moment_is_certain() -> None:
    talk = running().started(agent_message("m-1", "")).read_status("idle").delta("m-1", "x")
    assert "status.read-matches-turns" in wrong(talk)
    assert "status.read-matches-turns" in wrong(running().end_turn().read_status("active"))


# 5: who announces a thread.


def test_05_a_start_announces_its_thread_and_no_other() -> None:
    talk = Talk().asks("thread/start").answers({"thread": thread_object(), **settings()})
    other = talk.tells("thread/started", thread=thread_object("thr_9"))
    assert wrong(other) == {"thread.started-announced"}


def test_05_a_resume_that_announces_breaks_no_must_and_its_six_members_are_needed() -> None:
    whole = {"thread": thread_object(), **settings()}
    talk = opened().asks("thread/resume", threadId=THREAD).answers(whole)
    talk.tells("thread/started", thread=thread_object())
    assert wrong(talk, Level.MUST) == set()
    assert wrong(talk) == {"resume.not-announced"}
    short = {"thread": thread_object()}
    talk = opened().asks("thread/resume", threadId=THREAD).answers(short)
    assert wrong(talk) == {"shape.response"}
    fork = {"thread": thread_object("thr_2")}
    assert "shape.response" not in wrong(opened().asks("thread/fork").answers(fork))


# 15: what deltas add up to.


def test_15_deltas_are_joined_by_item_and_no_deltas_are_legal() -> None:
    talk = running().started(agent_message("m-1", "")).started(agent_message("m-2", ""))
    talk.delta("m-1", "one").delta("m-2", "two").delta("m-1", "!")
    talk.completed(agent_message("m-1", "one!")).completed(agent_message("m-2", "two"))
    assert wrong(talk.item(agent_message("m-3", "whole")).end_turn()) == set()
    talk = running().message("m-1", "a").started(agent_message("m-2", "")).delta("m-2", "b")
    assert wrong(talk.completed(agent_message("m-2", "ab")).end_turn()) == {"delta.rebuilds-reply"}


def test_15_a_plan_may_differ_from_its_deltas() -> None:
    plan = {"type": "plan", "id": "p-1", "text": ""}
    talk = running().started(plan).delta("p-1", "A", method=PLAN_DELTA)
    assert wrong(talk.completed({**plan, "text": "B"}).end_turn()) == set()


def test_15_reasoning_and_output_that_differ_are_no_breach_of_must() -> None:
    thought = {"type": "reasoning", "id": "r-1", "summary": [], "content": []}
    talk = running().started(thought)
    talk.delta("r-1", "a", method="item/reasoning/summaryTextDelta", summaryIndex=0)
    talk.completed({**thought, "summary": ["b"]}).started(command("c-1"))
    talk.delta("c-1", "x", method=OUTPUT)
    talk.completed(command("c-1", "completed", aggregatedOutput="y")).end_turn()
    assert wrong(talk) == {"delta.reasoning-summary", "delta.command-output"}
    assert wrong(talk, Level.MUST) == set()


# 16: which status words belong to which item.


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (command("c-1", "declined"), set()),
        (mcp_call("t-1", "failed", error={}), set()),
        (mcp_call("t-1", "declined"), {"shape.notification"}),
        (command("c-1", "interrupted"), {"shape.notification"}),
        (command("c-1", "inProgress"), {"item.final-status"}),
        ({**agent_message("m-1", "x"), "status": "whatever"}, set()),
    ],
)
def test_16_each_type_ends_with_its_own_words(item: dict[str, Any], found: set[str]) -> None:
    assert wrong(running().item(item).end_turn()) == found


def test_16_pending_is_for_the_steps_of_a_plan() -> None:
    assert wrong(running().plan(step("look")).end_turn()) == set()
    assert wrong(running().plan(step("look", "failed")).end_turn()) == {"shape.notification"}
    talk = running().started(command("c-1", "pending")).completed(command("c-1", "completed"))
    assert "shape.notification" in wrong(talk.end_turn())


# 17: three channels for errors.


def test_17_an_error_is_not_the_end_of_a_turn() -> None:
    lost = running().failing(will_retry=False).status("systemError")
    assert wrong(lost) == {"turn.completes"}
    talk = running().failing(will_retry=False).tells("turn/failed", threadId=THREAD, turnId=TURN)
    assert "turn.completes" in wrong(talk)


def test_17_a_retry_may_succeed_and_a_failed_turn_needs_no_error_before_it() -> None:
    assert wrong(running().failing(will_retry=True).end_turn()) == set()
    assert wrong(running().end_turn(status="failed", error=TROUBLE)) == set()


@pytest.mark.parametrize(
    ("status", "error"), [("interrupted", TROUBLE), ("completed", TROUBLE), ("failed", None)]
)
def test_17_a_turn_has_an_error_exactly_when_it_failed(status: str, error: Any) -> None:
    assert "turn.error-iff-failed" in wrong(running().end_turn(status=status, error=error))


def test_17_the_list_of_classifications_is_open_and_its_spelling_is_not() -> None:
    def failed(info: str) -> set[str]:
        error = {"message": "m", "agentErrorInfo": info}
        return wrong(running().end_turn(status="failed", error=error))

    assert failed("SomethingNew") == set()
    assert failed("badRequest") == {"turn-error.info-spelling"}


# 18: steering.


def test_18_steering_answers_the_id_and_starts_no_turn() -> None:
    def steered(result: Any) -> Talk:
        more = [{"type": "text", "text": "more"}]
        talk = running().asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=more)
        return talk.answers(result)

    assert wrong(steered({"turnId": TURN}).end_turn()) == set()
    assert wrong(steered({"turn": turn_object()}).end_turn()) == {"shape.response"}
    assert wrong(steered({"turnId": TURN}).turn_started().end_turn()) == {"turn.started-once"}


def test_18_a_refused_steering_has_no_code_of_its_own() -> None:
    talk = opened().asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=[])
    assert wrong(talk.refuses()) == set()


# 19: which overrides last.


def _called(talk: Talk, number: int, folder: str, call: dict[str, Any], **params: Any) -> Talk:
    """A whole turn that asks its model once and runs one command."""
    turn = f"turn_{number}"
    talk.ask_turn(**params).reply_turn(turn).status("active").turn_started(turn)
    made: dict[str, Any] = {"call": number, **call}
    talk.item(user_message(f"u-{number}", "hello"), turn).calls("hello", **made)
    return talk.item(command(f"c-{number}", "completed", cwd=folder), turn).end_turn(turn)


def test_19_model_and_cwd_last_and_the_schema_does_not() -> None:
    def second(folder: str = "/w", **call: Any) -> Talk:
        overrides: dict[str, Any] = {"model": "m", "cwd": "/w", "outputSchema": {"type": "object"}}
        talk = _called(opened(), 1, "/w", {"model": "m", "schema": True}, **overrides)
        return _called(talk, 2, folder, {"model": "m", **call})

    assert wrong(second()) == set()
    assert wrong(second(model="default")) == {"model.named"}
    assert wrong(second(folder="/home/user/project")) == {"turn.cwd-applies"}
    assert wrong(second(schema=True)) == {"model.schema-this-turn"}
    # Of effort and summary the text says nothing: neither their stay nor their end is wrong.
    assert wrong(second(effort="low", summary="concise")) == set()


# 20: the order that is stated, and those that are not.


def test_20_the_reply_may_come_after_the_turn_began() -> None:
    talk = opened().ask_turn().status("active").turn_started()
    talk.item(user_message("u-1", "hello")).answers({"turn": turn_object()}).end_turn()
    assert wrong(talk) == set()


def test_20_a_reply_after_the_end_is_late_and_breaks_no_word() -> None:
    talk = opened().ask_turn().status("active").turn_started()
    talk.item(user_message("u-1", "hello")).end_turn().answers({"turn": turn_object()})
    assert wrong(talk, Level.MUST) == set()
    assert wrong(talk) == {"turn.start-reply"}


def test_20_the_place_of_other_notifications_is_open() -> None:
    talk = opened().plan(step("look")).ask_turn().reply_turn().turn_started()
    talk.item(user_message("u-1", "hello")).turn_completed()
    talk.status("active").status("idle").usage().plan(step("leap")).rerouted("other")
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="")
    assert wrong(talk, Level.MUST) == set()


def test_20_items_stand_between_the_two_ends_of_their_turn() -> None:
    early = opened().ask_turn().reply_turn().status("active")
    early.item(user_message("u-1", "hello")).turn_started().end_turn()
    assert wrong(early) == {"turn.started-first"}
    late = running().started(agent_message("m-1", "")).end_turn()
    assert "turn.completed-last" in wrong(late.completed(agent_message("m-1", "")))
    after = running().end_turn().tells("item/mcpToolCall/progress", turnId=TURN, itemId="t-1")
    assert "turn.completed-last" in wrong(after)


def test_20_an_accepted_interrupt_is_followed_by_an_interrupted_end() -> None:
    assert wrong(running().interrupt().answers({}).end_turn(status="interrupted")) == set()
    assert wrong(running().interrupt().answers({}).end_turn()) == {
        "turn.interrupt-ends-interrupted"
    }


# 21: payloads that are not shown.


@pytest.mark.parametrize(
    "method",
    ["thread/unarchived", "thread/closed", "thread/name/updated", "thread/tokenUsage/updated"],
)
def test_21_a_payload_that_is_not_shown_is_not_judged(method: str) -> None:
    assert wrong(opened().tells(method, anything=[1])) == set()
    assert wrong(opened().says({"method": method, "params": [1]})) == {"frame.well-formed"}


def test_turn_belongs_to_the_request_that_began_it_and_not_to_one_answered_with_it_later() -> None:
    talk = opened().ask_turn(text="hello").reply_turn().turn_started()
    talk = talk.item(user_message("u-1", "hello")).ask_turn(text="and this").reply_turn()
    talk = talk.item(user_message("u-2", "and this")).turn_completed()
    assert "user-message.echo" not in wrong(talk)
    other = opened().ask_turn(text="hello").reply_turn().turn_started()
    other = other.ask_turn(text="and this").reply_turn().item(user_message("u-1", "and this"))
    assert "user-message.echo" in wrong(other)
