"""Sentences that say the meaning of a changed transcript for the protocol."""

import pytest

from harness.report.snapshot.changes import describe_changes, headline
from harness.report.snapshot.message import VARIES, Transcript
from harness.report.snapshot.stability import common_transcript, without_order
from tests.unit.snapshot.lines import ANSWER, COMPLETED, ITEM, PLAN, START, STARTED, said

PLAIN = said(START, ANSWER, STARTED, ITEM, COMPLETED)
REFUSAL = '<- {"id": "<request 1>", "error": {"code": -32600, "message": "busy"}}'


@pytest.mark.parametrize(
    ("after", "sentences"),
    [
        (
            said(START, ANSWER, STARTED, ITEM, PLAN, COMPLETED),
            ["one message more: turn/plan/updated after item/started (agentMessage)"],
        ),
        (said(START, ANSWER, ITEM, COMPLETED), ["one message gone: turn/started after the answer"]),
        (
            said(START, ANSWER, STARTED, COMPLETED, ITEM),
            [
                "another order: turn/completed now comes after turn/started,"
                " not after item/started (agentMessage)"
            ],
        ),
        (
            said(START, ANSWER.replace(', "status": "inProgress"', ""), STARTED, ITEM, COMPLETED),
            ["field gone: turn.status in the answer to turn/start"],
        ),
        (
            said(START, ANSWER, STARTED.replace("}}}", ', "error": null}}}'), ITEM, COMPLETED),
            ["new field: turn.error in turn/started: null"],
        ),
        (
            said(START, ANSWER, STARTED, ITEM, COMPLETED.replace('"completed"', '"failed"')),
            ['another value: turn.status in turn/completed: "completed" -> "failed"'],
        ),
        (
            said(START, ANSWER, STARTED, ITEM, COMPLETED.replace('"completed"', "7")),
            ['another type: turn.status in turn/completed: "completed" -> 7'],
        ),
        (said(START, REFUSAL, STARTED, ITEM, COMPLETED), ["turn/start is refused now: busy"]),
        (
            said(START, ANSWER, STARTED, ITEM, COMPLETED, end="exited"),
            ["another end of the conversation: quiescent -> exited"],
        ),
        (
            said(
                START.replace('{"threadId', '{"a": 1, "threadId'), ANSWER, STARTED, ITEM, COMPLETED
            ),
            ["new field: a in the client: turn/start: 1"],
        ),
    ],
)
def test_a_change_is_one_sentence(after: Transcript, sentences: list[str]) -> None:
    told = describe_changes(PLAIN, after)
    assert len(told) == len(sentences)
    for one, beginning in zip(told, sentences, strict=True):
        assert one.startswith(beginning)


def test_the_gravest_comes_first_and_the_rest_is_counted() -> None:
    worse = COMPLETED.replace('"completed"', '"failed"')
    told = describe_changes(PLAIN, said(START, ANSWER, ITEM, worse))
    assert [one.split(":")[0] for one in told] == ["one message gone", "another value"]
    assert headline(told) == f"{told[0]} (+1 more)"


def test_equal_changes_of_several_messages_are_reported_once() -> None:
    gone = [line.replace('"id": "<turn 1>"', '"x": 1') for line in (ANSWER, STARTED)]
    told = describe_changes(PLAIN, said(START, *gone, ITEM, COMPLETED))
    assert told[0] == ("field gone: turn.id in the answer to turn/start, turn/started (2 messages)")


def test_numbers_that_a_message_more_shifts_are_no_change() -> None:
    def item(number: int, kind: str) -> str:
        return ITEM.replace("<item 1>", f"<item {number}>").replace("agentMessage", kind)

    before = said(item(1, "userMessage"), item(2, "agentMessage"))
    after = said(item(1, "userMessage"), item(2, "reasoning"), item(3, "agentMessage"))
    assert len(describe_changes(before, after)) == 1


def test_a_name_of_another_thing_is_a_change() -> None:
    def about(number: int) -> str:
        return f'<- {{"method": "said", "params": {{"itemId": "<item {number}>"}}}}'

    told = describe_changes(said(about(1), about(2), about(1)), said(about(1), about(2), about(2)))
    assert len(told) == 1
    assert told[0].startswith("another value: itemId in said")


def test_varying_values_are_not_a_change() -> None:
    def ran(pid: int, by: str) -> str:
        return f'<- {{"method": "ran", "params": {{"pid": {pid}, "by": "{by}"}}}}'

    kept = common_transcript([said(ran(1, "a")), said(ran(2, "a"))])
    assert VARIES in kept.messages[0].line
    assert describe_changes(kept, said(ran(3, "b"))) == ['another value: by in ran: "a" -> "b"']


def test_an_order_that_comes_to_differ_is_told() -> None:
    loose = common_transcript([PLAIN, said(START, ANSWER, ITEM, STARTED, COMPLETED)])
    told = ["another order: what differs from play to play is other than before"]
    assert describe_changes(PLAIN, loose) == told
    free = without_order(PLAIN)
    assert describe_changes(PLAIN, free) == ["another order: it differs from play to play"]
    assert describe_changes(free, PLAIN) == ["another order: it is now the same in every play"]


def test_a_message_without_a_place_is_compared_nonetheless() -> None:
    lines = (START, ANSWER, ITEM, STARTED, COMPLETED)
    loose = common_transcript([PLAIN, said(*lines)])
    changed = [
        STARTED.replace('"turn/started"', '"turn/begun"') if one == STARTED else one
        for one in lines
    ]
    told = describe_changes(loose, said(*changed))
    assert [one.split(" after ")[0] for one in told] == [
        "one message gone: turn/started",
        "one message more: turn/begun",
    ]


def test_a_new_transcript_and_one_that_is_gone_are_told_as_that() -> None:
    assert describe_changes(None, PLAIN) == ["a new transcript of 5 messages"]
    assert describe_changes(PLAIN, None) == ["no scenario of this name is played"]
