"""Evidence of a session about unsupported features, in hand-made conversations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.play.run import Run
from harness.scenario.player import FailureKind, StepFailure
from harness.search.fuzz.sessions.chains import generate_document
from harness.search.fuzz.sessions.chooser import seeded_chooser
from harness.search.fuzz.sessions.session import Offers, approvals_under
from harness.search.fuzz.sessions.turns import COMMAND
from harness.search.fuzz.sessions.unsupported import proves_missing, shown_features, unasked_policy
from harness.trace.marks import StepBegins
from harness.trace.trace import End
from tests.rules.traces import TURN, Talk, command

ANSWER = {"answer": {"to": COMMAND, "where": {"turnId": "$u.turn.id"}, "decision": "accept"}}
COMPACTED = {"notification": "item/completed", "where": {"item.type": "contextCompaction"}}
Json = dict[str, Any]


def document(last: Json, *, policy: str = "untrusted", **of_turn: Any) -> Json:
    """A thread with a turn, and the step that could not be done."""
    thread = {"as": "t", "params": {"approvalPolicy": policy}}
    turn = {"thread": "t", "as": "u", **of_turn}
    return {"client": [{"start_thread": thread}, {"start_turn": turn}, last]}


def run(
    talk: Talk,
    kind: FailureKind = FailureKind.TIMEOUT,
    *,
    lacks: str = "",
    end: End = End.QUIESCENT,
) -> Run:
    unmet = StepFailure(kind, "answer", 3, "in vain", lacks)
    return cast(
        "Run", SimpleNamespace(unmet=unmet, trace=talk.trace(), ending=SimpleNamespace(end=end))
    )


def waited(talk: Talk) -> Talk:
    return talk.mark(StepBegins("answer", 3))


def turn_that_asks_nothing() -> Talk:
    return waited(Talk().start_thread().ask_turn()).tells("turn/completed", turn={"id": TURN})


def test_a_turn_that_ended_and_asked_nothing_says_that_there_are_no_questions() -> None:
    assert proves_missing(document(ANSWER), run(turn_that_asks_nothing()))


def test_a_question_that_came_late_says_nothing() -> None:
    talk = waited(Talk().start_thread().ask_turn()).says({"method": COMMAND, "id": 1, "params": {}})
    assert not proves_missing(document(ANSWER), run(talk))
    assert shown_features(talk.trace()) == {"approvals"}


def test_a_question_that_came_before_is_none_that_came_late() -> None:
    talk = Talk().start_thread().ask_turn().says({"method": COMMAND, "id": 1, "params": {}})
    assert proves_missing(document(ANSWER), run(waited(talk)))


@pytest.mark.parametrize("end", [End.TIMED_OUT, End.CLOSED, End.EXITED])
def test_a_trace_that_did_not_come_to_its_end_says_nothing(end: End) -> None:
    assert not proves_missing(document(ANSWER), run(turn_that_asks_nothing(), end=end))


@pytest.mark.parametrize("policy", ["on-request", "never", ""])
def test_only_a_policy_that_asks_of_all_says_that_there_are_no_questions(policy: str) -> None:
    talk = turn_that_asks_nothing()
    assert not proves_missing(document(ANSWER, policy=policy), run(talk))
    named = document(ANSWER, policy=policy, params={"approvalPolicy": "untrusted"})
    assert proves_missing(named, run(talk))
    wait = {"wait": {"request": COMMAND, "where": {"turnId": "$u.turn.id"}}}
    assert not proves_missing(document(wait, policy=policy), run(talk))


@pytest.mark.parametrize(
    ("policy", "told"), [("on-request", "on-request"), ("untrusted", ""), ("", "")]
)
def test_a_policy_under_which_nothing_is_asked_is_named(policy: str, told: str) -> None:
    assert unasked_policy(document(ANSWER, policy=policy), run(turn_that_asks_nothing())) == told


def test_a_question_that_came_late_or_a_cut_trace_names_no_policy() -> None:
    made = document(ANSWER, policy="on-request")
    late = waited(Talk().start_thread().ask_turn()).says({"method": COMMAND, "id": 1, "params": {}})
    assert not unasked_policy(made, run(late))
    assert not unasked_policy(made, run(turn_that_asks_nothing(), end=End.CLOSED))
    assert not unasked_policy(made, run(turn_that_asks_nothing(), FailureKind.REFUSED))
    other = document({"wait": {"turn": "u"}}, policy="on-request")
    assert not unasked_policy(other, run(turn_that_asks_nothing()))


@pytest.mark.parametrize("lacks", [set[str](), {approvals_under("on-request")}])
def test_no_thread_asks_under_a_policy_under_which_nothing_is_asked(lacks: set[str]) -> None:
    drawn = [
        repr(generate_document(seeded_chooser(seed), Offers(set(lacks)))) for seed in range(40)
    ]
    assert any("'untrusted'" in one for one in drawn)
    assert any("'on-request'" in one for one in drawn) is not bool(lacks)


def test_a_fork_has_the_policy_of_its_origin() -> None:
    fork = {"method": "thread/fork", "as": "v", "params": {"threadId": "$t.thread.id"}}
    made = document(ANSWER)
    made["client"][1]["start_turn"]["thread"] = "v"
    made["client"].insert(1, {"request": fork})
    played = run(turn_that_asks_nothing())
    played.unmet = StepFailure(FailureKind.TIMEOUT, "answer", 4, "in vain")
    assert proves_missing(made, played)
    made["client"][0]["start_thread"]["params"]["approvalPolicy"] = "on-request"
    assert not proves_missing(made, played)


def test_a_lack_that_the_server_states_needs_no_end() -> None:
    talk = Talk().start_thread()
    made = document({"wait": {"turn": "u"}}, policy="never")
    assert proves_missing(
        made, run(talk, FailureKind.NOT_OFFERED, lacks="file-change", end=End.CLOSED)
    )
    assert proves_missing(document({"request": {"method": "x"}}), run(talk, FailureKind.REFUSED))


@pytest.mark.parametrize(
    "step", [{"restart": True}, {"request": {"method": "thread/resume", "expect": "any"}}]
)
def test_a_tool_may_be_gone_with_the_model_of_a_thread_that_is_taken_up_again(step: Json) -> None:
    made = document({"wait": {"turn": "u"}})
    made["client"].insert(2, step)
    played = run(Talk().start_thread(), FailureKind.NOT_OFFERED)
    played.unmet = StepFailure(FailureKind.NOT_OFFERED, "wait", 4, "no tool", "file-change")
    assert not proves_missing(made, played)
    made["client"][3] = {"connect": "b"}
    played.unmet = StepFailure(FailureKind.NOT_OFFERED, "connect", 4, "one only", "several-clients")
    assert proves_missing(made, played)


@pytest.mark.parametrize("answered", [True, False])
def test_a_request_says_something_only_if_it_is_never_answered(*, answered: bool) -> None:
    talk = waited(Talk().start_thread()).asks("thread/fork")
    talk = talk.refuses() if answered else talk
    assert (
        proves_missing(document({"request": {"method": "thread/fork"}}), run(talk)) is not answered
    )


@pytest.mark.parametrize("kind", ["agentMessage", "contextCompaction"])
def test_a_notification_says_something_only_if_it_never_comes(kind: str) -> None:
    talk = waited(Talk().start_thread()).tells("item/completed", item={"type": kind})
    assert proves_missing(document({"wait": COMPACTED}), run(talk)) is (kind == "agentMessage")


@pytest.mark.parametrize("step", [{"restart": True}, {"connect": "b"}, {"wait": {"turn": "u"}}])
def test_a_slow_start_says_nothing(step: Json) -> None:
    assert not proves_missing(document(step), run(turn_that_asks_nothing()))


def test_features_that_the_server_shows_are_offered() -> None:
    talk = Talk().start_thread().ask_turn().tells("item/started", item=command("i"))
    talk.tells("turn/plan/updated", plan=[]).tells("item/started", item={"type": "fileChange"})
    assert shown_features(talk.trace()) == {"run", "plan", "patch"}
    assert (
        shown_features(Talk().sends({"method": COMMAND, "params": {}}).says(b"[1]").trace())
        == set()
    )


def test_a_run_that_came_to_its_end_says_nothing() -> None:
    played = run(turn_that_asks_nothing())
    played.unmet = None
    assert not proves_missing(document(ANSWER), played)
