"""No scenario needs more than one piece of a text: a server may send it when it is complete.

`make readings` plays the whole suite on such a server, `make test` the scenarios that do something
in the middle of a message.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.client_steps import WaitStep
from harness.scenario.loader import Loaded

from .judging import bundled, command, judged

SERVER = Path(__file__).with_name("one_piece_server.py")
# A server chooses the number of these: none, one, or many.
PIECES = (
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/textDelta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "thread/status/changed",
    "thread/tokenUsage/updated",
)


# The server joins pieces for a client that reads too slowly, behind the place where they are held.
JOINED_BY_THE_SERVER = {"clients/slow-client-of-much-output"}


def waits_for_pieces(loaded: Loaded) -> list[WaitStep]:
    """Return the waits of a scenario for a message that may come late, or never."""
    waits = [step for step in loaded.scenario.steps if isinstance(step, WaitStep)]
    return [step for step in waits if step.wait.notification in PIECES]


def test_wait_for_a_piece_goes_on_without_it() -> None:
    waits = {loaded.id: waits_for_pieces(loaded) for loaded in bundled()}
    assert sum(map(len, waits.values())) >= 10
    strict = [name for name, steps in waits.items() if not all(s.wait.or_silence for s in steps)]
    assert strict == [], "a server that sends a text in one piece fails these"


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "names",
    [
        pytest.param("middle", id="in-the-middle-of-a-message"),
        pytest.param("all", marks=[pytest.mark.readings, pytest.mark.timeout(600)]),
    ],
)
def test_server_that_sends_each_text_in_one_piece_is_green(names: str) -> None:
    middle = [loaded for loaded in bundled() if waits_for_pieces(loaded)]
    played = judged(
        f"{command(SERVER)} app-server",
        [loaded for loaded in bundled() if loaded.id not in JOINED_BY_THE_SERVER]
        if names == "all"
        else middle,
        target="reference",
        scale=1,
    )
    assert [name for name, verdict in played.verdicts().items() if verdict == "FAIL"] == []
    assert played.failed_rules() == []
    assert played.issues() == {}
