"""Keeping of a scenario's transcript in a run with snapshots.

A play that matches the accepted transcript needs nothing. One that does not is played twice more,
the second time on a fresh process: if a play matches then, the difference was chance; if none does,
the common part of all plays is pending. If only the order differs from the accepted one, it is
played more often, so that a scenario whose messages race does not wait for review in every run.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from harness.errors import HarnessError
from harness.report.snapshot.changes import describe_changes
from harness.report.snapshot.files import Snapshot, SnapshotError
from harness.report.snapshot.folder import SnapshotFolder
from harness.report.snapshot.message import Transcript
from harness.report.snapshot.portable import transcript_of
from harness.report.snapshot.stability import common_transcript, matches, without_order
from harness.trace.trace import Trace

SAME, NEW, CHANGED, UNSTEADY, NOT_KEPT = "same", "new", "changed", "unsteady", "not kept"
PLAYS_COMPARED: Final = 3
"""Plays from which a new or changed transcript is made."""
PLAYS_FOR_ORDER: Final = 9
"""At most this many if only the order changed: each order of two racing messages occurs in half of
all plays, so three plays often agree by chance."""


class Replay(Protocol):
    """Function that plays a scenario once more and returns the trace, None if it did not pass."""

    def __call__(self, *, fresh: bool) -> Trace | None:
        """Play the scenario, with `fresh` on a process that no other scenario has used."""
        ...


class Keeper:
    """Keeper of the transcripts of one target in a folder."""

    def __init__(self, folder: SnapshotFolder, target: str) -> None:
        self.folder, self.target = folder, target

    def keep(
        self, scenario: str, trace: Trace, replay: Replay, *, handshake: bool
    ) -> tuple[str, tuple[str, ...]]:
        """Compare a play with the accepted transcript, and store one that differs for review.

        Return the state, such as `NEW`, and sentences about it.
        """
        try:
            return self._keep(scenario, trace, replay, handshake)
        except OSError as error:
            path = error.filename or self.folder.path
            return NOT_KEPT, (f"{path} cannot be written: {error.strerror}",)

    def _keep(
        self, scenario: str, trace: Trace, replay: Replay, handshake: bool
    ) -> tuple[str, tuple[str, ...]]:
        played = transcript_of(trace, handshake=handshake)
        problem, accepted = "", None
        try:
            accepted = self.folder.load_accepted(self.target, scenario)
        except SnapshotError as error:
            problem = f"{self.folder.accepted_file(self.target, scenario)}:{error}"
        before = accepted.transcript if accepted else None
        if before is not None and matches(before, played):
            self.folder.forget_pending(self.target, scenario)
            return SAME, ()
        now = self._load_pending(scenario)
        if now is None or not matches(now, played):
            plays = [played]
            for other in self._further_plays(replay, handshake):
                if before is not None and matches(before, other):
                    self.folder.forget_pending(self.target, scenario)
                    return UNSTEADY, tuple(describe_changes(before, played))
                plays.append(other)
                if len(plays) >= PLAYS_COMPARED and not _differ_in_order_only(before, plays):
                    break
            now = common_transcript(plays)
            self.folder.keep_pending(Snapshot(scenario, self.target, now))
        sentences = describe_changes(before, now)
        if problem:
            return CHANGED, (problem,)
        return (NEW if before is None else CHANGED), tuple(sentences)

    def _load_pending(self, scenario: str) -> Transcript | None:
        """Return the pending transcript; None if its file cannot be read, to write it anew."""
        try:
            snapshot = self.folder.load_pending(self.target, scenario)
        except SnapshotError:
            return None
        return snapshot.transcript if snapshot else None

    def _further_plays(self, replay: Replay, handshake: bool) -> Iterator[Transcript]:
        for number in range(1, PLAYS_FOR_ORDER):
            try:
                trace = replay(fresh=number == PLAYS_COMPARED - 1)
            except HarnessError:
                return  # The server cannot be started again, which is reported elsewhere.
            if trace is not None:
                yield transcript_of(trace, handshake=handshake)
            elif number >= PLAYS_COMPARED - 1:
                return  # It is flaky, which is reported elsewhere too.


def _differ_in_order_only(before: Transcript | None, plays: list[Transcript]) -> bool:
    """Return whether every play matches the accepted transcript, but for its order."""
    return before is not None and all(matches(without_order(before), play) for play in plays)
