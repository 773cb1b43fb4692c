"""The result of a drift check, as text, as Markdown and as builtins for JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from harness.report.drift.comparison import DriftComparison, ShapeDifference
from harness.report.drift.reasons import Reason, reason_of
from harness.report.drift.requests import RequestCheck
from harness.report.drift.schema_check import SchemaCheck

VERSION: Final = 1
"""Version of the JSON form: a change of meaning raises it, a new member does not."""
MAX_LINES: Final = 60
MAX_UNEXPLAINED: Final = 20
"""Differences of order without a reason that a page shows."""


@dataclass
class DriftReport:
    """The result of one run of `harness drift`; parts that were not asked for are None."""

    target: str
    schemas: SchemaCheck | None = None
    comparison: DriftComparison | None = None
    requests: RequestCheck | None = None
    reasons: Sequence[Reason] = field(default_factory=tuple[Reason, ...])

    @property
    def is_clean(self) -> bool:
        """True if each message and each answer fits the release's schemas."""
        return not (self.schemas and self.schemas.findings) and not (
            self.requests and self.requests.problems
        )

    @property
    def figures(self) -> list[str]:
        """The figures, one in a line."""
        lines: list[str] = []
        if self.schemas is not None:
            lines.append(
                f"schemas: {self.schemas.checked} messages checked, "
                f"{len(self.schemas.findings)} kinds of error"
            )
        if self.requests is not None:
            lines.append(
                f"requests: {self.requests.answered} of {self.requests.sent} answered, "
                f"{len(self.requests.problems)} otherwise than the schema allows"
            )
        if self.comparison is not None:
            found = self.comparison
            unexplained = {scenario for scenario, _, reason in self._orders if not reason}
            lines += [
                f"shapes: {found.shared_shapes} of {found.release_shapes} "
                f"({found.shape_share:.1%})",
                f"transcripts: {found.same_transcripts} of {found.compared_transcripts} scenarios "
                f"({found.transcript_share:.1%})",
                f"left out: {len(found.varied)} scenarios that the release plays in several ways",
            ]
            if self.reasons:
                explained = len(found.transcript_differences) - len(unexplained)
                lines.append(
                    f"explained: {explained} of {len(found.transcript_differences)} scenarios that "
                    "differ, each difference by a reason below"
                )
        return lines

    @cached_property
    def _orders(self) -> list[tuple[str, str, str]]:
        """Each difference of order once in a scenario: the scenario, the words, the reason."""
        if self.comparison is None:
            return []
        return [
            (scenario, word, reason_of(word, scenario, self.target, self.reasons))
            for scenario, words in self.comparison.transcript_differences.items()
            for word in dict.fromkeys(words)
        ]

    def text_lines(self) -> Iterator[str]:
        """Yield the lines for a terminal."""
        yield f"{self.target}:"
        yield from (f"  {line}" for line in self.figures)
        if self.schemas is not None:
            yield from _section(
                "errors by the schemas", [f.line for f in self.schemas.sorted_findings]
            )
        if self.requests is not None:
            yield from _section("requests", self.requests.problems)
        if self.comparison is not None:
            shapes = [difference.line for difference in self.comparison.shape_differences]
            yield from _section("shapes of the release that the double lacks", shapes)
            orders = Counter(words for _, words, _ in self._orders)
            lines = [f"{words} ({n})" for words, n in orders.most_common()]
            yield from _section("differences of transcripts", lines)

    def markdown_lines(self) -> Iterator[str]:
        """Yield a section of docs/drift.md."""
        yield f"## {self.target}"
        yield ""
        yield from (f"- {line}" for line in self.figures)
        if self.comparison is None:
            return
        yield ""
        yield "| shape that the double lacks | seen | reason |"
        yield "|---|---|---|"
        rows = _shape_rows(self.comparison.shape_differences, self.reasons, self.target)
        yield from (f"| {words} | {count} | {reason} |" for words, count, reason in rows)
        yield ""
        yield "| difference of order | scenarios | reason |"
        yield "|---|---|---|"
        orders = _order_rows(self._orders)
        yield from (f"| {words} | {count} | {reason} |" for words, count, reason in orders)

    def to_plain(self) -> dict[str, Any]:
        """Return the report as builtins."""
        plain: dict[str, Any] = {
            "version": VERSION,
            "target": self.target,
            "clean": self.is_clean,
            "figures": self.figures,
        }
        if self.schemas is not None:
            plain["errors"] = [
                {
                    "message": one.message,
                    "path": one.path,
                    "kind": one.kind,
                    "detail": one.detail,
                    "count": one.count,
                    "scenarios": sorted(one.scenarios),
                    "example": one.example,
                }
                for one in self.schemas.sorted_findings
            ]
        if self.requests is not None:
            plain["requests"] = self.requests.problems
        if self.comparison is not None:
            plain["shapes"] = [
                {
                    "place": one.shape.place,
                    "lacks": one.missing,
                    "adds": one.extra,
                    "count": one.count,
                    "scenario": one.scenario,
                }
                for one in self.comparison.shape_differences
            ]
            plain["transcripts"] = self.comparison.transcript_differences
            plain["varied"] = self.comparison.varied
        return plain


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{title}:"
    yield from (f"  {line}" for line in lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        yield f"  … and {len(lines) - MAX_LINES} more: --json has them all"


def _shape_rows(
    differences: Sequence[ShapeDifference], reasons: Sequence[Reason], target: str
) -> list[tuple[str, int, str]]:
    """Return the shapes of one reason in one row, those without a reason each in its own."""
    by_reason: dict[str, list[ShapeDifference]] = {}
    rows: list[tuple[str, int, str]] = []
    for difference in differences:
        reason = reason_of(difference.line, difference.scenario, target, reasons)
        if reason:
            by_reason.setdefault(reason, []).append(difference)
        else:
            rows.append((_cell(difference.line), difference.count, ""))
    for reason, group in by_reason.items():
        places = list(dict.fromkeys(f"`{one.shape.place}`" for one in group))
        rows.append((", ".join(places), sum(one.count for one in group), reason))
    return rows


def _order_rows(orders: Sequence[tuple[str, str, str]]) -> list[tuple[str, int, str]]:
    """Return the differences of one reason in one row, then the most frequent others."""
    by_reason: dict[str, Counter[str]] = {}
    scenarios: dict[str, set[str]] = {}
    for scenario, words, reason in orders:
        by_reason.setdefault(reason, Counter())[words] += 1
        scenarios.setdefault(reason, set()).add(scenario)
    others = by_reason.pop("", Counter()).most_common(MAX_UNEXPLAINED)
    rows = [
        (f"{_cell(group.most_common(1)[0][0])}, and {len(group) - 1} like it", reason)
        for reason, group in by_reason.items()
    ]
    explained = [(words, len(scenarios[reason]), reason) for words, reason in rows]
    explained.sort(key=lambda row: -row[1])
    return explained + [(_cell(words), count, "") for words, count in others]


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
