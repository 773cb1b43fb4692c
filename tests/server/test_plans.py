"""Plans: the update_plan tool, and plans that the model proposes within its answer."""

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_side import (
    CREATED,
    CUT,
    Reply,
    calls,
    completed,
    delta,
    done,
    message,
    message_item,
    opened,
    says,
)
from session_peer import session

from reference_server.engine.plan_text import PlanSplitter, Side, split

STEPS = [{"step": "look", "status": "completed"}, {"step": "leap", "status": "in_progress"}]


async def test_a_plan_that_the_model_shares_is_told_and_answered(tmp_path) -> None:
    replies = [calls("update_plan", plan=STEPS, explanation="why"), says("done")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.turn_end(turn)
    [told] = peer.params_of("turn/plan/updated")
    assert told == {
        "threadId": thread,
        "turnId": turn,
        "explanation": "why",
        "plan": [
            {"step": "look", "status": "completed"},
            {"step": "leap", "status": "inProgress"},
        ],
    }
    assert peer.told_model() == "Plan updated"
    assert peer.completed_items("plan") == []


async def test_each_call_tells_the_whole_plan_anew(tmp_path) -> None:
    first = calls("update_plan", plan=STEPS)
    second = calls("update_plan", "call_2", plan=[])
    async with session(tmp_path, [first, second, says("done")]) as peer:
        await peer.run_turn(await peer.start_thread())
    told = peer.params_of("turn/plan/updated")
    assert [(t["explanation"], len(t["plan"])) for t in told] == [(None, 2), (None, 0)]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no plan": ({}, "`plan` must be an array"),
    "a plan that is no array": ({"plan": "look"}, "`plan` must be an array"),
    "a step that is no object": ({"plan": ["look"]}, "step 1 must have `step`"),
    "a step without words": ({"plan": [*STEPS, {"status": "pending"}]}, "step 3 must have `step`"),
    "the protocol's word": (
        {"plan": [{"step": "look", "status": "inProgress"}]},
        "pending, in_progress, completed",
    ),
    "no status": ({"plan": [{"step": "look"}]}, "`status` of step 1"),
    "a status of another type": ({"plan": [{"step": "look", "status": []}]}, "`status` of step 1"),
    "an explanation of another type": ({"plan": [], "explanation": 1}, "`explanation`"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_plan_that_cannot_be_read_is_said_to_the_model_alone(tmp_path, name: str) -> None:
    arguments, words = WRONG[name]
    async with session(tmp_path, [calls("update_plan", **arguments), says("oh")]) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    assert words in peer.told_model()
    assert peer.params_of("turn/plan/updated") == []


def texts(peer: Any, kind: str) -> list[str]:
    return [item["text"] for item in peer.completed_items(kind)]


async def test_a_proposed_plan_becomes_an_item_beside_the_answer(tmp_path) -> None:
    pieces = ["Well:\n<prop", "osed_plan>\n1. look\n", "2. leap\n</propo", "sed_plan>\nSo."]
    async with session(tmp_path, [says(*pieces), says("ok")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    assert texts(peer, "plan") == ["1. look\n2. leap"]
    assert texts(peer, "agentMessage") == ["Well:\nSo.", "ok"]
    deltas = peer.params_of("item/plan/delta")
    assert "".join(d["delta"] for d in deltas) == "1. look\n2. leap\n"
    [plan] = peer.completed_items("plan")
    assert {d["itemId"] for d in deltas} == {plan["id"]}
    begun = [p["item"] for p in peer.params_of("item/started")]
    assert {"type": "plan", "id": plan["id"], "text": ""} in begun
    # The model sees its own words, plan and all.
    assert peer.side.bodies[1]["input"][1]["content"][0]["text"] == "".join(pieces)


async def test_the_final_plan_counts_where_it_differs_from_its_deltas(tmp_path) -> None:
    final = "<proposed_plan>\nB\n</proposed_plan>"
    events = [opened(), delta("<proposed_plan>\nA\n</proposed_plan>"), done(message_item(final))]
    async with session(tmp_path, [Reply([CREATED, *events, completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [d["delta"] for d in peer.params_of("item/plan/delta")] == ["A\n"]
    assert texts(peer, "plan") == ["B"]
    assert texts(peer, "agentMessage") == [""]


async def test_a_plan_that_was_never_streamed_comes_whole(tmp_path) -> None:
    whole = done(message_item("Here.\n<proposed_plan>\nA\n</proposed_plan>\n"))
    async with session(tmp_path, [Reply([CREATED, whole, completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.params_of("item/plan/delta") == []
    assert (texts(peer, "plan"), texts(peer, "agentMessage")) == (["A"], ["Here.\n"])


async def test_a_plan_that_is_cut_off_is_completed_with_what_came(tmp_path) -> None:
    gate = anyio.Event()
    cut = Reply([CREATED, opened(), delta("<proposed_plan>\n1. lo"), gate])
    async with session(tmp_path, [cut]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/plan/delta")
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
    assert texts(peer, "plan") == ["1. lo"]
    started = [p["item"]["id"] for p in peer.params_of("item/started")]
    ended = [p["item"]["id"] for p in peer.params_of("item/completed")]
    assert sorted(started) == sorted(ended)


async def test_a_retried_answer_begins_a_plan_of_its_own(tmp_path) -> None:
    from session_peer import config

    cut = Reply([CREATED, opened(), delta("<proposed_plan>\nA"), CUT])
    whole = Reply([CREATED, *message("<proposed_plan>\nB\n</proposed_plan>"), completed()])
    async with session(tmp_path, [cut, whole], settings=config(stream_max_retries=1)) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    assert texts(peer, "plan") == ["A", "B"]


A, P = Side.ANSWER, Side.PLAN
SPLITS = {
    "": [],
    "no plan": [(A, "no plan")],
    "a <proposed_plan> within a line\n": [(A, "a <proposed_plan> within a line\n")],
    " <proposed_plan>\n": [(A, " <proposed_plan>\n")],
    "<proposed_plan> \nx\n</proposed_plan>": [(P, "x\n")],
    "<proposed_plan>\r\nx\r\n</proposed_plan>\r\ny": [(P, "x\r\n"), (A, "y")],
    "<proposed_plan>\n</proposed_plan>\n": [],
    "<proposed_plan>": [],
    "<proposed_plan>\nx": [(P, "x")],
    "<proposed_plan>\nx </proposed_plan>\n": [(P, "x </proposed_plan>\n")],
    "</proposed_plan>\n": [(A, "</proposed_plan>\n")],
    "<proposed_plan>\n<proposed_plan>\n</proposed_plan>\n": [(P, "<proposed_plan>\n")],
    "<proposed": [(A, "<proposed")],
    "a\n<p": [(A, "a\n<p")],
}


@pytest.mark.parametrize("text", SPLITS)
def test_where_a_plan_begins_and_ends(text: str) -> None:
    assert joined(split(text)) == SPLITS[text]


LINES = st.sampled_from(["<proposed_plan>", "</proposed_plan>", "<", "<proposed", "", "x", " "])
TEXTS = st.lists(LINES, max_size=8).map("\n".join)


def joined(pieces: list[tuple[Side, str]]) -> list[tuple[Side, str]]:
    found: list[tuple[Side, str]] = []
    for side, text in pieces:
        if found and found[-1][0] is side:
            found[-1] = (side, found[-1][1] + text)
        elif text:
            found.append((side, text))
    return found


@given(TEXTS, st.lists(st.integers(min_value=1, max_value=9), max_size=30))
def test_a_text_is_split_the_same_however_it_is_cut(text: str, lengths: list[int]) -> None:
    splitter, at, pieces = PlanSplitter(), 0, []
    for length in lengths:
        pieces += splitter.feed(text[at : at + length])
        at += length
    pieces += [*splitter.feed(text[at:]), *splitter.finish()]
    assert joined(pieces) == joined(split(text))
