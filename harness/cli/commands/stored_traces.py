"""Judge stored traces, with the rules of a live run."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness.cli.commands.profile_hint import profile_hint
from harness.client.target.profile import builtin_names, load_profile
from harness.judge.base import Monitor
from harness.judge.judge import feed_trace
from harness.judge.missing_messages import Decision, Treatment, decide_treatment
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.escapes import visible
from harness.protocol.spec.loading import load_book
from harness.protocol.values import arr, dig
from harness.report.causes import Cause, ServerErrors, group_by_cause
from harness.report.results.rerun_command import near_path
from harness.report.wire_lines import proof_lines
from harness.trace.foreign import TARGET as RECORDING
from harness.trace.foreign import load_any
from harness.trace.names import with_wire_names
from harness.trace.store import TraceFormatError
from harness.trace.surface.registry import classify_of
from harness.trace.trace import End, Trace

# Messages shown, and similar findings named, for each finding.
MAX_LINES: Final = 6
MAX_LIKE_FINDINGS: Final = 5
# The silence after which nothing more is expected, unless a profile sets it.
SETTLE_SECONDS: Final = 1.0
SUSPECTED: Final = "suspected"
# The words by which findings are counted, the most severe first.
WORDS: Final = ("ERROR", *map(str, Level), "KNOWN", SUSPECTED)


@cache
def builtin_server_names() -> tuple[Mapping[str, str], ...]:
    """Return the table `names` of each built-in profile, as a recording may need them."""
    return tuple(load_profile(name).names for name in builtin_names())


@dataclass(frozen=True, slots=True)
class TraceCheck:
    """The judgement of one stored trace.

    `suspected_rows` are messages that seem to be missing but cannot be judged; `names` are the
    renames used to read the file; `known_reason` returns why a row is KNOWN, `possible_reason` why
    a row of the same rule is KNOWN in other scenarios. With `strict` a broken SHOULD makes it red
    too.
    """

    path: Path
    trace: Trace
    rows: list[Row]
    decision: Decision
    names: Mapping[str, str]
    suspected_rows: list[Row] = field(default_factory=list[Row])
    known_reason: Callable[[Row], str] = lambda _: ""
    possible_reason: Callable[[Row], str] = lambda _: ""
    strict: bool = False
    has_no_target: bool = False

    @property
    def red(self) -> bool:
        """Return whether a MUST (with `strict` also a SHOULD) is broken, or a rule crashed."""
        levels = (Level.MUST, Level.SHOULD) if self.strict else (Level.MUST,)
        return any(row.level in levels or row.verdict is Verdict.ERROR for row in self.violations)

    @property
    def violations(self) -> list[Row]:
        """Return the rows of broken rules that are not known, and of crashed rules."""
        return [row for row in self.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]

    def counts(self) -> Counter[str]:
        """Return the number of findings by level; KNOWN and suspected ones separately."""
        counts = Counter(_word(row) for row in self.rows if row.verdict is not Verdict.PASS)
        counts[SUSPECTED] = len(self.suspected_rows)
        return +counts

    def lines(self) -> Iterator[str]:
        """Yield the file's counts, how missing messages were judged, and causes with messages."""
        findings = [row for row in self.rows if row.verdict is not Verdict.PASS]
        passed = {row.rule for row in self.rows} - {row.rule for row in findings}
        counts = count_words(self.counts())
        yield (
            f"{self.path}: {len(self.trace.frames)} messages, {len(passed)} rules passed"
            f"{'; ' + counts if counts else ''}"
        )
        yield from (f"  note: {words}" for words in self.trace.damage)
        reason = self.decision.reason
        how = f"(--settled judges it; harness explain {shlex.quote(self.decision.treatment)})"
        if self.decision.treatment is Treatment.NOT_JUDGED:
            yield f"  what never came is not judged: {reason} {how}"
        elif self.suspected_rows:
            yield f"  what never came is only suspected: {reason} {how}"
        elif self.decision.treatment is Treatment.JUDGED and reason:
            yield f"  what never came is judged: {reason}"
        if self.has_no_target and findings and (hint := profile_hint(self.trace)):
            yield f"  {visible(hint)}"
        words = ServerErrors(self.trace)
        causes = group_by_cause(findings)
        for cause in causes:
            yield from self._cause(cause, words, _word(cause.first))
        suspected_causes = group_by_cause(self.suspected_rows)
        for cause in suspected_causes:
            yield from self._cause(cause, words, SUSPECTED)
        shown = [cause.first for cause in (*causes, *suspected_causes)]
        proof = next((max(row.frames) for row in shown if row.frames), None)
        if proof is not None:
            file = shlex.quote(near_path(str(self.path)))
            yield f"  a message in full: harness show {file} --message {proof}"

    def json(self) -> dict[str, Any]:
        """Return the verdict and the findings as JSON."""
        found = [row for row in self.rows if row.verdict is not Verdict.PASS]
        return {
            "file": str(self.path),
            "side": "server",
            "verdict": "RED" if self.red else "GREEN",
            "messages": len(self.trace.frames),
            "missingMessages": str(self.decision.treatment),
            "damage": self.trace.damage,
            "findings": [
                *(self._finding_json(row) for row in found),
                *({**row_json(row, self.trace), "suspected": True} for row in self.suspected_rows),
            ],
        }

    def _finding_json(self, row: Row) -> dict[str, Any]:
        finding = row_json(row, self.trace)
        if row.verdict is Verdict.KNOWN:
            return {**finding, "known": self.known_reason(row)}
        possible_reason = self.possible_reason(row) if row.verdict is Verdict.FAIL else ""
        return {**finding, "perhapsKnown": possible_reason} if possible_reason else finding

    def _cause(self, cause: Cause, words: ServerErrors, word: str) -> Iterator[str]:
        first = cause.first
        yield self._wire_text(f"  {word:6} {first.rule}: {self._subject(first)}")
        yield from (f"         {line}" for line in _clauses(first))
        yield self._wire_text(f"         expected {first.expected}")
        yield self._wire_text(f"         actual   {first.actual}")
        for output in words.messages_for(first):
            yield f"         server   {textwrap.shorten(output, 240, placeholder=' …')!r}"
        if first.verdict is Verdict.KNOWN:
            yield f"         known    {self.known_reason(first)}"
        elif possible_reason := self.possible_reason(first):
            yield f"         perhaps  known {possible_reason}"
        places = [replace(place, path=self._wire_text(place.path)) for place in first.places]
        for line in proof_lines(
            self.trace, first.frames, places, limit=160, context=0, max_lines=MAX_LINES
        ):
            yield f"    {line}"
        if len(cause.rows) > 1:
            similar = [self._subject(row) for row in cause.rows[1 : MAX_LIKE_FINDINGS + 1]]
            left_count = len(cause.rows) - 1 - len(similar)
            more = f", and {left_count} more" if left_count else ""
            yield self._wire_text(
                f"         and {len(cause.rows) - 1} like it: {', '.join(similar)}{more}"
            )

    def _subject(self, row: Row) -> str:
        last = max(row.frames, default=-1)
        return (
            f"{row.subject} (#{last}{line_words(self.trace, last)})" if last >= 0 else row.subject
        )

    def _wire_text(self, text: str) -> str:
        return with_wire_names(text, self.names)


def line_words(trace: Trace, seq: int) -> str:
    """Return `, line N` for a message of the trace's file, "" if it was not read from a file."""
    line = trace.line_of(seq)
    return f", line {line}" if line else ""


def row_json(row: Row, trace: Trace) -> dict[str, Any]:
    """Return a finding as JSON: `messages` are the numbers of its proof, `lines` their lines."""
    return {
        "rule": row.rule,
        "level": str(row.level),
        "verdict": row.verdict.value,
        "subject": row.subject,
        "expected": row.expected,
        "actual": row.actual,
        "messages": list(row.frames),
        "lines": [trace.line_of(seq) for seq in row.frames],
    }


def count_words(counts: Mapping[str, int]) -> str:
    """Return counts in words, the most severe first: `MUST 2, SHOULD 1`."""
    return ", ".join(f"{word} {counts[word]}" for word in WORDS if counts.get(word))


def _word(row: Row) -> str:
    return row.verdict.value if row.verdict in (Verdict.ERROR, Verdict.KNOWN) else str(row.level)


def _clauses(row: Row) -> Iterator[str]:
    """Yield the requirement of a violation; of several, the first and the number of the others."""
    of_rule = load_book().requirements_of(row.rule)
    concerned = [requirement for requirement in of_rule if requirement.id in row.clauses] or list(
        of_rule
    )
    for requirement in concerned[:1]:
        clause = requirement.clause
        more = (
            f"; {len(concerned) - 1} more: harness explain {row.rule}" if len(concerned) > 1 else ""
        )
        yield f"clause   {requirement.id}: {clause.statement}"
        page = f"harness docs protocol#{requirement.id}"
        yield f"         {clause.document}, {clause.heading!r}, line {clause.line}; {page}{more}"


def check_trace(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known_names: Sequence[Mapping[str, str]] = (),
    known_reason: Callable[[Row, str], str] = lambda _row, _scenario: "",
    possible_reason: Callable[[Row], str] = lambda _row: "",
    settle: float = SETTLE_SECONDS,
    settled: bool = False,
    rules: Iterable[type[Monitor]] | None = None,
) -> TraceCheck:
    """Judge a stored trace with the renames of a profile, or else with those of its header.

    A third-party recording has no header: its renames are guessed among `known_names`. Its client
    is not the harness, so rules about the harness's own messages do not apply. `known_reason`
    returns why a violation in a scenario ("" in a recording) is known, "" if it is not;
    `possible_reason`, why one of its rule is known elsewhere. `settle` and `settled` are those
    of `decide_treatment`. Without `rules`, all rules of the surface judge it. Raises
    `TraceFormatError` for an invalid trace, and if there are no rules, since "nothing found" would
    read as "nothing wrong".
    """
    book = load_book()
    trace = load_stored(path, names, known_names=known_names)
    read_with = trace.header.names if names is None else names
    every = all_rules().values() if rules is None else rules
    rules = [rule for rule in every if rule.surface == trace.header.surface]
    if not rules:
        raise TraceFormatError(f"{path}: no rule judges the surface {trace.header.surface!r} yet")
    recording = trace.header.target == RECORDING
    if recording:
        rules = [rule for rule in rules if not rule.id.startswith("harness.")]
    scenario = "" if recording else trace.header.scenario

    def reason(row: Row) -> str:
        return known_reason(row, scenario)

    def known_or_not(row: Row) -> Row:
        concerned = row.verdict is Verdict.FAIL and reason(row)
        return replace(row, verdict=Verdict.KNOWN) if concerned else row

    judge = feed_trace(book, trace, rules=rules)
    decision = decide_treatment(trace, judge.open_ledgers, settle=settle, settled=settled)
    rows = judge.finish(End.QUIESCENT if decision.treatment is Treatment.JUDGED else End.CLOSED)
    suspected: list[Row] = []
    if decision.treatment is Treatment.SUSPECTED:
        already = {_key(row) for row in rows}
        at_rest = feed_trace(book, trace, rules=rules).finish(End.QUIESCENT)
        suspected = [
            replace(row, level=Level.INFO)
            for row in at_rest
            if row.verdict is Verdict.FAIL and _key(row) not in already and not reason(row)
        ]
    if opted_out := opted_out_methods(trace):
        rows = [row for row in rows if not _is_about_missing(row, opted_out)]
        suspected = [row for row in suspected if not _is_about_missing(row, opted_out)]
        methods = textwrap.shorten(visible(", ".join(sorted(opted_out))), 200, placeholder=" …")
        trace.damage.append(f"the client opted out of {methods}")
    rows = [known_or_not(row) for row in rows]
    return TraceCheck(
        path,
        trace,
        rows,
        decision,
        read_with,
        suspected,
        reason,
        possible_reason,
        has_no_target=names is None,
    )


def load_stored(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known_names: Sequence[Mapping[str, str]] = (),
) -> Trace:
    """Load a trace, a recording or a log, of any surface.

    `names` are the renames to read it with, those of its header by default; for a recording they
    are guessed among `known_names`. Raises `TraceFormatError` if it is none of the three.
    """
    book = load_book()
    return load_any(
        path,
        book.paths_of,
        names=names,
        candidates=known_names,
        classify_of=classify_of,
        sender_of=book.sender_of,
    )


def opted_out_methods(trace: Trace) -> set[str]:
    """Return the notifications that a client asked not to get when it initialized, and never got.

    The specification has no such member; clients of a shipping server use it.
    """
    sent = {frame.method for frame in trace.frames if frame.from_target}
    return {
        method
        for frame in trace.frames
        if frame.method == "initialize" and not frame.from_target
        for method in arr(dig(frame.params, "capabilities", "optOutNotificationMethods"))
        if isinstance(method, str) and method not in sent
    }


def _is_about_missing(row: Row, methods: Collection[str]) -> bool:
    """Return whether a violation is that one of these notifications is missing."""
    return row.verdict is Verdict.FAIL and row.expected.split(" ")[0] in methods


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.rule, row.subject, row.verdict.value, row.actual
