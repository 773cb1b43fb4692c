"""A slow server: the time of its answers, the estimate for a run, and the option that fits."""

import pytest

from harness.play.session.answer_times import answer_seconds, slow_note
from harness.trace.trace import Trace
from tests.rules.traces import Talk


def test_the_time_of_an_answer_is_the_median_without_the_handshake() -> None:
    talk = Talk()
    for number in (70, 71, 72):
        talk.sends({"method": "thread/list", "id": number, "params": {}})
        talk.answers({"data": []}, to=number)
    trace = talk.trace()
    answered = [frame.at for frame in trace.frames[-6:]]
    times = [answered[1] - answered[0], answered[3] - answered[2], answered[5] - answered[4]]
    assert answer_seconds(trace) == pytest.approx(sorted(times)[1])


def test_without_an_answer_there_is_no_time() -> None:
    empty: Trace = Talk().trace()
    assert answer_seconds(empty) == 0.0


def test_a_slow_server_is_noted_with_the_length_of_the_run_and_the_option_that_fits() -> None:
    note = slow_note(3.0, scale=1.0, scenario_seconds=17.0, scenarios=100, lanes=5)
    assert note == (
        "slow server: an answer takes 3.0 s, so 100 scenario(s) take about 6 min; if steps time "
        "out, give --timeout-scale 6; --max-time SECONDS ends earlier, with a verdict on what was "
        "played"
    )


def test_no_option_is_named_that_was_given_already() -> None:
    note = slow_note(3.0, scale=6.0, scenario_seconds=17.0, scenarios=100, lanes=5)
    assert "--timeout-scale" not in note
    assert "about 6 min" in note


def test_a_quick_server_is_not_noted() -> None:
    assert slow_note(0.2, scale=1.0, scenario_seconds=1.0, scenarios=500, lanes=1) == ""
