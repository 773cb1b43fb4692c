"""Findings of a recording by cause, with the server's own error messages."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

_INDEX: Final = re.compile(r"\[\d+\]")
_WEIGHT: Final = {level: weight for weight, level in enumerate(Level)}
# The server's error messages that are shown with a finding.
_MAX_MESSAGES_SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """Violations with the same cause: of one rule and level, about the same member."""

    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        """The violation that is shown in full."""
        return self.rows[0]


def group_by_cause(rows: Iterable[Row]) -> list[Cause]:
    """Return violations grouped by cause, the most severe first, then in the order of the trace.

    The same cause means: the same rule, level and clause, and the same member of the same kind of
    message; indexes of lists are ignored.
    """
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=_last_frame):
        path = _INDEX.sub("[]", row.places[0].path) if row.places else ""
        alike[row.rule, row.verdict.value, row.level, row.clauses, path].append(row)
    groups = [Cause(tuple(same)) for same in alike.values()]
    return sorted(groups, key=lambda cause: (_weight(cause.first), _last_frame(cause.first)))


def _weight(row: Row) -> int:
    if row.verdict is Verdict.ERROR:
        return -1
    return _WEIGHT[row.level] + (len(_WEIGHT) if row.verdict is Verdict.KNOWN else 0)


def _last_frame(row: Row) -> int:
    return max(row.frames, default=-1)


class ServerErrors:
    """The server's own error messages, by turn and by message."""

    def __init__(self, trace: Trace) -> None:
        self._frames = trace.frames
        self._correlation = Correlation(trace.frames)
        self._by_turn: dict[str, list[str]] = defaultdict(list)
        for frame in trace.frames:
            if not frame.from_target:
                continue
            error, turn = _error_of(frame), _turn_of(frame)
            if error and turn and error not in self._by_turn[turn]:
                self._by_turn[turn].append(error)

    def messages_for(self, row: Row) -> list[str]:
        """Return the error messages of a row's frames, answers and turns.

        Without those that the row quotes, and at most _MAX_MESSAGES_SHOWN.
        """
        errors: list[str] = []
        for seq in row.frames:
            if not 0 <= seq < len(self._frames):
                continue
            frame = self._frames[seq]
            is_client_request = frame.kind is Kind.REQUEST and not frame.from_target
            answer = self._correlation.answer_of(frame) if is_client_request else None
            errors += [_error_of(frame), _error_of(answer) if answer else ""]
            errors += self._by_turn.get(_turn_of(frame), ())
        shown_text = f"{row.expected} {row.actual}"
        unshown = [said for said in dict.fromkeys(errors) if said and said not in shown_text]
        return unshown[:_MAX_MESSAGES_SHOWN]


def _error_of(frame: Frame) -> str:
    """Return the error message of an answer, a notification, or a failed turn."""
    if frame.kind in (Kind.ERROR, Kind.RESPONSE):
        return text(obj(frame.error).get("message"))
    params = obj(frame.params)
    return text(dig(params, "error", "message")) or text(dig(params, "turn", "error", "message"))


def _turn_of(frame: Frame) -> str:
    params = obj(frame.params)
    ids = (params.get("turnId"), dig(params, "turn", "id"), dig(frame.result, "turn", "id"))
    return next((text(name) for name in ids if text(name)), "")
