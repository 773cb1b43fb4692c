"""Counts of the requirements that a run judged, for every form of report.

A run of a server says nothing about requirements that bind clients alone: the harness is the client
there, and the rules for them judge its own frames.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.book import Book
from harness.protocol.spec.rows import Requirement
from harness.report.results.report import Report

_UNJUDGED = {
    str(Verdict.NOT_EXERCISED): "not exercised",
    str(Verdict.NOT_APPLICABLE): "not applicable",
}


@dataclass(frozen=True, slots=True)
class RequirementCounts:
    """Counts of the requirements that bind servers, by outcome; they add up to `total`.

    `counts` has the verdicts of those that the run has rules for, `other_surfaces` the number of
    those whose rules judge surfaces that were not played, `without_rule` of those that no rule can
    judge. Beside them, `client_only` is the number of those that bind clients alone.
    """

    counts: Counter[str]
    other_surfaces: int
    without_rule: int
    client_only: int

    @property
    def total(self) -> int:
        """The number of requirements that bind servers."""
        return self.counts.total() + self.other_surfaces + self.without_rule

    @property
    def judged_count(self) -> int:
        """The number of requirements judged, whatever the verdict."""
        return self.counts.total() - sum(self.counts[verdict] for verdict in _UNJUDGED)

    def words(self) -> str:
        """Return words such as `6 of 9 judged (6 PASS), 2 not exercised, 1 of other surfaces`."""
        judged = [
            f"{count} {verdict}"
            for verdict, count in sorted(self.counts.items())
            if verdict not in _UNJUDGED
        ]
        unjudged = {words: self.counts[verdict] for verdict, words in _UNJUDGED.items()}
        unjudged |= {
            "of other surfaces": self.other_surfaces,
            "that no rule can judge": self.without_rule,
        }
        shown = f" ({', '.join(judged)})" if judged else ""
        others = "".join(f", {count} {words}" for words, count in unjudged.items() if count)
        clients = (
            f"; not counted: {self.client_only} that bind only clients" if self.client_only else ""
        )
        return f"{self.judged_count} of {self.total} judged{shown}{others}{clients}"


def judged_requirements(report: Report, book: Book) -> RequirementCounts:
    """Return the counts of the book's requirements by their outcome in a report."""
    mine = [one for one in book.requirements if not binds_clients_only(one)]
    counts = Counter(report.requirements[one.id] for one in mine if one.id in report.requirements)
    unseen = [one for one in mine if one.id not in report.requirements]
    return RequirementCounts(
        counts,
        other_surfaces=sum(bool(one.rules) for one in unseen),
        without_rule=sum(not one.rules for one in unseen),
        client_only=len(book.requirements) - len(mine),
    )


def with_levels(report: Report, book: Book) -> Report:
    """Return the report with SHOULD in place of FAIL for requirements that no MUST finding breaks.

    A page beside a GREEN verdict shows them so, since they do not count (unless `strict`).
    """
    levels: dict[str, set[Level]] = defaultdict(set)
    for rule in report.rules:
        for row in (proof.row for proof in rule.proofs if proof.row.verdict is Verdict.FAIL):
            names = row.clauses or [one.id for one in book.requirements_of(rule.id)]
            for name in names:
                levels[name].add(row.level)
    mild = {name for name, found in levels.items() if Level.MUST not in found}
    verdicts = {
        name: str(Level.SHOULD) if verdict == Verdict.FAIL and name in mild else verdict
        for name, verdict in report.requirements.items()
    }
    return report if report.strict else replace(report, requirements=verdicts)


def binds_clients_only(requirement: Requirement) -> bool:
    """Return whether a requirement binds clients, so that no server can break it."""
    return requirement.clause.bound == "client"
