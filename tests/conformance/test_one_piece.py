"""No scenario needs more than one piece of a text: a server may send it when it is complete.

`make readings` plays on such a server each scenario to which it can make a difference, `make test`
those that wait for a piece. For the others it sends the same messages at the same moments as the
reference server, whose traces of `make demo` show it.
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from harness.protocol.values import obj
from harness.scenario.client_steps import WaitStep
from harness.scenario.loader import Loaded
from harness.trace.frame import Frame
from harness.trace.gaps import events_of
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace
from tests.suite_play import PLAY_BOUND, suite_play

from .judging import ROOT, bundled, command, judged
from .one_piece_server import Pieces

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


def is_changed_by_joining(trace: Trace) -> bool:
    """Return whether the one-piece server could not have sent this trace.

    That is so if it sends other messages, or if anything but messages of the server happens while
    it holds one back.
    """
    pieces = Pieces()
    sent: dict[str, list[object]] = {}
    joined: dict[str, list[object]] = {}
    for event in events_of(trace):
        if isinstance(event, Frame) and event.from_target:
            message = obj(event.json)
            sent.setdefault(event.connection, []).append(message)
            edited = pieces.edit(event.connection, copy.deepcopy(message))
            joined.setdefault(event.connection, []).extend(edited)
        elif pieces.are_held:
            return True
    return sent != joined


def could_differ(loaded: Loaded) -> bool:
    """Return whether a scenario may play otherwise on the one-piece server."""
    if suite_play().scenario(loaded.id).withheld:
        return True
    return is_changed_by_joining(load(suite_play().trace(loaded.id), classify_of=classify_of))


@pytest.mark.parametrize(
    ("name", "is_changed"),
    [("many-deltas", True), ("interrupted", True), ("file-changes", False), ("failed", False)],
)
def test_traces_that_the_server_could_not_have_sent_are_known(name: str, is_changed: bool) -> None:
    trace = load(ROOT / "fixtures/traces/good" / f"{name}.jsonl", classify_of=classify_of)
    assert is_changed_by_joining(trace) is is_changed


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
        pytest.param("all", marks=[pytest.mark.readings, pytest.mark.timeout(PLAY_BOUND)]),
    ],
)
def test_server_that_sends_each_text_in_one_piece_is_green(names: str) -> None:
    waiting = [loaded for loaded in bundled() if waits_for_pieces(loaded)]
    chosen = list(filter(could_differ, bundled())) if names == "all" else waiting
    assert {loaded.id for loaded in chosen} >= {loaded.id for loaded in waiting}
    played = judged(
        f"{command(SERVER)} app-server",
        [loaded for loaded in chosen if loaded.id not in JOINED_BY_THE_SERVER],
        target="reference",
        scale=1,
    )
    assert [name for name, verdict in played.verdicts().items() if verdict == "FAIL"] == []
    assert played.failed_rules() == []
    assert played.issues() == {}
