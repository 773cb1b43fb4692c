"""Finds out, once, which capabilities a probed target lacks, before a scenario needs them.

Most scenarios of the suite need something that a small server lacks, and playing each of them to
find that out again takes a minute. So a worker asks for a capability when the first scenario needs
it: it plays the `probes/*.scenario.yaml` whose `needs` name it, each on a process of its own. Every
scenario that needs a capability shown to be absent ends as NOT_APPLICABLE without being played.

The answer depends on the server alone, never on the scenarios played before, so every order and
every number of workers gives the same verdicts, reasons and rows. For the same reason nothing is
learned from the scenarios themselves: one that stops early, or asks in its own way, shows less.

A probe asks in several ways. It shows a capability to be absent only if all of them failed, and
shows nothing if it did not come to its end. A capability that is offered in part, or that no probe
asks for, is decided by each scenario. A probe's trace is kept and, being set-up, not judged.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from harness.client.target.profile import Profile
from harness.play.capability_evidence import PROBE_ONLY, METHODS, absent, refused_methods
from harness.play.run import Run
from harness.scenario.loader import Loaded, find, load
from harness.trace.views import conversation_of

_FOLDER = Path(__file__).parent / "probes"


class CapabilityProber:
    """Remembers the capabilities for which a target was asked."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._asked: set[str] = set()
        self._absent: set[str] = set()

    def lacking(self, loaded: Loaded, play: Callable[[Loaded], Run]) -> list[str]:
        """Return the needs of a scenario that the target does not offer in any way.

        `play` plays a probe and may raise `SetupFailed`.
        """
        if self._profile.capabilities != "probe":
            return []
        needs = loaded.scenario.needs
        for probe in probes():
            if probe.id not in self._asked and not set(needs).isdisjoint(probe.scenario.needs):
                run = play(probe)
                self._asked.add(probe.id)
                self._absent |= shown_absent(probe, run, self._profile)
        return [need for need in needs if need in self._absent]


@cache
def probes() -> tuple[Loaded, ...]:
    """The probes, by name; no two ask for the same."""
    return tuple(load(file, root=_FOLDER.parent) for _, file in find([_FOLDER]))


def shown_absent(probe: Loaded, run: Run, profile: Profile) -> set[str]:
    """Return what a probe's run shows not to be offered in any of the ways in which it asked."""
    conversation = conversation_of(run.trace)
    if not _came_to_its_end(probe, run):
        return set()
    unknown = refused_methods(run, conversation)
    shown = {
        need
        for need in absent(probe, run, conversation, profile, is_probe=True)
        if need not in METHODS or unknown.issuperset(METHODS[need])
    }
    return shown | {
        need
        for need in probe.scenario.needs
        if need in PROBE_ONLY and not PROBE_ONLY[need](run, conversation)
    }


def _came_to_its_end(probe: Loaded, run: Run) -> bool:
    """Return whether everything was asked for, down to the model.

    What could not be asked for, for want of a tool, is left out.
    """
    if not run.is_complete:
        return False
    if run.unmet is not None:
        return bool(run.unmet.capability)
    called = {call.thread for call in run.model.calls}
    return called.issuperset(alias for alias, steps in probe.scenario.scripts().items() if steps)
