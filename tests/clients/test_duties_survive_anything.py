"""Duties stay robust against anything that a client writes: they judge or abstain, never raise."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judge.rows import CRASH_SUBJECT
from harness.play.client_duties.live import ClientJudge
from tests.clients.dutiful import dutiful
from tests.clients.duty_matrix import rows
from tests.rules.test_rules_survive_anything import paths, spoilt, values
from tests.rules.traces import Talk

FRAMES = [(frame.from_target, frame.json) for frame in dutiful().frames]


@st.composite
def spoilt_sessions(draw: st.DrawFn) -> list[tuple[bool, Any]]:
    """The session of a dutiful client with messages lost, moved, repeated and spoilt."""
    session = list(FRAMES)
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(session) - 1))
        from_server, message = session[place]
        match draw(st.sampled_from(["value", "drop", "repeat", "move"])):
            case "value":
                path = draw(st.sampled_from(paths(message)))
                session[place] = (from_server, spoilt(message, path, draw(values)))
            case "drop" if len(session) > 1:
                del session[place]
            case "repeat":
                session.insert(draw(st.integers(0, len(session))), session[place])
            case _:
                session.insert(draw(st.integers(0, len(session) - 1)), session.pop(place))
    return session


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(session=spoilt_sessions())
def test_no_duty_breaks_on_a_spoilt_session(session: list[tuple[bool, Any]]) -> None:
    talk = Talk()
    for from_server, message in session:
        raw = json.dumps(message).encode()
        (talk.says if from_server else talk.sends)(raw)
    assert [row for row in rows(talk.trace()) if row.subject == CRASH_SUBJECT] == []


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.tuples(st.booleans(), values | st.binary(max_size=9)), max_size=9))
def test_no_bytes_stop_the_judge_of_clients(lines: list[tuple[bool, Any]]) -> None:
    judge = ClientJudge("anything")
    judge.open_connection("1")
    for from_server, line in lines:
        raw = line if isinstance(line, bytes) else json.dumps(line).encode()
        (judge.add_server_message if from_server else judge.add_client_message)("1", raw)
    judge.close_connection("1")
    assert all(one.verdict != "ERROR" and one.to_json() for one in judge.finish())
