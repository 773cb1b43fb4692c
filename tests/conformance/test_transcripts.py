"""What each scenario's conversation with the reference server looks like, as reviewed text.

A property that matters is a rule; these snapshots show every other change of the server to the
person who reviews it. Update all of them at once:
`pytest tests/conformance/test_transcripts.py --snapshot-update`, and read the difference.
"""

from collections.abc import Iterator

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.judge.verdict import Verdict
from harness.runner.config import configure
from harness.runner.session import Session
from harness.snapshot.extension import TranscriptExtension
from harness.target.profile import load_profile
from harness.trace.normalise import transcript
from harness.trace.store import load as load_trace
from tests.conformance.judging import alone, bundled

pytestmark = [pytest.mark.slow, pytest.mark.socket]

OFFERED = set(load_profile("reference").capabilities)
UNORDERED = {
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
}
"""What is written here in another order, or in other pieces, from one run to the next."""
SCENARIOS = {
    scenario.id: scenario
    for scenario in bundled()
    if set(scenario.scenario.needs) <= OFFERED and scenario.id not in UNORDERED
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session(configure(target="reference"), worker="transcripts")
    yield session
    assert session.close() == []


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_conversation_is_as_reviewed(
    name: str, session: Session, snapshot: SnapshotAssertion
) -> None:
    # On a process of its own, so that its transcript begins at the handshake.
    outcome = session.play(alone(SCENARIOS[name]))
    if outcome.reason in [lack.reason for lack in session.config.lacks]:
        pytest.skip(outcome.reason)
    assert outcome.verdict is Verdict.PASS, outcome.reason
    text = transcript(load_trace(session.trace_path(name)))
    assert text == snapshot(name=f"reference/{name}", extension_class=TranscriptExtension)
