"""Counts of the requirements that a run judged, for every form of report.

A run of a server says nothing about a row of the book that binds clients alone: there the harness
is the client, and what judges such a row in a run are its own frames.
"""

from collections import Counter
from dataclasses import dataclass

from harness.judge.verdict import Verdict
from harness.protocol.spec.book import Book
from harness.protocol.spec.rows import Requirement
from harness.report.results.report import Report

_IDLE = (str(Verdict.NOT_EXERCISED), str(Verdict.NOT_APPLICABLE))


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of the requirements that bind servers.

    `counts` has the verdicts of those that the run has rules for, `of` is how many the book has,
    and `clients` how many of the book bind clients alone.
    """

    counts: Counter[str]
    of: int
    clients: int

    @property
    def judged(self) -> int:
        """Return the number of requirements judged, whatever was found."""
        return self.counts.total() - sum(self.counts[one] for one in _IDLE)

    def words(self) -> str:
        """`513 of 543 (1 INFO, 512 PASS); 40 more bind clients alone`."""
        shown = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        found = f" ({shown})" if shown else ""
        more = f"; {self.clients} more bind clients alone" if self.clients else ""
        return f"{self.judged} of {self.of}{found}{more}"


def judged_requirements(report: Report, book: Book) -> Judged:
    """The count of a report."""
    mine = [one for one in book.requirements if not of_clients_alone(one)]
    found = (report.requirements.get(one.id) for one in mine)
    counts = Counter(one for one in found if one is not None)
    return Judged(counts, len(mine), len(book.requirements) - len(mine))


def of_clients_alone(requirement: Requirement) -> bool:
    """Return whether it binds clients, and no server can break it."""
    return requirement.clause.bound == "client"
