"""Findings in a diagram: the messages that they point at, and messages that never came."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.judge.verdict import Place, Row, Verdict
from harness.protocol.values import obj, text
from harness.report.diagram.labels import MAX_NOTE_CHARACTERS, shorten
from harness.report.diagram.model import FindingMark
from harness.report.results.outcome import Finding
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Frame
from harness.trace.gaps import events_of
from harness.trace.obligations import ObligationKind
from harness.trace.surfaces import SESSION
from harness.trace.trace import Trace

_METHOD: Final = re.compile(r"(?!params\b|result\b|error\b)[A-Za-z]+(?:[/.][A-Za-z]+)+")
_ANSWERS: Final = ("a result or an error", "an answer")
_SHOWN: Final = (Verdict.FAIL, Verdict.KNOWN, Verdict.ERROR)


@dataclass(frozen=True, slots=True)
class MissingMessage:
    """A message that never came: its name, the message that makes it owed, its findings.

    `before` is the number of the message before which it should have come, None if at any time.
    """

    label: str
    because: Frame
    is_answer: bool = False
    before: int | None = None
    marks: tuple[FindingMark, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedFindings:
    """Findings by the message that they point at, those of missing messages, and the others."""

    by_frame: Mapping[int, Sequence[FindingMark]]
    missing: Sequence[MissingMessage] = ()
    others: Sequence[FindingMark] = field(default_factory=tuple[FindingMark, ...])


def place_findings(trace: Trace, findings: Iterable[Row | Finding]) -> PlacedFindings:
    """Return the violations among findings by place; messages that are owed are added."""
    by_frame: defaultdict[int, list[FindingMark]] = defaultdict(list)
    others: list[FindingMark] = []
    missing: dict[tuple[str, int], MissingMessage] = {}
    explained: set[tuple[str, int]] = set()
    for finding in findings:
        if isinstance(finding, Row) and finding.verdict not in _SHOWN:
            continue
        paths = _paths_by_frame(trace, finding)
        lacking = _find_missing_message(trace, finding) if isinstance(finding, Row) else None
        wrong = None if lacking else _wrong_frame(finding, paths)
        for seq, path in paths.items():
            by_frame[seq].append(_mark_of(finding, path, in_proof=seq != wrong))
        if lacking is not None:
            key = lacking.label, lacking.because.seq
            explained |= {(lacking.label, seq) for seq in paths}
            earlier = missing[key].marks if key in missing else ()
            marks = (*earlier, _mark_of(finding))
            missing[key] = MissingMessage(
                lacking.label, lacking.because, lacking.is_answer, lacking.before, marks
            )
        elif wrong is None:
            others.append(_mark_of(finding))
    owed = [one for one in _owed_messages(trace) if (one.label, one.because.seq) not in explained]
    return PlacedFindings(by_frame, [*missing.values(), *owed], others)


def _mark_of(finding: Row | Finding, path: str = "", *, in_proof: bool = False) -> FindingMark:
    if isinstance(finding, Finding):
        level = "KNOWN" if finding.known else str(finding.level)
        words = shorten(finding.message, 2 * MAX_NOTE_CHARACTERS)
        return FindingMark(finding.id, level, path, words, in_proof)
    level = str(finding.level) if finding.verdict is Verdict.FAIL else finding.verdict.value
    words = f"{finding.subject}: expected {finding.expected}; actual {finding.actual}"
    return FindingMark(finding.rule, level, path, shorten(words, 2 * MAX_NOTE_CHARACTERS), in_proof)


def _paths_by_frame(trace: Trace, finding: Row | Finding) -> dict[int, str]:
    """Return the messages of a finding's proof, each with the first of its members, or ""."""
    paths: dict[int, str] = {}
    for place in finding.places:
        paths.setdefault(place.frame, place.path)
    for seq in finding.frames if isinstance(finding, Row) else ():
        paths.setdefault(seq, "")
    return {seq: path for seq, path in paths.items() if 0 <= seq < len(trace.frames)}


def _wrong_frame(finding: Row | Finding, paths: Mapping[int, str]) -> int | None:
    """Return the wrong message: that of the member that is expected otherwise, else the last one.

    Of two messages that must not both come, the second is wrong.
    """
    placed = [place for place in finding.places if place.frame in paths]
    if placed and not (isinstance(finding, Row) and _is_expected_elsewhere(finding, placed[0])):
        return placed[0].frame
    return max((place.frame for place in placed), default=max(paths, default=None))


def _is_expected_elsewhere(row: Row, first: Place) -> bool:
    return not (first.path and row.expected.startswith(first.path))


def _find_missing_message(trace: Trace, row: Row) -> MissingMessage | None:
    """Return the message that a violation misses, None if it is about another fault.

    A violation names it first in `expected`, and its proof has none of that name.
    """
    proof = [trace.frames[seq] for seq in row.frames if 0 <= seq < len(trace.frames)]
    if not proof:
        return None
    if row.expected.startswith(_ANSWERS):
        return MissingMessage(f"answer to {shorten(name_of(proof[-1]))}", proof[-1], is_answer=True)
    name = _METHOD.match(row.expected)
    if name is None or row.expected[name.end() : name.end() + 1] not in ("", " ", ","):
        return None
    if any(name_of(frame) == name[0] for frame in proof):
        return None
    before = proof[-1].seq if " before " in row.expected or " first" in row.actual else None
    return MissingMessage(name[0], proof[-1], before=before)


def name_of(frame: Frame) -> str:
    """Return the method of a message, or the type of an event."""
    return frame.method or text(obj(frame.json).get("type"))


def _owed_messages(trace: Trace) -> Iterator[MissingMessage]:
    """Yield the messages that the server owes at the end of a session's trace."""
    if trace.header.surface != SESSION:
        return
    ledgers = ConnectionLedgers()
    for event in events_of(trace):
        if isinstance(event, Frame):
            ledgers.feed(event)
        else:
            ledgers.feed_mark(event)
    for owed in ledgers.open_obligations():
        is_answer = owed.kind is ObligationKind.ANSWER
        label = f"answer to {shorten(owed.frame.method)}" if is_answer else str(owed.kind)
        yield MissingMessage(label, owed.frame, is_answer)
