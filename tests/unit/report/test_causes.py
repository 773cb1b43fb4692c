"""Similar findings have one cause; the server's own texts are shown beside it."""

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.causes import ServerErrors, group_by_cause
from tests.rules.traces import TROUBLE, Talk, agent_message


def row(
    rule: str = "turn.known",
    level: Level = Level.MUST,
    *,
    seq: int = 0,
    path: str = "",
    verdict: Verdict = Verdict.FAIL,
) -> Row:
    places = (Place(seq, path),) if path else ()
    return Row(rule, f"subject {seq}", verdict, level, (seq,), "a", "b", places=places)


def test_findings_about_one_member_are_one_cause_whichever_element_it_stands_in() -> None:
    rows = [row(seq=n, path=f"result.data[{n}].id") for n in (3, 1, 2)]
    (cause,) = group_by_cause(rows)
    assert [one.subject for one in cause.rows] == ["subject 1", "subject 2", "subject 3"]


def test_other_members_rules_levels_and_verdicts_are_other_causes() -> None:
    rows = [
        row(path="result.data[0].id"),
        row(path="result.data[0].name"),
        row("turn.other", path="result.data[0].id"),
        row(level=Level.SHOULD, path="result.data[0].id"),
        row(verdict=Verdict.KNOWN, path="result.data[0].id"),
        row(),
    ]
    assert len(group_by_cause(rows)) == len(rows)


def test_the_heaviest_come_first_and_known_ones_last() -> None:
    rows = [
        row("a.known", verdict=Verdict.KNOWN),
        row("a.info", Level.INFO),
        row("a.late", seq=9),
        row("a.broken", Level.INFO, verdict=Verdict.ERROR, seq=8),
        row("a.early", seq=4),
        row("a.should", Level.SHOULD),
    ]
    told = [cause.first.rule for cause in group_by_cause(rows)]
    assert told == ["a.broken", "a.early", "a.late", "a.should", "a.info", "a.known"]


def words_about(talk: Talk, rule: str) -> list[str]:
    trace = talk.trace()
    found = [one for one in judge(load_book(), trace, all_rules().values()) if one.rule == rule]
    return ServerErrors(trace).messages_for(found[0])


def test_the_error_of_the_turn_is_told_with_what_went_wrong_in_it() -> None:
    message = agent_message("m-1", "x")
    talk = Talk().start_thread().start_turn().completed(message)
    talk.failing(will_retry=False).end_turn(status="failed", error=TROUBLE)
    assert words_about(talk, "item.completed-after-started") == [TROUBLE["message"]]


def test_a_refusal_is_reported_with_its_request() -> None:
    talk = Talk().asks("thread/read", threadId="thr_1").refuses("no such thread: thr_1")
    trace = talk.trace()
    assert ServerErrors(trace).messages_for(row(seq=0)) == ["no such thread: thr_1"]
    assert ServerErrors(trace).messages_for(row(seq=1)) == ["no such thread: thr_1"]


def test_a_finding_is_not_repeated_by_its_cause() -> None:
    talk = Talk().asks("thread/read", threadId="thr_1").refuses("a")
    assert ServerErrors(talk.trace()).messages_for(row(seq=1)) == []
