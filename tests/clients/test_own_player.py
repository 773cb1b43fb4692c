"""The harness is the client of every run: it keeps the duties that it asks of others.

All bundled scenarios were played so; here are those that ask, answer and name the most. What a
scenario sends wrong on purpose, as a whole message, breaks none (frames that are `deliberate`).
"""

from collections.abc import Iterator

import pytest

from harness.commands.check_clients import check_client
from harness.judge.verdict import Verdict
from harness.runner.config import configure
from harness.runner.session import WorkerSession
from tests.conformance.judging import bundled

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# Requests that are right in form, of a client that tries the server out.
MEANT = {
    "steering/refused": {"duty.turn-known"},
    "skills/remote": {"duty.remote-skills"},
}
PLAYED = (
    "turns/plain-turn",
    "approvals/accept-command",
    "approvals/accept-file-change",
    "approvals/answer-to-nothing",
    "approvals/answered-twice",
    "approvals/late-answer",
    "language/malformed-line",
    "skills/extra-roots",
    "skills/invoke",
    "skills/remote",
    "steering/every-kind-of-input",
    "steering/refused",
    "threads/list-pages",
)
SCENARIOS = {one.id: one for one in bundled()}


@pytest.fixture(scope="module")
def session() -> Iterator[WorkerSession]:
    session = WorkerSession(configure(target="reference"), worker="own-player")
    yield session
    assert session.close() == []


@pytest.mark.parametrize("name", PLAYED)
def test_the_harness_is_a_dutiful_client(name: str, session: WorkerSession) -> None:
    outcome = session.play(SCENARIOS[name])
    assert outcome.verdict is Verdict.PASS, outcome.reason
    found = check_client(session.trace_path(name))
    assert {one.rule for one in found.duties if one.verdict == "FAIL"} == MEANT.get(name, set())
    assert not found.red
    assert "duty.params-complete" in {one.rule for one in found.duties if one.verdict == "PASS"}
