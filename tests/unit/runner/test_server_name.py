"""Name of a server, read from its answer to `initialize`, as one short line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.play.session.server_name import server_name
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder


def named(*answers: Any) -> str:
    recorder = Recorder()
    for number, answer in enumerate(answers):
        line = json.dumps({"id": number, "result": answer}).encode()
        recorder.record(line, Direction.FROM_TARGET)
    return server_name(recorder.trace)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ({"userAgent": "agent/0.1.0 linux"}, "agent/0.1.0 linux"),
        ({"serverInfo": {"name": "mine", "version": "3"}}, "mine/3"),
        ({"serverInfo": {"name": "mine"}}, "mine"),
        ({"userAgent": 3, "serverInfo": "no object"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_name_is_that_of_the_answer(answer: Any, name: str) -> None:
    assert named(answer) == name


def test_a_name_is_one_printable_line_of_bounded_length() -> None:
    assert named({"userAgent": "a\n::error::b\x1b[31m\u2028c"}) == "a ::error::b [31m c"
    assert len(named({"userAgent": "x" * 5000})) == 200


def test_answers_without_a_name_are_passed_over() -> None:
    assert named({}, {"userAgent": "later"}) == "later"
