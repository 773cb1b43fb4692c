"""`agent exec --json`: the events of a turn."""

import pytest
from runs import Agent

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
