"""The result of a drift check, as text, as Markdown and as builtins for JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
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
            lines += [
                f"shapes: {found.shared_shapes} of {found.release_shapes} "
                f"({found.shape_share:.1%})",
                f"transcripts: {found.same_transcripts} of {len(found.scenarios)} scenarios "
                f"({found.transcript_share:.1%})",
            ]
        return lines

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
            orders = [f"{words} ({n})" for words, n in self.comparison.frequent_differences]
            yield from _section("differences of transcripts", orders)

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
        rows = _shape_rows(self.comparison.shape_differences, self.reasons)
        yield from (f"| {words} | {count} | {reason} |" for words, count, reason in rows)
        yield ""
        yield "| difference of order | scenarios | reason |"
        yield "|---|---|---|"
        orders = _order_rows(self.comparison, self.reasons)
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
    differences: Sequence[ShapeDifference], reasons: Sequence[Reason]
) -> list[tuple[str, int, str]]:
    """Return the shapes of one reason in one row, those without a reason each in its own."""
    by_reason: dict[str, list[ShapeDifference]] = {}
    rows: list[tuple[str, int, str]] = []
    for difference in differences:
        reason = reason_of(difference.line, reasons)
        if reason:
            by_reason.setdefault(reason, []).append(difference)
        else:
            rows.append((_cell(difference.line), difference.count, ""))
    for reason, group in by_reason.items():
        places = list(dict.fromkeys(f"`{one.shape.place}`" for one in group))
        rows.append((", ".join(places), sum(one.count for one in group), reason))
    return rows


def _order_rows(
    comparison: DriftComparison, reasons: Sequence[Reason]
) -> list[tuple[str, int, str]]:
    """Return the differences of one reason in one row, then the most frequent others."""
    by_reason: dict[str, list[tuple[str, int]]] = {}
    for words, count in comparison.frequent_differences:
        by_reason.setdefault(reason_of(words, reasons), []).append((words, count))
    others = by_reason.pop("", [])[:MAX_UNEXPLAINED]
    rows = [
        (f"{_cell(group[0][0])}, and {len(group) - 1} like it", group[0][1], reason)
        for reason, group in by_reason.items()
    ]
    return rows + [(_cell(words), count, "") for words, count in others]


def _cell(words: str) -> str:
    return words.replace("|", "\\|")
