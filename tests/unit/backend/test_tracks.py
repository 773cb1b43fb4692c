"""Choice of the thread that a model call belongs to, and of its step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.model.script import ModelStep, When
from harness.model.tracks import Track, Tracks


def step(**fields: Any) -> ModelStep:
    return ModelStep.model_validate(fields)


REPLY = step(reply=[{"message": "x"}])
FAIL_TWICE = step(fail={"status": 500, "times": 2})
FAIL_ALWAYS = step(fail={"status": 500, "times": "until-turn-ends"})
FOR_SOME = step(when={"input_lacks": ["later"]}, reply=[{"message": "x"}])
ALWAYS_FOR_SOME = step(
    when={"input_lacks": ["later"]}, fail={"status": 500, "times": "until-turn-ends"}
)
CUT_TWICE = step(reply=[{"message": {"deltas": ["a", {"disconnect": {"times": 2}}]}}])


def test_steps_come_in_order_and_then_none() -> None:
    track = Track("t", [REPLY, REPLY])
    assert [track.next_step(1) for _ in range(4)] == [0, 1, -1, -1]
    assert track.step(-1) is None


def test_step_is_repeated_as_often_as_it_says() -> None:
    track = Track("t", [FAIL_TWICE, CUT_TWICE, REPLY])
    assert [track.next_step(1) for _ in range(5)] == [0, 0, 1, 1, 2]


def test_until_turn_ends_ends_with_the_next_user_message() -> None:
    track = Track("t", [FAIL_ALWAYS, REPLY])
    assert [track.next_step(1) for _ in range(3)] == [0, 0, 0]
    assert track.next_step(2) == 1


def test_until_turn_ends_that_was_not_played_is_not_ended_by_the_first_message() -> None:
    track = Track("t", [REPLY, FAIL_ALWAYS, REPLY])
    assert [track.next_step(1), track.next_step(2), track.next_step(2), track.next_step(3)] == [
        0,
        1,
        1,
        2,
    ]


def test_unplayed_counts_what_no_call_asked_for() -> None:
    track = Track("t", [FAIL_ALWAYS, REPLY])
    assert track.unplayed_count == 2
    track.next_step(1)
    assert track.unplayed_count == 1
    track.next_step(2)
    assert track.unplayed_count == 0


def test_with_one_thread_every_call_is_its() -> None:
    tracks = Tracks({"t": [REPLY]})
    assert tracks.track_of([]) is tracks.all[0]
    assert tracks.track_of(["whatever"]) is tracks.all[0]


def test_marker_in_the_input_tells_the_thread() -> None:
    tracks = Tracks({"a": [REPLY], "b": [REPLY]}, {"a": "#1#", "b": "#2#"})
    found = [tracks.track_of(texts) for texts in (["x #2# y"], ["first #1#", "more"], ["neither"])]
    assert [track and track.alias for track in found] == ["b", "a", None]


def test_without_markers_threads_are_told_apart_by_their_first_text() -> None:
    tracks = Tracks({"a": [REPLY], "b": [REPLY]})
    texts = (["one"], ["two"], ["one", "again"], ["three"])
    found = [tracks.track_of(given) for given in texts]
    assert [track and track.alias for track in found] == ["a", "b", "a", None]


def test_a_fork_is_told_by_the_last_marker_in_its_history() -> None:
    tracks = Tracks({"t": [REPLY], "f": [REPLY]}, {"t": "[t]", "f": "[f]"})
    assert tracks.track_of(["[t] hello"]) is tracks.all[0]
    assert tracks.track_of(["[t] hello", "[f] go on"]) is tracks.all[1]
    assert tracks.track_of(["[t] hello", "[f] go on", "more"]) is tracks.all[1]
    assert tracks.track_of(["hello"]) is None


def lacks(*texts: str) -> Callable[[When], bool]:
    """A call in whose input these texts stand, and no others."""
    return lambda when: not set(when.input_lacks) & set(texts)


def test_step_for_other_calls_is_passed_over_and_not_missed() -> None:
    track = Track("t", [REPLY, FOR_SOME, FOR_SOME, REPLY])
    assert track.unplayed_count == 2
    assert track.next_step(1, lacks()) == 0
    assert track.next_step(2, lacks("later")) == 3
    assert track.unplayed_count == 0


def test_step_for_such_calls_is_played_by_one() -> None:
    track = Track("t", [FOR_SOME, REPLY])
    assert [track.next_step(1, lacks()) for _ in range(3)] == [0, 1, -1]


def test_step_that_is_repeated_ends_where_calls_are_others() -> None:
    track = Track("t", [ALWAYS_FOR_SOME, REPLY])
    assert [track.next_step(1, lacks()) for _ in range(3)] == [0, 0, 0]
    # The number of texts says nothing here: a compaction's own prompt is one, a turn's another.
    assert track.next_step(1, lacks("later")) == 1


def test_script_may_end_with_steps_for_certain_calls() -> None:
    track = Track("t", [REPLY, FOR_SOME])
    assert track.next_step(1, lacks()) == 0
    assert track.next_step(2, lacks("later")) == -1
    assert track.unplayed_count == 0


def named(text: str) -> ModelStep:
    return step(when={"input_contains": [text]}, reply=[{"message": "x"}])


def fits(*texts: str) -> Callable[[When], bool]:
    """Return the test of a call whose input holds these texts."""
    return lambda when: set(map(str, when.input_contains)) <= set(texts)


def test_call_without_a_marker_belongs_to_the_thread_whose_condition_names_it() -> None:
    tracks = Tracks({"t": [named("q01")], "u": [named("q02")]}, {"t": "T", "u": "U"})
    track = tracks.track_of(["do q02"], fits("q02"))
    assert track is not None
    assert track.alias == "u"


def test_condition_that_names_a_later_text_counts_more_than_a_marker() -> None:
    """A fork has the marker of its origin, and a rollback took its own away."""
    tracks = Tracks({"t": [named("q01")], "u": [named("q02")]}, {"t": "T", "u": "U"})
    track = tracks.track_of(["T do q01", "do q02"], fits("q01", "q02"))
    assert track is not None
    assert track.alias == "u"


def test_marker_counts_where_the_next_step_has_no_condition() -> None:
    tracks = Tracks({"t": [REPLY], "u": [named("q02")]}, {"t": "T", "u": "U"})
    track = tracks.track_of(["T do q01", "do q02"], fits("q01", "q02"))
    assert track is not None
    assert track.alias == "t"


def test_call_that_no_marker_and_no_condition_names_belongs_to_none() -> None:
    tracks = Tracks({"t": [named("q01")], "u": [REPLY]}, {"t": "T", "u": "U"})
    assert tracks.track_of(["do q03"], fits("q03")) is None
