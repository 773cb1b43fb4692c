"""Keeping of a scenario's transcript in a run with snapshots.

One that is as accepted needs nothing. One that is not is played twice more, the second time on a
fresh process: if it is as accepted then, its difference was chance; if it is not, what all plays
have in common is pending. Where nothing but the order differs from what is accepted it is played
more often. So a scenario whose messages race does not wait for review in every run.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from harness.errors import HarnessError
from harness.report.snapshot.changes import meaning
from harness.report.snapshot.files import Snapshot, SnapshotError
from harness.report.snapshot.folder import Folder
from harness.report.snapshot.message import Transcript
from harness.report.snapshot.portable import transcript_of
from harness.report.snapshot.stability import common, freed, shows
from harness.trace.trace import Trace

SAME, NEW, CHANGED, UNSTEADY, NOT_KEPT = "same", "new", "changed", "unsteady", "not kept"
PLAYS: Final = 3
"""So many plays a new or changed transcript is made of."""
PLAYS_FOR_ORDER: Final = 9
"""So many at most where only the order changed: two messages that race are seen in either order in
half of all plays, and three plays that agree are no rarity."""


class Again(Protocol):
    """Plays the scenario once more; None where it did not pass then."""

    def __call__(self, *, fresh: bool) -> Trace | None:
        """With `fresh` on a process that no other scenario has used."""
        ...


class Keeper:
    """Keeps the transcripts of one target in a folder."""

    def __init__(self, folder: Folder, target: str) -> None:
        self.folder, self.target = folder, target

    def keep(
        self, scenario: str, trace: Trace, again: Again, *, handshake: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Compare a play with what is accepted; the state, and sentences about it."""
        try:
            return self._keep(scenario, trace, again, handshake)
        except OSError as error:
            where = error.filename or self.folder.path
            return NOT_KEPT, (f"{where} cannot be written: {error.strerror}",)

    def _keep(
        self, scenario: str, trace: Trace, again: Again, handshake: bool
    ) -> tuple[str, tuple[str, ...]]:
        played = transcript_of(trace, handshake=handshake)
        problem, accepted = "", None
        try:
            accepted = self.folder.accepted(self.target, scenario)
        except SnapshotError as error:
            problem = f"{self.folder.accepted_file(self.target, scenario)}:{error}"
        before = accepted.transcript if accepted else None
        if before is not None and shows(before, played):
            self.folder.forget_pending(self.target, scenario)
            return SAME, ()
        now = self._pending(scenario)
        if now is None or not shows(now, played):
            plays = [played]
            for one in self._further(again, handshake):
                if before is not None and shows(before, one):
                    self.folder.forget_pending(self.target, scenario)
                    return UNSTEADY, tuple(meaning(before, played))
                plays.append(one)
                if len(plays) >= PLAYS and not _only_order(before, plays):
                    break
            now = common(plays)
            self.folder.keep_pending(Snapshot(scenario, self.target, now))
        told = meaning(before, now)
        if problem:
            return CHANGED, (problem,)
        return (NEW if before is None else CHANGED), tuple(told)

    def _pending(self, scenario: str) -> Transcript | None:
        """Return the waiting transcript; a file that cannot be read is written anew."""
        try:
            found = self.folder.pending(self.target, scenario)
        except SnapshotError:
            return None
        return found.transcript if found else None

    def _further(self, again: Again, handshake: bool) -> Iterator[Transcript]:
        for number in range(1, PLAYS_FOR_ORDER):
            try:
                trace = again(fresh=number == PLAYS - 1)
            except HarnessError:
                return  # The server cannot be started again, which is told elsewhere.
            if trace is not None:
                yield transcript_of(trace, handshake=handshake)
            elif number >= PLAYS - 1:
                return  # It fails now and then: that is told elsewhere too.


def _only_order(before: Transcript | None, plays: list[Transcript]) -> bool:
    """Return whether every play shows what is accepted, but for its order."""
    return before is not None and all(shows(freed(before), one) for one in plays)
