"""Messages that a trace owes at its end: judged, suspected, or skipped, each with a reason."""

from typing import Any

import pytest

from harness.judge.judge import feed_trace
from harness.judge.missing_messages import Decision, Treatment, decide_treatment
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.trace.foreign import read
from harness.trace.marks import Closed
from harness.trace.trace import End, Trace
from tests.rules.traces import THREAD, TURN, Talk, command
from tests.unit.trace.test_foreign import line, nowhere


def recording(talk: Talk, *notes: tuple[float, dict[str, Any]]) -> Trace:
    """The talk as others record it: its messages a millisecond apart, then these notes."""
    sides = {"to-target": "C>S", "from-target": "S>C"}
    frames = talk.trace().frames
    rows = [line(frame.at, sides[frame.direction], frame.json) for frame in frames]
    rows += [line(frames[-1].at + after, "##", note) for after, note in notes]
    return read(rows, name="talk.jsonl", names={}, paths_of=nowhere)


def decided(trace: Trace, *, settled: bool = False) -> Decision:
    seen = feed_trace(load_book(), trace, all_rules().values())
    return decide_treatment(trace, seen.open_ledgers, settle=1.0, settled=settled)


def hanging() -> Talk:
    """A turn that nothing ends."""
    return Talk().start_thread().start_turn()


def asking() -> Talk:
    """A question that the client does not answer."""
    talk = hanging().started(command("call_1"))
    params = {"threadId": THREAD, "turnId": TURN, "itemId": "call_1", "command": ["ls"]}
    method = "item/commandExecution/requestApproval"
    return talk.says({"method": method, "id": 7, "params": params})


def mark(kind: str) -> dict[str, Any]:
    return {"mark": kind, "data": {"n": 1}}


STOPPED = {"note": "server stdout EOF", "rc": 0}


def test_a_conversation_that_came_to_rest_is_judged() -> None:
    assert decided(hanging().trace(End.QUIESCENT)) == Decision(Treatment.JUDGED)


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (hanging().trace(End.EXITED), "the server ended"),
        (hanging().trace(End.TIMED_OUT), "its time was up"),
        (recording(hanging()), "it ends with its last message"),
        (recording(hanging(), (0.4, STOPPED)), "0.4 s after its last message; a silence of 1 s"),
        (recording(hanging(), (2.0, {**STOPPED, "rc": 3})), "the server ended with status 3"),
        (recording(asking(), (2.0, STOPPED)), "requestApproval id 7"),
        (recording(hanging().failing(will_retry=True), (2.0, STOPPED)), "a retry"),
        (recording(hanging(), (0.1, mark("model-call")), (2.0, STOPPED)), "1 answer(s) of the"),
    ],
)
def test_messages_that_may_still_have_come_are_not_judged(trace: Trace, why: str) -> None:
    decision = decided(trace)
    assert decision.treatment is Treatment.NOT_JUDGED
    assert why in decision.reason


def test_a_recording_that_was_silent_in_the_end_makes_suspicious() -> None:
    decision = decided(recording(hanging(), (1.5, STOPPED)))
    assert decision.treatment is Treatment.SUSPECTED
    assert "silent for 1.5 s" in decision.reason


def test_a_recording_whose_model_had_ended_is_judged() -> None:
    ended = (0.1, mark("model-call")), (0.2, mark("model-end")), (1.5, STOPPED)
    assert decided(recording(hanging(), *ended)).treatment is Treatment.JUDGED
    # A command takes its own time, whatever the model does.
    working = recording(hanging().started(command("call_1")), *ended)
    assert decided(working).treatment is Treatment.SUSPECTED
    assert "item call_1" in decided(working).reason


def test_the_user_can_say_that_the_server_was_at_rest() -> None:
    assert decided(recording(hanging()), settled=True).treatment is Treatment.JUDGED
    assert decided(recording(asking()), settled=True).treatment is Treatment.JUDGED


def test_a_process_that_was_started_again_owes_nothing_of_the_former_one() -> None:
    before, after = hanging().trace().frames, Talk().start_thread().trace().frames
    sides = {"to-target": "C>S", "from-target": "S>C"}
    rows = [line(one.at, sides[one.direction], one.json) for one in before]
    rows.append(line(1, "##", STOPPED))
    rows += [line(2 + one.at, sides[one.direction], one.json) for one in after]
    rows.append(line(5, "##", STOPPED))
    trace = read(rows, name="talk.jsonl", names={}, paths_of=nowhere)
    assert [one.body for one in trace.marks_of(Closed)] == [Closed("c1")]
    seen = feed_trace(load_book(), trace, all_rules().values())
    assert [obligation for one in seen.open_ledgers for obligation in one.open_obligations()] == []
