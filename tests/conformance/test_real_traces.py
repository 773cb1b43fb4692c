"""Recordings of a shipping server, release 0.107.0, judged: every finding was read by hand.

A finding of level MUST or SHOULD is a deviation of the profile `codex-0.107`, or a row of REVIEWED
that says which recordings show it and why the text supports it. Anything else is a false alarm, or
a new finding to be read against its clause. Scenarios of the profile are not played here, so its
deviations count by their rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from harness.cli.commands.stored_traces import TraceCheck, check_trace
from harness.client.target.profile import load_profile
from harness.judge.verdict import Level, Row, Verdict
from harness.trace.trace import End

FOLDER = Path(__file__).parents[2] / "fixtures" / "traces" / "real-0.107.0"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
PROFILE = load_profile("codex-0.107")


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Findings that were read by hand: their rule, the recordings, a text in each, the reason."""

    rule: str
    recordings: tuple[str, ...]
    text: str
    reason: str


REVIEWED = (
    Reviewed(
        "item.completed-once",
        ("cmd_shell_decline", "patch_decline"),
        "a second one",
        "a declined command or patch is completed twice, before and after the thread is active "
        "again; the lifecycle has one item/completed, with the final item",
    ),
    Reviewed(
        "item.ids-not-reused",
        ("review",),
        "a new id for a new item",
        "the items that enter and leave a review both have the turn's id, so that one id names "
        "two items of one turn",
    ),
    Reviewed(
        "mcp.error-when-failed",
        ("mcp_tool",),
        'params.item.status: "failed"',
        "a tool that reports an error of its own ends failed with a result and error null; the "
        "text gives a failed call its error",
    ),
    Reviewed(
        "read.stored-equals-live",
        ("err_context_window", "err_disconnect_exhaust", "err_http429_usage", "err_http500"),
        '.status: "completed"',
        "a turn that ended as failed, with an error, is read back as completed without one",
    ),
    Reviewed(
        "read.stored-equals-live",
        ("review",),
        "only the turns",
        "a review's turn is read back as two turns, neither with the id that was announced",
    ),
    Reviewed(
        "shape.notification",
        ("web_search",),
        "item.action.type",
        "actions are written openPage and findInPage, and a fourth, other, while a search begins; "
        "the text gives three words, in snake_case",
    ),
    Reviewed(
        "turn.items-empty",
        ("resume_fork_read",),
        "thread/started",
        "thread/started of a fork has turns with items; only answers to resume and fork may",
    ),
    Reviewed(
        "turn.items-empty",
        ("review",),
        "turn/started",
        "turn/started of a review carries the user's message in items",
    ),
    Reviewed(
        "turn.started-first",
        ("compact_manual",),
        "no turn/started before it",
        "a compaction on request ends with turn/completed of a turn that was never announced",
    ),
)


@cache
def checked(name: str) -> TraceCheck:
    return check_trace(FOLDER / f"{name}.jsonl", known_names=(PROFILE.names,))


def findings(name: str) -> Iterator[Row]:
    for row in checked(name).rows:
        if row.verdict is Verdict.ERROR or (
            row.verdict is Verdict.FAIL and row.level is not Level.INFO
        ):
            yield row


def reviewed(name: str, row: Row) -> Reviewed | None:
    for one in REVIEWED:
        if (
            one.rule == row.rule
            and name in one.recordings
            and one.text in row.actual + row.expected
        ):
            return one
    return None


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_is_a_known_deviation_or_was_read_by_hand(name: str) -> None:
    known = {entry.rule for entry in PROFILE.deviations}
    new = [
        f"{row.rule}: {row.subject}: expected {row.expected}; actual {row.actual}"
        for row in findings(name)
        if row.rule not in known and reviewed(name, row) is None
    ]
    assert not new, "\n".join(new)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_shows_a_conversation_and_gives_witnesses(name: str) -> None:
    one = checked(name)
    assert one.trace.end is End.CLOSED
    passed = {row.rule for row in one.rows if row.verdict is Verdict.PASS}
    assert len(passed) >= 10
    assert "response.known-id" in passed


def test_no_reviewed_finding_is_gone() -> None:
    for one in REVIEWED:
        for name in one.recordings:
            assert any(reviewed(name, row) is one for row in findings(name)), (one.rule, name)


def test_the_recordings_are_all_here() -> None:
    assert len(NAMES) == 41


def test_names_are_guessed_where_a_turn_error_has_the_servers_name() -> None:
    assert checked("err_http500").trace.header.names == PROFILE.names
    assert checked("plain_turn").trace.header.names == {}


def test_nothing_that_the_recordings_client_sent_is_blamed_on_the_harness() -> None:
    rows = [row for name in NAMES for row in checked(name).rows]
    assert not [row for row in rows if row.rule.startswith("harness.")]
    assert not [row for row in rows if row.verdict is Verdict.ERROR]
