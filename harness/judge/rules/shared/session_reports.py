"""Report of the session on a turn that was also played on another surface."""

from collections import Counter
from typing import Final

from harness.protocol.spec.exec_events import exec_events
from harness.trace.marks import SessionReport
from harness.trace.trace import Trace

MESSAGE: Final = "agent_message"
# Item types that the session reports otherwise, or not at all.
_NOT_COMPARED: Final = ("todo_list", "error", "reasoning")


def session_report(trace: Trace, turn: str) -> SessionReport | None:
    """Return the session's report of the turn with this name, None if there is none."""
    reports = (mark.body for mark in trace.marks_of(SessionReport))
    return next((report for report in reports if report.turn == turn), None)


def compared_item_types() -> set[str]:
    """Return the item types that are compared by number; messages are compared by their texts."""
    return {*exec_events().items} - {*_NOT_COMPARED, MESSAGE}


def format_counts(counted: Counter[str]) -> str:
    """Return counts as text, sorted by type: `1 command_execution, 2 file_change`, or `none`."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) or "none"
