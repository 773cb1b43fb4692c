"""Transcripts of each scenario with the reference server, as reviewed text.

A property that matters is a rule; these snapshots show every other change of the server to the
reviewer. Update all of them at once:
`pytest tests/conformance/test_transcripts.py --snapshot-update`, and read the difference.
The conversations come from the one play that tests share (`tests.suite_play`), except `ALONE`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.client.target.profile import load_profile
from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.trace.frame import Frame
from harness.trace.marks import Setup
from harness.trace.normalise import transcript
from harness.trace.store import load
from harness.trace.trace import Trace
from tests.conformance.judging import alone, bundled
from tests.conformance.transcript_extension import TranscriptExtension
from tests.suite_play import PLAY_BOUND, suite_play

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.timeout(PLAY_BOUND)]

OFFERED = set(load_profile("reference").capabilities)
UNORDERED = {
    # As a server may refuse such a turn, its end is not waited for.
    "skills/mention",
    # How far the tool has got when the interrupt, or the added input, comes is open.
    "tools/mcp/interrupted",
    "tools/mcp/steered",
    # How much the command has written when its server is killed is for the system to say.
    "threads/killed/during-a-command",
    # Whether the end of its command is written before the server is killed is open.
    "reported/limits-in-fractions",
    # Its raw pieces are sent without waiting: complaints about them come anywhere in between.
    "language/malformed-line",
    # How much of its output a command has written before an end from outside is for the system to
    # say.
    "approvals/client-leaves",
    # What there is too much of is left out somewhere in the middle.
    "commands/big-output",
    # How often the model is asked in vain before its address takes connections again is open.
    "failures/connection-refused",
    # Two threads work at once.
    "interrupts/another-turn",
    "lasting/outputs/other-thread",
    # How much of its output a command has written when it is interrupted is for the system to say.
    "lasting/outputs/after-interrupt",
    # A request is sent while the model's stream is held: what came before the gate is told before
    # its answer or after it.
    "interrupts/during-reasoning",
    "interrupts/no-such-thread",
    "plans/interrupted",
    "steering/at-its-end",
    # The thread is read while its compaction ends.
    "compaction/cut-off",
    "compaction/fails",
    "compaction/falls-silent",
    "compaction/tries-again",
    # What is added in the pause before a retry is heard in that try, or in one more.
    "steering/before-a-retry",
    # The second request comes before the end of the turn or after it.
    "interrupts/twice",
    # Each of two clients does something at the same time.
    "clients/answers-differ",
    "clients/asked-client-leaves",
    "clients/cancelled-by-either",
    "clients/declined-by-either",
    "clients/either-accepts-a-patch",
    "clients/either-may-accept",
    "clients/joined-while-asked",
    "clients/two-start-at-once",
    # They list threads, which others have left in the home.
    "clients/archived-by-another",
    "clients/both-unsubscribe",
    # A client asks while it is told what another one has brought about, or what came before a gate.
    "clients/all-leave",
    "clients/named-by-another",
    "clients/starter-leaves",
    "clients/steered-by-another",
    "clients/unsubscribed-mid-turn",
    "clients/watcher-leaves",
    "threads/attach-by-another",
    "threads/list-by-another",
    # What a client does not read in time comes to it in larger pieces.
    "clients/slow-client-of-much-output",
}
"""Scenarios whose transcript varies in order, or in the size of pieces, from run to run."""
ALONE = {
    # They list what others leave in a process too.
    "choices/odd-requests",
    "choices/skills",
    "threads/list-odd-requests",
    "threads/list-unloaded",
    "threads/unsubscribe",
    "threads/unsubscribe-one",
    # How the ids of questions compare with others depends on how many came before.
    "approvals/answer-to-nothing",
    "lasting/declined/command/after-restart",
    "lasting/declined/file-change/after-restart",
}
"""These are played once more, on a process of their own."""
SCENARIOS = {
    scenario.id: alone(scenario) if scenario.id in ALONE else scenario
    for scenario in bundled()
    if set(scenario.scenario.needs) <= OFFERED and scenario.id not in UNORDERED
}


def handshake_of(trace: Trace) -> list[Frame]:
    """The frames with which the process was started for this trace; none where it ran already."""
    if trace.frames[0].method != "initialize" or trace.frames[0].connection != "c1":
        return []  # Where a further client comes first, the first one was there already.
    end = next(mark for mark in trace.marks_of(Setup) if not mark.body.active)
    return trace.frames[: end.after + 1]


@cache
def shared_handshake() -> list[Frame]:
    """Return the handshake of a process that several scenarios shared."""
    shared = (name for name, one in SCENARIOS.items() if not one.scenario.needs_fresh_server)
    traces = (load(suite_play().trace(name)) for name in shared)
    return next(found for trace in traces if (found := handshake_of(trace)))


@pytest.fixture(scope="module")
def session() -> Iterator[WorkerSession]:
    """Return the session for scenarios that need a process of their own."""
    session = WorkerSession(configure(target="reference"), worker="transcripts")
    yield session
    session.close()


def played_alone(name: str, session: WorkerSession) -> Trace:
    """Return the trace of a scenario on a process of its own."""
    outcome = session.play(SCENARIOS[name])
    assert outcome.verdict is Verdict.PASS, outcome.reason
    trace = session.trace_of(name)
    assert trace is not None
    return trace


def transcript_of(trace: Trace) -> str:
    """Return a conversation from its handshake on.

    A process that several scenarios share shakes hands in the trace of the first of them only; so
    that no transcript depends on what was played before, it is put before those of the others.
    """
    if not handshake_of(trace):
        whole = (*shared_handshake(), *trace.frames)
        trace.frames[:] = [replace(frame, seq=seq) for seq, frame in enumerate(whole)]
    return transcript(trace)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_conversation_is_as_reviewed(
    name: str, session: WorkerSession, snapshot: SnapshotAssertion
) -> None:
    played = suite_play().scenario(name)
    if played.withheld:
        pytest.skip(played.reason)
    assert played.verdict is Verdict.PASS, played.reason
    trace = played_alone(name, session) if name in ALONE else load(suite_play().trace(name))
    expected = snapshot(name=name, extension_class=TranscriptExtension)
    assert transcript_of(trace) == expected
