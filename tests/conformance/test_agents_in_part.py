"""Agents that have only one of the two commands are judged by that command only.

What they do not know does not apply; what they know and do wrong is red.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.protocol.spec.loading import load_book
from harness.report.results.merge import merge
from harness.report.results.report import Report
from harness.report.terminal import summary
from harness.scenario.bundled import bundled_scenario
from harness.trace.surfaces import COMMAND, EXEC

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("place")]

AGENT = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "in_part.py"
SCENARIOS = {
    "turns/plain-turn": EXEC,
    "mcp-command/stdio-server": COMMAND,
    "mcp-command/nothing-stored": COMMAND,
}


def judged(known: str, *, target: str = "spec") -> tuple[dict[str, str], Report]:
    config = configure(target=target, agent_cmd=f"'{sys.executable}' '{AGENT}' {known}")
    session = WorkerSession(config)
    try:
        outcomes = [
            session.play(bundled_scenario(one).on_surface(on)) for one, on in SCENARIOS.items()
        ]
    finally:
        findings = session.close()
    report = merge(
        outcomes,
        findings,
        profile=config.profile,
        entries=(),
        rules=config.rules,
        book=config.book,
    )
    return {one.id.split("/")[1]: str(one.verdict) for one in outcomes}, report


def test_an_agent_without_mcp_is_green_and_a_line_says_what_does_not_apply() -> None:
    verdicts, report = judged("exec")
    assert verdicts == {
        "plain-turn@exec": "PASS",
        "stdio-server@command": "NOT_APPLICABLE",
        "nothing-stored@command": "NOT_APPLICABLE",
    }
    assert not report.red
    told = [line for line in summary(report, load_book()) if "mcp-command" in line]
    rules = sum(one.missing == ("mcp-command",) for one in report.rules)
    assert told == [
        f"NOT_APPLICABLE: {rules} rule(s): the target does not know mcp-command",
        "NOT_APPLICABLE: 2 scenario(s): the server does not offer mcp-command",
    ]
    assert rules > 20


def test_an_agent_with_mcp_alone_is_green() -> None:
    assert judged("mcp,login")[0] == {
        "plain-turn@exec": "NOT_APPLICABLE",
        "stdio-server@command": "PASS",
        "nothing-stored@command": "PASS",
    }


def test_logins_are_a_part_of_their_own() -> None:
    verdicts, report = judged("exec,mcp")
    assert verdicts == {
        "plain-turn@exec": "PASS",
        "stdio-server@command": "PASS",
        "nothing-stored@command": "NOT_APPLICABLE",
    }
    missing = {one.id: one.missing for one in report.rules if one.missing}
    assert missing["mcp-logout.says-none"] == ("mcp-login",)
    assert "mcp-list.columns" not in missing


def test_a_command_that_is_known_and_fails_is_red() -> None:
    verdicts, report = judged("exec,broken")
    assert report.red
    assert verdicts["stdio-server@command"] != "NOT_APPLICABLE"


def test_an_agent_that_refuses_everything_is_red() -> None:
    verdicts, report = judged("serve")
    assert report.red
    assert Verdict.NOT_APPLICABLE not in verdicts.values()


def test_promises_of_a_profile_are_probed(place: Path) -> None:
    profile = place / "promising.toml"
    profile.write_text(
        'extends = "spec"\nname = "p"\ncapabilities = ["core", "exec", "mcp-command"]'
    )
    verdicts, report = judged("exec", target=str(profile))
    assert report.red
    assert verdicts["nothing-stored@command"] == "NOT_APPLICABLE"
    assert verdicts["stdio-server@command"] != "NOT_APPLICABLE"


def test_a_profile_that_promises_no_command_is_told_so(place: Path) -> None:
    profile = place / "silent.toml"
    profile.write_text('extends = "spec"\nname = "p"\ncapabilities = ["core"]')
    with pytest.raises(UsageError, match='add "exec", "mcp-command" or both'):
        configure(target=str(profile), agent_cmd=sys.executable)
