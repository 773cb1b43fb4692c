"""The part of a run that no message shows, as the trace's head says it.

A recording between others has none of it, and a race no steps: then they are inferred.
"""

import copy
from collections.abc import Iterator
from typing import Any, Final

from harness.protocol.values import arr, obj, text
from harness.scenario.client_steps import MAIN
from harness.trace.marks import MarkBody, StepBegins
from harness.trace.trace import Mark, Trace

Step = dict[str, Any]
# What a run with other steps than those of its file has too.
_ALWAYS: Final = ("config", "mcp", "workspace", "server", "client_name", "faults", "extensions")
_WITH_STEPS: Final = ("needs", "strict_model", "model")
_MASK: Final = "<secret "


class Given:
    """The head of a trace, read for a scenario; `exact` where it has the client's steps.

    `name` is that of the step which the client takes.
    """

    def __init__(self, trace: Trace) -> None:
        self._given = dict(obj(trace.header.given))
        self._rows = [dict(obj(one)) for one in arr(self._given.get("steps"))]
        self.exact = bool(self._rows)
        self._at = -1
        self.name = ""

    @property
    def members(self) -> dict[str, Any]:
        """The members of the scenario that stand in the head."""
        names = (*_ALWAYS, *(_WITH_STEPS if self.exact else ()))
        return {name: copy.deepcopy(self._given[name]) for name in names if self._given.get(name)}

    @property
    def files(self) -> dict[str, Any]:
        """The files that the working folder had."""
        return dict(obj(obj(self._given.get("workspace")).get("files")))

    @property
    def notes(self) -> Iterator[str]:
        """Give notes on what the head does not tell either."""
        if _MASK in str(self._given):
            yield "a secret of the configuration is masked; put another in the place of <secret 1>"

    def begins(self, step: StepBegins) -> Step:
        """The client begins its next step; gives the step where no message shows it, else {}."""
        self._at, self.name = self._at + 1, step.name
        row = self._row
        return {} if "as" in row else copy.deepcopy(row)

    @property
    def connection(self) -> str:
        """Return the name of a connection first seen now: nobody else opens a further one."""
        return text(self._row.get("connect")) or MAIN

    @property
    def alias(self) -> str:
        """Return the alias of what the playing step begins, "" if it begins nothing."""
        return text(self._row.get("as"))

    @property
    def names(self) -> set[str]:
        """Return the aliases of all that steps began."""
        return {text(one.get("as")) for one in self._rows}

    @property
    def has_begun(self) -> bool:
        """Return whether a step was begun."""
        return self._at >= 0

    @property
    def _row(self) -> Step:
        return self._rows[self._at] if 0 <= self._at < len(self._rows) else {}


def waited_for(marks: list[Mark[MarkBody]], sent: int, answered: int) -> bool:
    """Return whether the client took no further step between a request and its answer."""
    return not any(
        isinstance(mark.body, StepBegins) and sent <= mark.after < answered for mark in marks
    )
