"""The session's report of a turn that was played twice, for rules of agreement."""

from collections import Counter
from typing import Final

from harness.protocol.spec.exec_events import exec_events
from harness.trace.marks import SessionReport
from harness.trace.trace import Trace

MESSAGE: Final = "agent_message"
# Item types that the session reports otherwise, or not at all.
_NOT_COMPARED: Final = ("todo_list", "error", "reasoning")


def session_report(trace: Trace, turn: str) -> SessionReport | None:
    """Return the session's report of this turn of the scenario, None if there is none."""
    reports = (mark.body for mark in trace.marks_of(SessionReport))
    return next((report for report in reports if report.turn == turn), None)


def compared_item_types() -> set[str]:
    """Return the item types that are counted; messages are compared by their texts."""
    return {*exec_events().items} - {*_NOT_COMPARED, MESSAGE}


def format_counts(counted: Counter[str]) -> str:
    """Format the number of items of each type."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) or "none"
