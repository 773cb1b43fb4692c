"""Rules stay robust against anything that a server writes: they judge or abstain, never raise."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judge.judge import judge
from harness.judge.rows import CRASH_SUBJECT
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Frame
from harness.trace.surfaces import EXEC
from harness.trace.trace import Trace
from tests.rules.good_traces import GOOD
from tests.rules.streams import StreamTalk, kept
from tests.rules.traces import Talk

TRACES = [build() for build in GOOD.values()]
TRACES_PER_NAME = 20

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars | st.sampled_from(["thr_1", "turn_1", "m-1", "completed", "failed"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list):
        steps = list(range(len(value)))
    return [path, *(deeper for step in steps for deeper in paths(value[step], (*path, step)))]


def spoilt(message: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(message) if isinstance(message, dict) else list(message)
    copy[path[0]] = spoilt(copy[path[0]], path[1:], value)
    return copy


def written(frames: list[tuple[Frame, Any]], surface: str) -> Trace:
    if surface == EXEC:
        stream = StreamTalk().process(thread="thr_1", earlier=("hello",), model="a", schema="{}")
        for frame, message in frames:
            if frame.from_target:
                stream.line(message)
        return stream.calls("hello").answers("{}").exits().searched(kept("a")).trace()
    talk = Talk()
    for frame, message in frames:
        raw = json.dumps(message).encode()
        (talk.says if frame.from_target else talk.sends)(raw)
    return talk.trace()


@st.composite
def spoilt_traces(draw: st.DrawFn) -> Trace:
    """A good trace whose messages are lost, repeated, out of order, and spoilt in places."""
    trace = draw(st.sampled_from(TRACES))
    frames = [(frame, frame.json) for frame in trace.frames]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(frames) - 1))
        frame, message = frames[place]
        match draw(st.sampled_from(["value", "member", "drop", "repeat", "move"])):
            case "value":
                path = draw(st.sampled_from(paths(message)))
                frames[place] = (frame, spoilt(message, path, draw(values)))
            case "member" if isinstance(message, dict):
                frames[place] = (frame, {**message, draw(st.text(max_size=8)): draw(values)})
            case "drop" if len(frames) > 1:
                del frames[place]
            case "repeat":
                frames.insert(draw(st.integers(0, len(frames))), (frame, message))
            case _:
                frames.insert(draw(st.integers(0, len(frames) - 1)), frames.pop(place))
    return written(frames, trace.header.surface)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(trace=spoilt_traces())
def test_no_rule_breaks_on_a_spoilt_trace(trace: Trace) -> None:
    broken = [
        row
        for row in judge(load_book(), trace, all_rules().values())
        if row.subject == CRASH_SUBJECT
    ]
    assert broken == []


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(messages=st.lists(values | st.binary(max_size=8), max_size=8))
def test_no_rule_breaks_on_what_is_no_protocol_at_all(messages: list[Any]) -> None:
    talk = Talk().start_thread()
    for message in messages:
        talk.says(message)
    assert [
        row
        for row in judge(load_book(), talk.trace(), all_rules().values())
        if row.subject == CRASH_SUBJECT
    ] == []


def with_every(value: Any, name: str, wrong: Any) -> Any:
    """Return the value with all members of that name replaced."""
    if isinstance(value, dict):
        return {
            key: wrong if key == name else with_every(inner, name, wrong)
            for key, inner in value.items()
        }
    return [with_every(one, name, wrong) for one in value] if isinstance(value, list) else value


def member_names(value: Any) -> set[str]:
    return {path[-1] for path in paths(value) if path and isinstance(path[-1], str)}


@pytest.mark.slow
def test_no_rule_breaks_on_a_member_that_cannot_be_hashed() -> None:
    rules, tried, broken = all_rules().values(), Counter[str](), set[tuple[str, str]]()
    for trace in TRACES:
        frames = [(frame, frame.json) for frame in trace.frames]
        names = {name for _, message in frames for name in member_names(message)}
        for name in sorted(name for name in names if tried[name] < TRACES_PER_NAME):
            tried[name] += 1
            spoiled = [(frame, with_every(message, name, [])) for frame, message in frames]
            rows = judge(load_book(), written(spoiled, trace.header.surface), rules)
            broken |= {(row.rule, name) for row in rows if row.subject == CRASH_SUBJECT}
    assert (broken, len(tried) > 100) == (set(), True)
