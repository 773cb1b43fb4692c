"""Several clients of one thread: a message that one of them lacks is found, live and in the trace.

The servers are fixtures/servers/keeper.py, which tells each subscriber everything, and
broken/loses_for_one_client, which is the same but for one kind of message to one client.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.commands.check import check_files
from harness.judge.verdict import Verdict
from harness.report.results.report import Proof
from harness.scenario.loader import Loaded, load_text
from harness.trace.marks import Closed, Settled
from harness.trace.store import load
from harness.trace.trace import End, Trace
from tests.conformance.bugs.playing import KEEPER
from tests.conformance.judging import SERVERS, Judged, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

# One client starts a thread and a turn, the other one comes in, now or then; what happens while the
# turn waits at its gate, and on which connections its end is waited for, differs.
SHARED = """
title: Two clients of one thread
needs: [several-clients]
model:
  - reply: [{{message: {{deltas: ["One ", {{hold: between}}, "two."]}}}}]
client:
  - connect: other
  - start_thread: {{as: t}}
{before}
  - start_turn: {{thread: t, text: "count", as: u}}
  - wait: {{gate: between}}
{meanwhile}
  - open: between
{after}
"""
RESUME = '  - request: {method: thread/resume, params: {threadId: $t.thread.id}, "on": other}'
LEAVE = '  - request: {method: thread/unsubscribe, params: {threadId: $t.thread.id}, "on": other}'
DISCONNECT = "  - disconnect: other"
FIRST = "  - wait: {turn: u, status: completed}"
OTHER = '  - wait: {turn: u, status: completed, "on": other}'


def shared(*, before: str = RESUME, meanwhile: str = "", after: str) -> Loaded:
    text = SHARED.format(before=before, meanwhile=meanwhile, after=after)
    return load_text(text, name="shared")


def played(scenario: Loaded, *lost: str) -> Judged:
    """The scenario on the keeper, or on the one that loses a kind of message for a client."""
    server = f"{command('broken/loses_for_one_client' if lost else 'keeper')} {{listen}}"
    return judged(" ".join([server, *lost]), [scenario], target=str(KEEPER), scale=0.5)


def trace_of(found: Judged) -> Trace:
    return load(Path(found.outcomes["shared"].trace))


def said_by_check(found: Judged) -> str:
    """Return the output of `harness check` for the stored trace."""
    lines: list[str] = []
    check_files([Path(found.outcomes["shared"].trace)], target=str(KEEPER), say=lines.append)
    return "\n".join(lines)


def failures(found: Judged, rule: str) -> list[Proof]:
    return [one for one in found.rule(rule).proofs if one.row.verdict is Verdict.FAIL]


@pytest.mark.parametrize(("number", "connection", "waits"), [(1, "c1", OTHER), (2, "c2", FIRST)])
def test_the_end_of_a_turn_that_one_client_is_not_told_is_found_live_and_stored(
    number: int, connection: str, waits: str
) -> None:
    found = played(shared(after=waits), "turn/completed", str(number))
    assert found.failed_rules() == ["turn.completes"]
    [proof] = failures(found, "turn.completes")
    assert proof.row.expected.endswith(f" on connection {connection}")
    assert re.match(r"none came in .* s of silence; outstanding: 0 model", proof.row.actual)
    trace = trace_of(found)
    assert trace.end is End.QUIESCENT
    assert {trace.frames[seq].connection for seq in proof.row.frames} == {connection}
    [settled] = trace.marks_of(Settled)
    assert [one.rpartition(" ")[2] for one in settled.body.owed] == [connection]
    stored = said_by_check(found)
    assert "turn.completes" in stored
    assert proof.row.expected in stored


def test_the_end_of_an_item_that_one_client_is_not_told_is_found() -> None:
    found = played(shared(after=FIRST), "item/completed", "2")
    assert "item.completes" in found.failed_rules()
    stored = said_by_check(found)
    proofs = failures(found, "item.completes")
    assert len(proofs) == 2  # the user's message and the agent's
    for proof in proofs:
        assert proof.row.expected.endswith(" on connection c2")
        assert proof.row.subject in stored


def test_the_end_of_a_turn_is_owed_to_who_came_in_while_it_ran() -> None:
    scenario = shared(before="", meanwhile=RESUME, after=FIRST)
    found = played(scenario, "turn/completed", "2")
    [proof] = failures(found, "turn.completes")
    assert proof.row.level.value == "SHOULD"
    assert proof.row.expected.endswith(" on connection c2")


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(shared(after=f"{FIRST}\n{OTHER}"), id="both-subscribed"),
        pytest.param(shared(before="", after=FIRST), id="not-subscribed"),
        pytest.param(shared(meanwhile=LEAVE, after=FIRST), id="left"),
        pytest.param(shared(meanwhile=DISCONNECT, after=FIRST), id="disconnected"),
        pytest.param(shared(before="", meanwhile=RESUME, after=FIRST), id="came-in-later"),
        pytest.param(shared(before="", after=f"{FIRST}\n{RESUME}"), id="came-in-after-it"),
        pytest.param(shared(after=""), id="nobody-waits"),
        pytest.param(shared(meanwhile="  - disconnect: true", after=OTHER), id="first-one-gone"),
    ],
)
def test_clients_that_are_told_what_they_are_owed_are_well(scenario: Loaded) -> None:
    found = played(scenario)
    assert found.verdicts() == {"shared": "PASS"}
    assert found.failed_rules() == []
    assert found.issues() == {}
    trace = trace_of(found)
    assert trace.end is End.QUIESCENT
    assert trace.marks_of(Settled) == []
    assert "FAIL" not in said_by_check(found)


def test_a_client_that_left_is_owed_nothing_even_where_it_is_lost() -> None:
    for meanwhile in (LEAVE, DISCONNECT):
        found = played(shared(meanwhile=meanwhile, after=FIRST), "turn/completed", "2")
        assert found.failed_rules() == []


def test_the_next_conversation_of_the_process_is_told_nothing_of_the_last() -> None:
    """The further client leaves when the trace is over; the first one goes on in the process."""
    first = shared(after=f"{FIRST}\n{OTHER}")
    again = load_text(SHARED.format(before="", meanwhile="", after=FIRST), name="again")
    server = f"{command('keeper')} {{listen}}"
    found = judged(server, [first, again], target=str(KEEPER), scale=0.5)
    assert found.verdicts() == {"shared": "PASS", "again": "PASS"}
    assert found.failed_rules() == []
    told = [frame.raw for frame in load(Path(found.outcomes["again"].trace)).frames]
    thread = next(one for one in trace_of(found).frames if one.method == "thread/started")
    last = thread.params["thread"]["id"].encode()
    assert [raw for raw in told if last in raw] == []


# Ends the connection of the second client in place of the end of a turn.
IMPATIENT = f"""
import os, socket, sys
sys.path.insert(0, {str(SERVERS)!r})
from pathlib import Path
import keeper
class Impatient(keeper.Keeper):
    def __init__(self, home):
        super().__init__(home)
        self.seen = []
    def serve_client(self, client):
        self.seen.append(client)
        super().serve_client(client)
    def pass_on(self, clients, message):
        super().pass_on(clients, message)
        item = message["params"].get("item", {{}})
        if message["method"] == "item/completed" and item["type"] == "agentMessage":
            self.seen[1].connection.shutdown(socket.SHUT_RDWR)
server = Impatient(Path(os.environ["KEEPER_HOME"]))
server.listen(sys.argv[1].removeprefix("unix:").removeprefix("//"))
"""
UNREAD = '  - slow_reader: {reading: false, "on": other}'
READ = '  - slow_reader: {reading: true, "on": other}'


@pytest.mark.parametrize(
    ("meanwhile", "after", "failed"),
    [(UNREAD, f"{FIRST}\n{READ}", []), ("", FIRST, ["turn.completes"])],
    ids=["does-not-read", "reads"],
)
def test_a_connection_may_be_ended_whose_client_does_not_read(
    meanwhile: str, after: str, failed: list[str], place: Path
) -> None:
    script = place / "impatient.py"
    script.write_text(IMPATIENT)
    scenario = shared(meanwhile=meanwhile, after=after)
    found = judged(f"{command(script)} {{listen}}", [scenario], target=str(KEEPER), scale=0.5)
    assert [one for one in found.failed_rules() if one == "turn.completes"] == failed
    closed = [mark.body.connection for mark in trace_of(found).marks_of(Closed)]
    assert closed == ([] if failed else ["c2"])
