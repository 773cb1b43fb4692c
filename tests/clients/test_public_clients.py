"""Recorded sessions of public Python clients: every finding was read by hand.

They are of codex-app-server-client 0.1.0 and codex-python-sdk 0.2.1 with `agent app-server`;
folders have other names. docs/client-duties.md has the reading. `make clients` runs these clients.
"""

from pathlib import Path

from harness.cli.commands.check_clients import ClientCheck, check_client
from harness.faults.client_duties import client_faults

FOLDER = Path(__file__).parents[2] / "fixtures" / "traces" / "recorded"


def of(found: ClientCheck, verdict: str) -> set[str]:
    return {one.rule for one in found.duties if one.verdict == verdict}


def test_a_session_of_the_main_calls_has_no_finding() -> None:
    """Read line by line: 21 requests, two approvals, ids that count up; nothing to object to."""
    found = check_client(FOLDER / "app-server-client.jsonl")
    assert of(found, "FAIL") == set()
    assert not found.red
    # No page was turned, and no skill was named by its path.
    assert of(found, "NOT_EXERCISED") == {"duty.cursor-given", "duty.skill-paths"}


def test_a_policy_may_cancel_a_file_change_which_the_text_does_not_have() -> None:
    """True: its type of a policy's decisions is one for both questions, the text has two lists."""
    found = check_client(FOLDER / "python-sdk-policy.jsonl")
    (broken,) = [one for one in found.duties if one.verdict == "FAIL"]
    assert (broken.rule, broken.level) == ("duty.decision-known", "MUST")
    assert broken.actual == 'result.decision: "cancel"'
    assert "accept and decline, no others" in broken.clause
    assert broken.rule in {fault.rule for fault in client_faults().values()}
