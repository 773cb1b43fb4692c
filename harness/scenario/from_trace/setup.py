"""Data of a run that no message shows, from the head of its trace.

A recording has no such data, and a race no steps; these are inferred instead.
"""

import copy
from collections.abc import Iterator
from typing import Any, Final

from harness.protocol.values import arr, obj, text
from harness.scenario.client_steps import MAIN_CONNECTION
from harness.trace.marks import MarkBody, StepBegins
from harness.trace.trace import Mark, Trace

Step = dict[str, Any]
# Members that the heads of races have too; a race plays other steps than the file's.
_MEMBERS_WITHOUT_STEPS: Final = (
    "config",
    "mcp",
    "workspace",
    "server",
    "client_name",
    "faults",
    "extensions",
)
_MEMBERS_WITH_STEPS: Final = ("needs", "strict_model", "model")
_MASK: Final = "<secret "


class TraceHead:
    """Scenario members in the head of a trace; `has_steps` is whether the client's steps are there.

    `step_name` is the name of the current step.
    """

    def __init__(self, trace: Trace) -> None:
        self._members = dict(obj(trace.header.given))
        self._rows = [dict(obj(row)) for row in arr(self._members.get("steps"))]
        self.has_steps = bool(self._rows)
        self._index = -1
        self.step_name = ""

    @property
    def members(self) -> dict[str, Any]:
        """Return the scenario's members that the head holds, copied."""
        names = (*_MEMBERS_WITHOUT_STEPS, *(_MEMBERS_WITH_STEPS if self.has_steps else ()))
        return {
            name: copy.deepcopy(self._members[name]) for name in names if self._members.get(name)
        }

    @property
    def files(self) -> dict[str, Any]:
        """Return the files that the workspace had at first, keyed by path."""
        return dict(obj(obj(self._members.get("workspace")).get("files")))

    @property
    def notes(self) -> Iterator[str]:
        """Yield notes on data that the head lacks: masked secrets."""
        if _MASK in str(self._members):
            yield "a secret of the configuration is masked; put another in the place of <secret 1>"

    def begin_step(self, step: StepBegins) -> Step:
        """Advance to the client's next step; return it if no message shows it, else {}."""
        self._index, self.step_name = self._index + 1, step.name
        row = self._row
        return {} if "as" in row else copy.deepcopy(row)

    @property
    def connection(self) -> str:
        """Return the name of a new connection: that of the current step, else the main one."""
        return text(self._row.get("connect")) or MAIN_CONNECTION

    @property
    def alias(self) -> str:
        """Return the alias that the current step gives, "" for none."""
        return text(self._row.get("as"))

    @property
    def names(self) -> set[str]:
        """Return all aliases that the steps give."""
        return {text(row.get("as")) for row in self._rows}

    @property
    def has_begun_step(self) -> bool:
        """Return whether the run has begun a step."""
        return self._index >= 0

    @property
    def _row(self) -> Step:
        return self._rows[self._index] if 0 <= self._index < len(self._rows) else {}


def waited_for_answer(marks: list[Mark[MarkBody]], request_seq: int, answer_seq: int) -> bool:
    """Return whether the client took no further step between a request and its answer."""
    return not any(
        isinstance(mark.body, StepBegins) and request_seq <= mark.after < answer_seq
        for mark in marks
    )
