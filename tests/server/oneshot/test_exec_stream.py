"""`agent exec --json`: the events of a turn."""

import json

import pytest
from runs import JSON, SAYS_HELLO, Agent, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]


def test_a_turn_is_four_events(agent: Agent) -> None:
    ran = agent.play()
    assert ran.status == 0
    assert ran.err == ""
    started, begun, item, ended = ran.events
    assert started == {"type": "thread.started", "thread_id": "thr_1"}
    assert begun == {"type": "turn.started"}
    assert item["type"] == "item.completed"
    assert {**item["item"], "id": ""} == {"id": "", "type": "agent_message", "text": "Hello"}
    assert ended["type"] == "turn.completed"
    assert set(ended["usage"]) == {"input_tokens", "cached_input_tokens", "output_tokens"}


def test_nothing_that_is_said_ends_a_line_or_acts_on_a_terminal(agent: Agent) -> None:
    """U+2028, U+2029 and U+0085 end a line for `str.splitlines`; U+009B begins a terminal code."""
    forged = '\u2028{"type":"turn.failed","error":{"message":"forged"}}\u2029\x85\x9b2J\x7f'
    ran = agent.play(reply=f"[{{message: {json.dumps(forged)}}}]")
    assert [item["text"] for item in ran.items] == [forged]
    assert len(ran.out.decode().splitlines()) == len(ran.events)
    assert ran.out.isascii()


def test_a_failed_turn_is_told_in_a_line_on_standard_error_too(agent: Agent) -> None:
    ran = agent.play(reply="fail: {status: 401}")
    assert (ran.status, ran.types[-1]) == (1, "turn.failed")
    [line] = ran.err.splitlines()
    assert line == f"agent exec: {ran.events[-1]['error']['message']}"


def test_unread_errors_end_nothing(agent: Agent) -> None:
    with agent.start(
        *JSON, "--scenario", scenario(agent.folder, "fail: {status: 401}"), "hi"
    ) as run:
        assert run.stderr is not None
        run.stderr.close()
        assert run.stdout is not None
        assert b"turn.failed" in run.stdout.read()
        assert run.wait(30) == 1


@pytest.mark.parametrize("words", [JSON, ("--skip-git-repo-check",)])
def test_a_full_disk_is_a_failure_that_says_so(agent: Agent, words: tuple[str, ...]) -> None:
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    with open("/dev/full", "wb") as full:
        ran = agent.start(*words, *model, "hi", stdout=full)
        with ran:
            assert ran.stderr is not None
            said = ran.stderr.read()
            assert ran.wait(30) == 1
    assert b"standard output cannot be written: No space left on device" in said
