"""Differences between the messages of two runs, and those that may break a client."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.ledger.message_schema import MessageCollector, Messages
from harness.judge.ledger.record import Record
from harness.report.compare.comparison import compare
from harness.report.compare.schemas import CLIENT_EFFECTS, ChangeSort
from harness.report.compare.values import Change, Comparison, Kind
from harness.report.results.outcome import UNSTEADY, Finding, ScenarioOutcome
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.surface.agent_exec import Exec
from harness.trace.trace import Header
from tests.unit.compare.recorded_runs import played, run

NOTE = {"method": "turn/started", "params": {"turn": {"id": "t", "status": "inProgress"}}}


def spoke(*messages: dict[str, Any], name: str = "turns/one") -> ScenarioOutcome:
    """A scenario in which the server wrote these messages; requests of ours are answered.

    What has a type is an event of exec.
    """
    if "type" in messages[0]:
        return played(name, record=Record(messages=events(*messages)))
    recorder, speech = Recorder(Header(), clock=lambda: 0.0), MessageCollector()
    asked = None
    for message in messages:
        mine = message.get("id") == "ours" and "method" in message
        direction = Direction.TO_TARGET if mine else Direction.FROM_TARGET
        frame = recorder.record(as_line(message), direction, connection="c1")
        asked = frame if mine else asked
        speech.feed(frame, asked)
    return played(name, record=Record(messages=speech.finish()))


def events(*messages: dict[str, Any]) -> Messages:
    recorder, speech = Recorder(Header(), classify=Exec().classify), MessageCollector()
    for message in messages:
        frame = recorder.record(as_line(message), Direction.FROM_TARGET, connection="p1")
        speech.feed_event(frame)
    return speech.finish()


def as_line(message: dict[str, Any]) -> bytes:
    import json

    return json.dumps(message).encode()


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Comparison:
    return compare(run("old", spoke(*first)), run("new", spoke(*second)))


def only(found: Comparison) -> Change:
    [change] = [one for one in found.changes if one.kind in (Kind.BREAKING, Kind.ADDITIVE)]
    return change


def note(**turn: Any) -> dict[str, Any]:
    return {"method": "turn/started", "params": {"turn": turn}}


def item(**fields: Any) -> dict[str, Any]:
    return {"method": "item/started", "params": {"item": fields}}


def answer(**result: Any) -> list[dict[str, Any]]:
    return [{"id": "ours", "method": "thread/read", "params": {}}, {"id": "ours", "result": result}]


BEGUN = {"type": "turn.started"}
ASK = {"id": 1, "method": "item/tool/ask", "params": {"a": 1}}

CASES = [
    (ChangeSort.NOTIFICATION_GONE, [NOTE, item(type="a")], [NOTE]),
    (ChangeSort.NOTIFICATION_NEW, [NOTE], [NOTE, item(type="a")]),
    (ChangeSort.REQUEST_GONE, [NOTE, ASK], [NOTE]),
    (ChangeSort.REQUEST_NEW, [NOTE], [NOTE, ASK]),
    (ChangeSort.EVENT_GONE, [BEGUN, {"type": "item.updated"}], [BEGUN]),
    (ChangeSort.EVENT_NEW, [BEGUN], [BEGUN, {"type": "item.updated"}]),
    (ChangeSort.RESULT_GONE, [NOTE, *answer(a=1)], [NOTE]),
    (ChangeSort.RESULT_NEW, [NOTE], [NOTE, *answer(a=1)]),
    (ChangeSort.MEMBER_GONE, [note(id="t", size=1)], [note(id="t")]),
    (ChangeSort.MEMBER_NEW, [note(id="t")], [note(id="t", size=1)]),
    (ChangeSort.OPTIONAL, [note(id="t"), note(id="u")], [note(id="t"), note()]),
    (ChangeSort.ALWAYS, [note(id="t"), note()], [note(id="t"), note(id="u")]),
    (ChangeSort.WIDER, [note(id="t"), note(id="u")], [note(id="t"), note(id=None)]),
    (ChangeSort.NARROWER, [note(id="t"), note(id=None)], [note(id="t"), note(id="u")]),
    (ChangeSort.WORD_NEW, [note(status="idle")], [note(status="idle"), note(status="asleep")]),
    (ChangeSort.WORD_GONE, [note(status="idle"), note(status="asleep")], [note(status="idle")]),
    (ChangeSort.VARIANT_NEW, [item(type="a")], [item(type="a"), item(type="b")]),
    (ChangeSort.VARIANT_GONE, [item(type="a"), item(type="b")], [item(type="a")]),
    (
        ChangeSort.ELSEWHERE,
        [item(type="a"), item(type="b"), *answer(items=[{"type": "a"}])],
        [item(type="a"), item(type="b"), *answer(items=[{"type": "a"}, {"type": "b"}])],
    ),
]


@pytest.mark.parametrize(("sort", "first", "second"), CASES, ids=[str(one[0]) for one in CASES])
def test_a_change_is_told_by_what_happened_and_whether_it_breaks_a_client(
    sort: ChangeSort, first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    found = compared(first, second)
    change = only(found)
    breaks, why = CLIENT_EFFECTS[sort]
    if sort in (ChangeSort.OPTIONAL, ChangeSort.ALWAYS):
        why += "; absent for example in turns/one"
    assert change.subject.startswith(f"{sort}: ")
    assert (change.kind is Kind.BREAKING, change.counts, change.note) == (breaks, breaks, why)
    assert found.worse is breaks


def test_every_sort_of_change_has_a_case_and_a_reason() -> None:
    assert {one[0] for one in CASES} == set(ChangeSort) == set(CLIENT_EFFECTS)


def test_the_same_messages_differ_in_nothing() -> None:
    for first, second, third in [(one[1], one[2], one[0]) for one in CASES]:
        assert compared(first, first).changes == [], third
        assert compared(second, second).changes == [], third


def test_scenarios_of_one_run_alone_change_no_messages() -> None:
    first = run("old", spoke(NOTE), spoke(item(type="a"), name="turns/old"))
    second = run("new", spoke(NOTE), spoke(ASK, name="turns/new"))
    assert compare(first, second).changes == []


def test_a_member_of_an_object_that_never_came_is_not_gone() -> None:
    nested = note(id="t", error={"message": "m"})
    change = only(compared([nested], [note(id="t", error=None)]))
    assert change.subject == f"{ChangeSort.WIDER}: notification turn/started: params.turn.error"


def test_both_traces_are_named() -> None:
    change = only(compared([note(id="t")], [note(id="t"), note(id=None)]))
    assert change.shown_before.trace == change.shown_after.trace == "/turns/one.jsonl"


def test_new_members_of_one_object_are_one_change() -> None:
    found = compared([note(id="t")], [note(id="t", size=1, place="here", when=None)])
    assert only(found).after == "place (string), size (number), when (null)"


def test_many_notifications_of_one_family_are_one_change() -> None:
    family = [{"method": f"legacy/event/{name}", "params": {}} for name in "abcde"]
    change = only(compared([NOTE, *family], [NOTE]))
    assert "legacy/event/… (5 of them)" in change.subject
    assert change.counts


def test_names_that_are_ids_are_one_member() -> None:
    def keyed(name: str) -> dict[str, Any]:
        return {"method": "answers", "params": {"01a2-77": {}, name: {"text": "x"}}}

    assert compared([keyed("4f-1 a")], [keyed("99-2 b")]).changes == []


def listing(*names: str | None) -> list[dict[str, Any]]:
    return answer(data=[{"id": "t", "name": name} for name in names])


@pytest.mark.parametrize("empty", [{"data": []}, {"data": [], "by": {}}])
def test_empty_lists_and_maps_lack_no_member(empty: dict[str, Any]) -> None:
    full = {"data": [{"id": "t"}], "by": {"1": "x"}} if "by" in empty else {"data": [{"id": "t"}]}
    first = run("old", spoke(*answer(**full)), spoke(*answer(**full), name="turns/two"))
    second = run("new", spoke(*answer(**full)), spoke(*answer(**empty), name="turns/two"))
    for pair in ((first, second), (second, first)):
        assert compare(*pair).changes == compare(*pair).unsteady == []


def test_elements_that_differ_in_few_scenarios_are_unsteady() -> None:
    """The elements of an array may depend on the moment."""
    names = ("turns/one", "turns/two", "turns/three")
    steady = [spoke(*listing("a", "b"), name=name) for name in names]
    other = [*steady[:2], spoke(*listing("a", None), name=names[2])]
    found = compare(run("old", *steady), run("new", *other))
    assert (found.changes, len(found.unsteady), found.worse) == ([], 1, False)
    everywhere = [spoke(*listing("a", None), name=name) for name in names]
    found = compare(run("old", *steady), run("new", *everywhere))
    assert (len(found.changes), found.unsteady, found.worse) == (1, [], True)


def test_absent_member_is_shown_by_a_trace_that_lacks_it() -> None:
    first = [spoke(note(id="t"), note(id="u"), name=name) for name in ("turns/one", "turns/two")]
    second = [first[0], spoke(note(id="t"), note(), name="turns/two")]
    change = only(compare(run("old", *first), run("new", *second)))
    assert change.shown_after.trace == "/turns/two.jsonl"
    assert change.note.endswith("; absent for example in turns/two")


def test_messages_of_a_scenario_that_a_repetition_lacks_are_unsteady() -> None:
    unsteady = (UNSTEADY, "played again it was different", 1)
    first, second = spoke(note(id="t"), note(id="u")), spoke(note(id="t"), note())
    second.findings = [Finding(*unsteady)]
    found = compare(run("old", first), run("new", second))
    assert (found.changes, len(found.unsteady), found.worse) == ([], 1, False)
