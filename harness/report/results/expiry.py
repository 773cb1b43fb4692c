"""Known deviations with a last day: which of them still count, and issues about the others.

A day ends at midnight UTC, so that every machine of a project says the same.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from harness.client.target.profile import Deviation
from harness.judge.verdict import Level
from harness.report.results.report import Issue

EXPIRED: Final = "baseline.expired"
EXPIRES_SOON: Final = "baseline.expires-soon"
WARNING_PERIOD: Final = timedelta(days=14)


def today() -> date:
    """Return the current date in UTC, by which a run decides."""
    return datetime.now(UTC).date()


def is_alive(entry: Deviation, day: date) -> bool:
    """Return whether an entry counts on a day; its last day is included."""
    return entry.expires is None or day <= entry.expires


def expiry_issues(
    entries: Sequence[Deviation], day: date, places: Mapping[Deviation, str]
) -> list[Issue]:
    """Return INFO issues for entries that have expired, or will within `WARNING_PERIOD`."""
    issues: list[Issue] = []
    for entry in entries:
        if entry.expires is None or day + WARNING_PERIOD < entry.expires:
            continue
        subject, days_left = f"{entry.rule} (scenario {entry.scenario})", (entry.expires - day).days
        if days_left < 0:
            words = f"expired on {entry.expires} and is not taken into account"
            todo = "remove the entry, or give it a new day and say why"
        else:
            when = "today" if not days_left else f"in {days_left} day(s)"
            words, todo = f"expires {when}, on {entry.expires}", "from then on its findings count"
        message = f"the deviation {subject} {words}; {todo} ({entry.reason})"
        name = EXPIRED if days_left < 0 else EXPIRES_SOON
        issues.append(Issue(name, message, Level.INFO, where=places.get(entry, "")))
    return issues
