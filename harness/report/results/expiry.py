"""Known deviations with a last day: which of them still count, and what is told of the others.

A day ends at midnight UTC, so that every machine of a project says the same.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from harness.client.target.profile import Deviation
from harness.judge.verdict import Level
from harness.report.results.report import Issue

EXPIRED: Final = "baseline.expired"
SOON: Final = "baseline.expires-soon"
WARNED: Final = timedelta(days=14)


def today() -> date:
    """The day by which a run decides."""
    return datetime.now(UTC).date()


def alive(entry: Deviation, day: date) -> bool:
    """Return whether an entry counts on a day; its last day is among those."""
    return entry.expires is None or day <= entry.expires


def expiring(
    entries: Sequence[Deviation], day: date, places: Mapping[Deviation, str]
) -> list[Issue]:
    """Return issues for entries that have expired, or will within 14 days; none of them counts."""
    found: list[Issue] = []
    for entry in entries:
        if entry.expires is None or day + WARNED < entry.expires:
            continue
        what, left = f"{entry.rule} (scenario {entry.scenario})", (entry.expires - day).days
        if left < 0:
            words = f"expired on {entry.expires} and is not taken into account"
            todo = "remove the entry, or give it a new day and say why"
        else:
            when = "today" if not left else f"in {left} day(s)"
            words, todo = f"expires {when}, on {entry.expires}", "from then on its findings count"
        message = f"the deviation {what} {words}; {todo} ({entry.reason})"
        name = EXPIRED if left < 0 else SOON
        found.append(Issue(name, message, Level.INFO, where=places.get(entry, "")))
    return found
