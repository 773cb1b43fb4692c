"""Owed messages: opened by one message, met by another, on each connection separately."""

from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.marks import Closed, ModelCall, StepBegins
from harness.trace.obligations import ObligationKind
from harness.trace.trace import Mark
from tests.rules.case import opened, running
from tests.rules.traces import THREAD, Talk, agent_message, settings, thread_object, turn_object

ASK = {"method": "item/fileChange/requestApproval", "id": 0, "params": {"threadId": THREAD}}


def after(talk: Talk) -> ConnectionLedgers:
    owed = ConnectionLedgers()
    for frame in talk.trace().frames:
        owed.feed(frame)
    return owed


def kinds(talk: Talk) -> list[str]:
    return [str(item.kind) for item in after(talk).open_obligations()]


def on(connection: str, talk: Talk) -> list[str]:
    return [str(item.kind) for item in after(talk).ledger_of(connection).open_obligations()]


def test_a_request_owes_an_answer_and_an_error_is_one() -> None:
    owed = after(Talk().asks("thread/list").asks("thread/read"))
    assert [str(item) for item in owed.open_obligations()] == [
        "answer for request thread/list id 1",
        "answer for request thread/read id 2",
    ]
    assert kinds(Talk().asks("thread/list").refuses()) == []
    assert kinds(Talk().asks("thread/list").answers({}, to=9)) == ["answer"]
    assert kinds(Talk().asks("thread/list").says({"id": True, "result": {}})) == ["answer"]
    assert kinds(Talk().asks("thread/list").says({"id": 1.0, "result": {}})) == []


def test_a_request_that_is_malformed_on_purpose_owes_nothing() -> None:
    assert kinds(Talk().sends({"method": "x", "id": 1}, deliberate=True)) == []


def test_answers_of_another_connection_do_not_count() -> None:
    assert kinds(Talk().asks("thread/list").on("c2").answers({})) == ["answer"]


def test_a_started_thread_owes_its_announcement_whichever_comes_first() -> None:
    reply = {"thread": thread_object(), **settings()}
    assert kinds(Talk().asks("thread/start").answers(reply)) == ["thread/started"]
    early = Talk().asks("thread/start").tells("thread/started", thread=thread_object())
    assert kinds(early.answers(reply)) == []


def test_a_started_turn_owes_its_announcement_and_its_end() -> None:
    assert kinds(opened().ask_turn().reply_turn()) == ["turn/started", "turn/completed"]
    assert kinds(opened().ask_turn().reply_turn().turn_started()) == ["turn/completed"]
    assert kinds(running().end_turn()) == []
    assert kinds(opened().ask_turn().turn_started().turn_completed().reply_turn()) == []


def test_a_turn_announced_on_a_thread_of_ours_owes_its_end() -> None:
    assert kinds(opened().turn_started("turn_9")) == ["turn/completed"]


def test_threads_of_other_clients_owe_us_nothing() -> None:
    talk = opened().turn_started("turn_9", "thr_9").started(agent_message("m", ""), thread="thr_9")
    assert kinds(talk.tells("thread/started", thread=thread_object("thr_9"))) == []


def test_a_resumed_thread_owes_the_ends_of_what_begins_on_it() -> None:
    talk = Talk().asks("thread/resume", threadId=THREAD).answers({"thread": thread_object()})
    assert kinds(talk.turn_started()) == ["turn/completed"]


def test_a_started_item_owes_its_completion_each_time_it_is_started() -> None:
    talk = running().started(agent_message("m", ""))
    assert kinds(talk) == ["turn/completed", "item/completed"]
    assert kinds(talk.completed(agent_message("m", ""))) == ["turn/completed"]
    assert kinds(talk.started(agent_message("m", ""))) == ["turn/completed", "item/completed"]


def test_the_end_of_a_turn_waives_its_items_when_it_was_cut_off() -> None:
    for status in ("interrupted", "failed"):
        owed = after(running().started(agent_message("m", "")).turn_completed(status=status))
        assert owed.open_obligations() == []
        assert [item.subject for item in owed.ledger_of("c1").waived] == ["item m of turn turn_1"]
    whole = after(running().started(agent_message("m", "")).turn_completed())
    assert [item.kind for item in whole.open_obligations()] == [ObligationKind.ITEM_COMPLETED]
    assert whole.ledger_of("c1").waived == []


def test_the_items_of_other_turns_are_not_waived() -> None:
    talk = running().started(agent_message("m", ""))
    owed = after(talk.turn_started("turn_2").turn_completed("turn_2", status="failed"))
    assert [item.subject for item in owed.open_obligations(ObligationKind.ITEM_COMPLETED)] == [
        "item m of turn turn_1"
    ]


def test_an_answered_approval_owes_its_resolution() -> None:
    asked = Talk().says(ASK)
    assert [frame.method for frame in after(asked).unanswered_questions] == [ASK["method"]]
    assert kinds(asked) == []
    answered = asked.sends({"id": 0, "result": {"decision": "accept"}})
    assert after(answered).unanswered_questions == []
    assert kinds(answered) == ["serverRequest/resolved"]
    assert kinds(answered.tells("serverRequest/resolved")) == []


def test_other_server_requests_owe_no_resolution() -> None:
    talk = Talk().says({"method": "item/tool/call", "id": 0, "params": {}})
    assert kinds(talk.sends({"id": 0, "result": {}})) == []


def test_an_announced_retry_keeps_the_server_busy_until_it_calls_the_model() -> None:
    owed = after(running().failing(will_retry=True))
    assert owed.is_retrying
    owed.feed_mark(Mark(0.0, 9, StepBegins("wait", 3)))
    assert owed.is_retrying
    owed.feed_mark(Mark(0.0, 9, ModelCall()))
    assert not owed.is_retrying


def test_an_announced_retry_ends_with_its_turn() -> None:
    assert not after(running().failing(will_retry=True).end_turn()).is_retrying
    assert not after(running().end_turn().failing(will_retry=True)).is_retrying
    assert not after(running().failing(will_retry=False)).is_retrying


def test_nothing_is_owed_on_a_connection_that_we_ended_also_by_what_still_comes() -> None:
    talk = running().on("c2").asks("thread/list")
    owed = after(talk)
    assert [str(item.kind) for item in owed.open_obligations()] == ["turn/completed", "answer"]
    owed.feed_mark(Mark(0.0, 0, Closed("c1")))
    assert [str(item.kind) for item in owed.open_obligations()] == ["answer"]
    for frame in Talk().asks("thread/read").trace().frames:
        owed.feed(frame)
    assert [str(item.kind) for item in owed.open_obligations()] == ["answer"]


def left(talk: Talk, **result: str) -> Talk:
    talk.asks("thread/unsubscribe", threadId=THREAD)
    return talk.answers({"status": "unsubscribed", **result})


def resumed(talk: Talk, status: str) -> Talk:
    thread = thread_object(turns=[turn_object(status=status)])
    return talk.asks("thread/resume", threadId=THREAD).answers({"thread": thread, **settings()})


def test_who_leaves_a_thread_is_owed_nothing_more_of_it() -> None:
    assert kinds(left(running().started(agent_message("m", "")))) == []
    assert kinds(left(opened().ask_turn().reply_turn())) == []
    assert kinds(left(running()).turn_started("turn_2")) == []
    assert kinds(left(running()).ask_turn().reply_turn("turn_2")) == []
    assert not after(left(running().failing(will_retry=True))).is_retrying


def test_leaving_that_is_refused_or_of_another_thread_changes_nothing() -> None:
    asked = running().asks("thread/unsubscribe", threadId=THREAD)
    assert kinds(asked.refuses()) == ["turn/completed"]
    other = running().asks("thread/unsubscribe", threadId="thr_2").answers({"status": "notLoaded"})
    assert kinds(other) == ["turn/completed"]
    retrying = running().failing(will_retry=True).start_thread("thr_2")
    retrying.asks("thread/unsubscribe", threadId="thr_2").answers({"status": "unsubscribed"})
    assert after(retrying).is_retrying


def test_leaving_without_saying_which_is_leaving_all() -> None:
    talk = running().asks("thread/unsubscribe").answers({"status": "unsubscribed"})
    assert kinds(talk) == []


def test_a_turn_that_goes_on_when_the_client_comes_back_owes_its_end() -> None:
    assert kinds(resumed(left(running()), "inProgress")) == ["turn/completed"]
    assert kinds(resumed(left(running()), "inProgress").end_turn()) == []
    assert kinds(resumed(left(running()), "interrupted")) == []
    assert kinds(resumed(left(running()), "interrupted").turn_started("turn_2")) == [
        "turn/completed"
    ]


def test_a_later_turn_start_that_is_answered_with_the_same_turn_owes_no_second_announcement() -> (
    None
):
    announced_while_away = resumed(left(opened().ask_turn().reply_turn()), "inProgress")
    assert kinds(announced_while_away.ask_turn().reply_turn()) == ["turn/completed"]
    asked_while_away = left(opened().ask_turn().reply_turn().turn_started().end_turn())
    asked_while_away.ask_turn().reply_turn("turn_2")
    assert kinds(resumed(asked_while_away, "completed").ask_turn().reply_turn("turn_2")) == [
        "turn/completed"
    ]
    shown = resumed(Talk(), "inProgress").ask_turn().reply_turn()
    assert kinds(shown) == ["turn/completed"]
    assert kinds(shown.ask_turn().reply_turn("turn_3")) == [
        "turn/completed",
        "turn/started",
        "turn/completed",
    ]


def joins(talk: Talk, status: str = "inProgress") -> Talk:
    """A second client opens the thread, and is shown its turn."""
    return resumed(talk.on("c2"), status).on("c1")


def both(talk: Talk, *moves: str) -> Talk:
    """Report each event of the turn to both clients, the second one first."""
    for connection in ("c2", "c1"):
        for move in moves:
            getattr(talk.on(connection), move)()
    return talk


def shared() -> Talk:
    """Two clients opened a thread, and both were told that the turn of the first began."""
    return both(joins(opened(), "completed").ask_turn().reply_turn(), "turn_started")


def test_the_end_of_a_turn_is_owed_to_each_subscriber_that_was_told_of_it() -> None:
    assert on("c1", shared()) == on("c2", shared()) == ["turn/completed"]
    only_first = shared().on("c1").turn_completed()
    assert (on("c1", only_first), on("c2", only_first)) == ([], ["turn/completed"])
    only_second = shared().on("c2").turn_completed()
    assert (on("c1", only_second), on("c2", only_second)) == (["turn/completed"], [])
    assert kinds(both(shared(), "turn_completed")) == []


def test_a_client_that_opened_no_thread_is_owed_nothing_of_it() -> None:
    talk = running().on("c2").asks("thread/read", threadId=THREAD)
    talk.answers({"thread": thread_object()}).turn_started()
    assert (on("c1", talk), on("c2", talk)) == (["turn/completed"], [])


def test_leaving_a_thread_changes_nothing_for_its_other_subscribers() -> None:
    for leaving, staying in (("c1", "c2"), ("c2", "c1")):
        talk = left(shared().on(leaving))
        assert (on(leaving, talk), on(staying, talk)) == ([], ["turn/completed"])


def test_the_end_of_a_connection_changes_nothing_for_other_subscribers() -> None:
    owed = after(shared())
    owed.feed_mark(Mark(0.0, 9, Closed("c1")))
    assert owed.ledger_of("c1").open_obligations() == []
    assert [item.frame.connection for item in owed.open_obligations()] == ["c2"]


def test_who_comes_in_while_a_turn_runs_is_owed_its_end() -> None:
    assert on("c2", joins(running())) == ["turn/completed"]
    assert on("c2", joins(running()).on("c2").turn_completed()) == []
    assert on("c2", left(joins(running()).on("c2"))) == []


def test_who_is_shown_a_turn_that_nobody_knows_to_run_is_owed_nothing_of_it() -> None:
    assert on("c2", joins(running().turn_completed())) == []
    assert on("c2", joins(running(), "completed")) == []
    assert on("c2", joins(left(running()))) == []
    owed = after(running())
    owed.feed_mark(Mark(0.0, 9, Closed("c1")))
    for frame in joins(running()).trace().frames[len(running().trace().frames) :]:
        owed.feed(frame)
    assert owed.open_obligations() == []


def test_who_only_asks_for_a_turn_is_a_subscriber_where_nobody_else_is() -> None:
    asked = Talk().ask_turn().reply_turn()
    assert kinds(asked) == ["turn/started", "turn/completed"]
    elsewhere = opened().on("c2").ask_turn().reply_turn()
    assert on("c2", elsewhere) == []
    assert on("c2", elsewhere.turn_started()) == []
    elsewhere.started(agent_message("m", ""))
    assert on("c2", elsewhere) == ["turn/completed", "item/completed"]
    after_leaving = left(opened().on("c2").ask_turn().reply_turn())
    assert on("c2", after_leaving.started(agent_message("m", ""))) == []


def test_each_connection_is_owed_the_items_that_it_was_told_of() -> None:
    talk = shared().on("c1").started(agent_message("m", ""))
    assert on("c1", talk) == ["turn/completed", "item/completed"]
    assert on("c2", talk) == ["turn/completed"]
    talk.on("c2").completed(agent_message("m", ""))
    assert on("c1", talk) == ["turn/completed", "item/completed"]


def test_a_retry_ends_for_all_with_its_turn() -> None:
    talk = shared().on("c1").failing(will_retry=True).on("c2").failing(will_retry=True)
    assert after(talk).is_retrying
    owed = after(talk.on("c1").turn_completed(status="failed"))
    assert not owed.is_retrying
    assert on("c2", talk) == ["turn/completed"]


def test_an_approval_that_another_client_answered_owes_nothing_when_it_is_answered_again() -> None:
    talk = Talk().says(ASK).on("c2").says(ASK).on("c1")
    talk.sends({"id": 0, "result": {"decision": "accept"}})
    assert (on("c1", talk), on("c2", talk)) == (["serverRequest/resolved"], [])
    talk.tells("serverRequest/resolved").on("c2").tells("serverRequest/resolved")
    assert kinds(talk.sends({"id": 0, "result": {"decision": "decline"}})) == []
    assert kinds(
        Talk().tells("serverRequest/resolved").says(ASK).sends({"id": 0, "result": {}})
    ) == ["serverRequest/resolved"]
