"""Duties of the judge around the rules: ends, set-up, connections, bounds, rules that crash."""

import pytest

from harness.judge import connection
from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on_harness_message,
    on_kind,
    on_mark,
    rule,
)
from harness.judge.judge import Judge, feed_trace, judge
from harness.judge.rows import MAX_VIOLATIONS
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, GateOpened, MarkBody, ModelCall, Setup
from harness.trace.surface import session
from harness.trace.trace import End, Mark, Trace
from tests.rules.case import opened, running, silent
from tests.rules.traces import Talk, agent_message, user_message


def rows(trace: Trace, rule_id: str) -> list[Row]:
    return judge(load_book(), trace, rules=[all_rules()[rule_id]])


def failures(trace: Trace) -> set[tuple[str, str]]:
    return {
        (row.rule, row.subject)
        for row in judge(load_book(), trace, all_rules().values())
        if row.verdict is not Verdict.PASS and row.level is Level.MUST
    }


@pytest.mark.parametrize("end", [End.CLOSED, End.TIMED_OUT, End.EXITED])
def test_obligations_are_judged_only_at_a_quiescent_end(end: End) -> None:
    talk = running()
    assert [row.verdict for row in rows(talk.trace(), "turn.completes")] == [Verdict.FAIL]
    assert rows(talk.trace(end), "turn.completes") == []


def test_set_up_steps_give_no_witness_but_their_violations_count() -> None:
    talk = Talk().mark(Setup(active=True)).start_thread().tells("thread/status/changed")
    talk.mark(Setup(active=False)).start_thread("thr_2")
    trace = talk.trace()
    assert [row.subject for row in rows(trace, "thread.starts-idle")] == ["thread thr_2"]
    assert Verdict.FAIL in {row.verdict for row in rows(trace, "shape.notification")}


def test_two_subscribed_connections_each_get_their_copy() -> None:
    """The same notifications on two connections are no repetition, and deltas do not mix."""
    first, second = opened().plain_turn(), Talk().on("c2")
    second.asks("thread/resume", threadId="thr_1").answers({"thread": {"id": "thr_1"}})
    talk = (
        opened()
        .on("c2")
        .asks("thread/resume", threadId="thr_1")
        .answers(opened().trace().frames[1].result)
    )
    for frame in first.trace().frames[3:]:
        if frame.from_target and frame.kind is Kind.NOTIFICATION:
            talk.on("c1").says(frame.raw).on("c2").says(frame.raw)
    assert failures(talk.trace()) == set()
    assert "turn turn_1" in {row.subject for row in rows(talk.trace(), "turn.completes")}


def test_messages_about_threads_of_other_clients_are_not_judged() -> None:
    talk = Talk()
    theirs = running().message("m-1", "a").started(agent_message("m-2", "")).trace()
    for frame in theirs.frames:
        if frame.kind is Kind.NOTIFICATION:
            talk.says(frame.raw)
    talk.turn_started().turn_started().turn_completed().turn_completed()
    assert failures(talk.trace()) == set()


def test_a_reply_after_the_end_of_its_turn_is_no_violation() -> None:
    talk = opened().ask_turn().status("active").turn_started().item(user_message("u", "hello"))
    talk.end_turn().reply_turn()
    assert failures(talk.trace()) == set()


def test_extra_members_nulls_and_unknown_messages_are_legal() -> None:
    talk = Talk()
    for frame in running().message("m-1", "a").end_turn().trace().frames:
        if not frame.from_target:
            talk.sends(frame.raw)
            continue
        talk.tells("emitted/extra", at=1)
        talk.says({**frame.json, "jsonrpc": "2.0", "emittedAtMs": 12, "trace": None})
    assert failures(talk.trace()) == set()


def test_violations_and_witnesses_are_bounded() -> None:
    talk = silent()
    for _ in range(30):
        talk.says(b"noise").says(b"")
    found = rows(talk.trace(), "frame.well-formed")
    assert [row.verdict for row in found].count(Verdict.FAIL) == MAX_VIOLATIONS
    assert [row.verdict for row in found].count(Verdict.PASS) == 1


def test_method_names_made_up_without_end_cost_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_TOPIC_SETS", 3)
    monkeypatch.setattr(session, "MAX_METHODS", 3)
    talk = Talk()
    for number in range(6):
        talk.tells(f"made/up{number}")
    found = rows(talk.status("idle").trace(), "shape.notification")
    assert [row.verdict for row in found] == [Verdict.PASS]


class Broken(Monitor):
    """Raises, once while a handler runs, once while its outcomes are read."""

    id, title, level, needs = "test.broken", "broken", Level.MUST, ("core",)

    @on_kind(Kind.ERROR)
    def error(self, frame: Frame) -> Outcomes:
        yield Violation("before", (frame,), "x", "y")
        raise LookupError("no such thing")

    def finish(self) -> Outcomes:
        raise AssertionError("a broken rule is not asked again")


class BrokenAtTheEnd(Broken):
    id = "test.broken-at-the-end"

    @on_kind(Kind.ERROR)
    def error(self, frame: Frame) -> Outcomes:
        return None


def test_a_rule_that_crashes_is_an_error_and_is_not_asked_again() -> None:
    found = judge(load_book(), silent().refuses().trace(), rules=[Broken])
    assert [row.verdict for row in found] == [Verdict.FAIL, Verdict.ERROR]
    assert "no such thing" in found[1].actual
    assert found[1].frames == (1,)


def test_a_rule_that_crashes_at_the_end_is_an_error() -> None:
    found = judge(load_book(), silent().trace(), rules=[BrokenAtTheEnd])
    assert [(row.verdict, row.frames) for row in found] == [(Verdict.ERROR, ())]


class Listening(Broken):
    """Raises at every mark that reaches it."""

    id = "test.listening"

    @on_mark(ModelCall)
    def called(self, mark: Mark[ModelCall]) -> Outcomes:
        raise LookupError(mark.body.model)

    @on_kind(Kind.ERROR)
    def error(self, frame: Frame) -> Outcomes:
        return None


def test_a_rule_that_crashes_at_a_mark_is_an_error_without_a_frame() -> None:
    trace = silent().mark(GateOpened("go")).mark(ModelCall(model="heard")).refuses().trace()
    found = judge(load_book(), trace, rules=[Listening])
    assert [(row.verdict, row.frames) for row in found] == [(Verdict.ERROR, ())]
    assert "heard" in found[0].actual


def test_marks_have_no_order_to_the_messages_of_two_connections() -> None:
    trace = silent().on("c2").asks("thread/read").mark(ModelCall(model="heard")).trace(End.CLOSED)
    assert judge(load_book(), trace, rules=[Listening]) == []


class Missing(Monitor):
    """Rule that reports at the next message how many marks it did not get."""

    id, title, level, needs = "test.missing", "missing", Level.MUST, ("core",)

    def begin(self) -> None:
        self._missed: list[Mark[MarkBody]] = []

    @on_mark(ModelCall)
    def called(self, mark: Mark[ModelCall]) -> Outcomes:
        return None

    def on_missed_mark(self, mark: Mark[MarkBody]) -> None:
        self._missed.append(mark)

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if self._missed:
            yield Witness(f"{len(self._missed)} missed", (frame,))


def test_a_rule_is_told_of_the_marks_that_may_be_about_another_connection() -> None:
    talk = silent().mark(ModelCall()).on("c2").asks("thread/read")
    talk.mark(ModelCall()).mark(GateOpened("go")).mark(Closed("c1")).mark(ModelCall())
    found = judge(load_book(), talk.asks("thread/read").trace(), rules=[Missing])
    assert [row.subject for row in found] == ["1 missed"]


def test_a_rule_that_crashes_when_it_is_told_so_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crash(_: Monitor, mark: Mark[MarkBody]) -> None:
        raise LookupError("no such thing")

    monkeypatch.setattr(Missing, "on_missed_mark", crash)
    trace = silent().on("c2").asks("thread/read").mark(ModelCall()).trace(End.CLOSED)
    found = judge(load_book(), trace, rules=[Missing])
    assert [(row.verdict, row.frames) for row in found] == [(Verdict.ERROR, ())]


def test_of_a_connection_that_we_ended_nothing_is_owed_and_of_the_next_one_it_is() -> None:
    def restarted(*, first_closed: bool) -> Trace:
        talk = running()
        if first_closed:
            talk.mark(Closed("c1"))
        return talk.on("c2").asks("thread/read").trace()

    def unmet(trace: Trace) -> list[tuple[str, str]]:
        found = judge(load_book(), trace, all_rules().values())
        return [(row.rule, row.subject) for row in found if row.verdict is Verdict.FAIL]

    assert [rule for rule, _ in unmet(restarted(first_closed=True))] == ["request.answered"]
    assert "turn.completes" in [rule for rule, _ in unmet(restarted(first_closed=False))]


def test_messages_before_we_ended_a_connection_are_judged() -> None:
    talk = opened().plain_turn().turn_completed().mark(Closed("c1"))
    assert [row.verdict for row in rows(talk.trace(), "turn.completed-once")] == [
        Verdict.PASS,
        Verdict.FAIL,
    ]


def test_marks_are_about_the_one_connection_that_is_still_open() -> None:
    talk = silent().mark(Closed("c1")).on("c2").asks("thread/read")
    trace = talk.mark(ModelCall(model="heard")).trace(End.CLOSED)
    assert [row.verdict for row in judge(load_book(), trace, rules=[Listening])] == [Verdict.ERROR]


def test_a_live_stream_and_a_stored_trace_get_the_same_rows() -> None:
    trace = running().failing(will_retry=True).delta("m-9", "x").trace()
    live = Judge(load_book(), trace, all_rules().values())
    for frame in trace.frames:
        live.feed(frame)
    assert live.finish(End.QUIESCENT) == feed_trace(
        load_book(), trace, all_rules().values()
    ).finish(End.QUIESCENT)


def test_a_notification_with_an_id_is_none_and_breaks_no_rule() -> None:
    """No handler of notifications sees it, since no view has it as one."""
    talk = running()
    for method in ("turn/completed", "item/started", "serverRequest/resolved"):
        talk.says({"method": method, "id": 7, "params": {"turn": {"id": "turn_1"}}})
    found = judge(load_book(), talk.trace(End.CLOSED), all_rules().values())
    assert [row for row in found if row.verdict is Verdict.ERROR] == []
    assert {row.rule for row in found if row.verdict is Verdict.FAIL} == {
        "method.right-form",
        "method.known",
        "server-request.id-unique",
    }


def test_a_verdict_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(Verdict.PASS)


def test_rule_ids_are_checked_and_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="is taken by"):
        rule("turn.completes", title="x", level=Level.MUST)(Broken)
    with pytest.raises(ValueError, match=r"family\.slug"):
        rule("turnCompletes", title="x", level=Level.MUST)(Broken)


def test_every_rule_says_what_it_judges_and_is_cited_by_the_book() -> None:
    book = load_book()
    capabilities = {row.id for row in book.capabilities}
    for rule_id, monitor in all_rules().items():
        words = len((monitor.__doc__ or "").split())
        assert words > 20, f"the docstring of {rule_id} has {words} words: explain it in 21 or more"
        assert book.requirements_of(rule_id), f"no requirement cites {rule_id}"
        for capability in monitor.needs:
            assert capability in capabilities, f"{rule_id} needs unknown {capability}"


# They judge only what follows from the sentences that they cite, and weigh less than those: that a
# description in a file and a listed one are the same, and what an unreadable file is, is not said.
LIGHTER = {
    "notification.not-answered",
    "skills.description-from-file",
    "skills.error-told",
    "skills.found-by-name",
    "skills.invoked",
}


def test_a_rule_weighs_as_much_as_the_gravest_requirement_it_judges() -> None:
    """A rule of level MUST needs a requirement of level MUST, and so on down."""
    book = load_book()
    for rule_id, monitor in all_rules().items():
        levels = {str(row.clause.level) for row in book.requirements_of(rule_id)}
        assert str(monitor.level) in levels or rule_id in LIGHTER, rule_id
