"""The conversation that frames show."""

from harness.trace.views import Conversation, items_of, turns_of
from tests.rules.approval_talk import Approvals, command_item
from tests.rules.case import opened, running
from tests.rules.traces import Talk, agent_message, thread_object

SUMMARY = "item/reasoning/summaryTextDelta"


def view(talk: Talk) -> Conversation:
    conversation = Conversation()
    for frame in talk.trace().frames:
        conversation.feed(frame)
    return conversation


def test_a_thread_knows_its_start_its_announcement_and_its_statuses() -> None:
    talk = opened().status("active").status("idle")
    thread = view(talk).threads["thr_1"]
    frames = talk.trace().frames
    assert (thread.request, thread.reply) == (frames[0], frames[1])
    assert (thread.opening_answers, thread.starts) == ([frames[1]], [frames[2]])
    assert thread.statuses == frames[3:]
    assert thread.subject == "thread thr_1"


def test_a_resumed_or_forked_thread_was_opened_but_not_started() -> None:
    talk = Talk().asks("thread/resume", threadId="thr_1").answers({"thread": thread_object()})
    talk.asks("thread/fork", threadId="thr_1").answers({"thread": thread_object("thr_2")})
    threads = view(talk).threads
    assert [len(threads[name].opening_answers) for name in ("thr_1", "thr_2")] == [1, 1]
    assert threads["thr_1"].reply is None


def test_a_turn_gathers_what_names_it() -> None:
    talk = running().failing(will_retry=True).interrupt().answers({}).end_turn(status="interrupted")
    turn = view(talk).turns["turn_1"]
    assert (turn.thread_id, turn.status, turn.subject) == ("thr_1", "interrupted", "turn turn_1")
    assert [f.seq for f in (*turn.starts, *turn.errors, *turn.interrupts, *turn.completions)] == [
        6,
        9,
        10,
        13,
    ]
    assert turn.request is not None
    assert turn.reply is not None


def test_a_turn_that_was_announced_before_its_reply_is_one_turn() -> None:
    conversation = view(opened().ask_turn().turn_started().reply_turn())
    assert list(conversation.turns) == ["turn_1"]
    assert conversation.threads["thr_1"].turns["turn_1"] is conversation.turns["turn_1"]


def test_an_item_gathers_its_deltas_by_method_and_index() -> None:
    talk = running().started({"type": "reasoning", "id": "r"})
    for index, delta in ((0, "a"), (1, "b"), (0, "c")):
        talk.delta("r", delta, method=SUMMARY, summaryIndex=index)
    talk.delta("r", "raw", method="item/reasoning/textDelta", contentIndex="0")
    conversation = view(talk)
    item = conversation.turns["turn_1"].items["r"]
    assert item.joined_deltas(SUMMARY) == "ac"
    assert item.joined_deltas(SUMMARY, 1) == "b"
    assert item.joined_deltas(SUMMARY, 2) is None
    assert item.joined_deltas("item/reasoning/textDelta") == "raw"
    assert (item.first_delta, item.last_delta) == (
        talk.trace().frames[10],
        talk.trace().frames[13],
    )
    assert conversation.item_of(talk.last) is item
    assert conversation.turn_of(talk.last) is item.turn


def test_an_item_that_is_started_again_begins_anew() -> None:
    talk = running().started(agent_message("m", "")).delta("m", "lost")
    talk.started(agent_message("m", "")).delta("m", "kept")
    item = view(talk).turns["turn_1"].items["m"]
    assert item.joined_deltas("item/agentMessage/delta") == "kept"
    assert len(item.starts) == 2


def test_deltas_are_kept_until_the_message_after_the_end_of_their_item() -> None:
    talk = running().message("m", "a", "b")
    assert view(talk).turns["turn_1"].items["m"].joined_deltas("item/agentMessage/delta") == "ab"
    later = view(talk.status("idle")).turns["turn_1"].items["m"]
    assert later.joined_deltas("item/agentMessage/delta") is None
    assert later.last_delta is talk.trace().frames[11]


def test_deltas_of_an_item_that_is_never_completed_go_with_its_turn() -> None:
    talk = running().started(agent_message("m", "")).delta("m", "a").turn_completed()
    assert view(talk).turns["turn_1"].items["m"].joined_deltas("item/agentMessage/delta") == "a"
    assert view(talk.status("idle")).turns["turn_1"].items["m"].parts == {}


def test_the_same_item_id_in_two_turns_is_two_items() -> None:
    talk = running().started(agent_message("m", "")).delta("m", "a").start_turn("turn_2")
    talk.started(agent_message("m", ""), "turn_2").delta("m", "b", "turn_2")
    turns = view(talk).turns
    assert turns["turn_1"].items["m"].joined_deltas("item/agentMessage/delta") == "a"
    assert turns["turn_2"].items["m"].joined_deltas("item/agentMessage/delta") == "b"


def test_the_type_of_an_item_is_that_of_its_start() -> None:
    changed = running().started(agent_message("m", "")).completed({"type": "plan", "id": "m"})
    assert view(changed).turns["turn_1"].items["m"].type == "agentMessage"
    alone = running().completed({"type": "plan", "id": "m"})
    assert view(alone).turns["turn_1"].items["m"].type == "plan"


def test_answers_meet_requests_by_connection_direction_and_type_of_id() -> None:
    talk = Talk().asks("a").says({"id": "1", "result": {}}).sends({"id": 1, "result": {}})
    talk.on("c2").answers({}).on("c1").says({"id": True, "result": {}}).answers({})
    talk.says({"method": "ask", "id": 1, "params": {}}).sends({"id": 1, "result": {}})
    conversation = view(talk)
    asked = [conversation.request_of(frame) for frame in talk.trace().frames]
    frames = talk.trace().frames
    assert asked == [None, None, None, None, None, frames[0], None, frames[6]]


def test_a_question_is_found_by_its_item_and_has_our_first_answer() -> None:
    talk = Approvals().running().started(command_item()).question().question()
    talk.decides("accept", to=0).decides("decline", to=0)
    conversation, frames = view(talk), talk.trace().frames
    first, second = conversation.questions_of(conversation.turns["turn_1"], "call_1")
    assert (first, second) == (frames[10], frames[11])
    assert conversation.answer_of(first) is frames[12]
    assert conversation.answer_of(second) is None
    assert conversation.questions_of(conversation.turns["turn_1"], "call_2") == []


def test_messages_without_the_ids_they_need_are_passed_over() -> None:
    talk = Talk().tells("turn/started").tells("item/started", turnId="t").tells("error", turnId=3)
    talk.says(b"[]").says({"method": "item/started", "params": None}).tells("thread/started")
    conversation = view(talk)
    assert (conversation.turns, conversation.threads) == ({}, {})
    assert [conversation.turn_of(frame) for frame in talk.trace().frames] == [None] * 6
    assert conversation.item_of(talk.last) is None


def test_turns_and_items_are_found_in_whatever_stands_there() -> None:
    assert turns_of({"turns": [{"id": "a"}, 5]}) == [{"id": "a"}, {}]
    assert items_of({"items": [{"id": "i"}]}) == [{"id": "i"}]
    assert turns_of(None) == items_of({"items": "x"}) == []
