"""Probes for capabilities that a target lacks, before a scenario needs them.

Most scenarios of the suite need a capability that a small server lacks, and playing each of them to
find that out takes a minute. So when the first scenario needs a capability, a worker plays the
`probes/*.scenario.yaml` whose `needs` name it, each on a process of its own. Every scenario that
needs an absent capability ends as NOT_APPLICABLE without being played.

The answer depends on the server alone, never on the scenarios played before, so every order and
every number of workers gives the same verdicts, reasons and rows. For the same reason nothing is
learned from the scenarios themselves: one that stops early, or sends other requests, shows less.

A probe tries several ways. A capability is absent only if all of them failed; a probe that did not
come to its end shows nothing. A capability that is offered in part, or that has no probe, is
decided by each scenario. A probe's trace is stored and, being set-up, not judged.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from harness.client.target.profile import Profile
from harness.play.capability_evidence import (
    METHODS,
    PROBE_ONLY,
    absent_needs,
    refused_methods,
    shown_needs,
)
from harness.play.run import Run
from harness.scenario.loader import Loaded, find_scenarios, load
from harness.trace.views import conversation_of

_FOLDER = Path(__file__).parent / "probes"


class CapabilityProber:
    """Capabilities that probes have shown to be absent or offered.

    `offered` holds those that a probe has seen. A scenario may need more of one than the probe saw.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._played_probes: set[str] = set()
        self._absent_capabilities: set[str] = set()
        self.offered: set[str] = set()

    def missing_needs(self, loaded: Loaded, play: Callable[[Loaded], Run]) -> list[str]:
        """Return the needs of a scenario that probes show to be absent; plays new probes if needed.

        `play` plays a probe and may raise `SetupFailed`.
        """
        if self._profile.capabilities != "probe":
            return []
        needs = loaded.scenario.needs
        for probe in load_probes():
            if probe.id not in self._played_probes and not set(needs).isdisjoint(
                probe.scenario.needs
            ):
                run = play(probe)
                self._played_probes.add(probe.id)
                absent = absent_after_probe(probe, run, self._profile)
                self._absent_capabilities |= absent
                self.offered |= offered_after_probe(probe, run) - absent
        return [need for need in needs if need in self._absent_capabilities]


@cache
def load_probes() -> tuple[Loaded, ...]:
    """Return the probes, by name; no two probe the same capability. Cached for the process."""
    return tuple(load(file, root=_FOLDER.parent) for _, file in find_scenarios([_FOLDER]))


def absent_after_probe(probe: Loaded, run: Run, profile: Profile) -> set[str]:
    """Return the capabilities that a probe's run shows to be absent in every way it tried."""
    conversation = conversation_of(run.trace)
    if not _is_complete(probe, run):
        return set()
    unknown = refused_methods(run, conversation)
    absent = {
        need
        for need in absent_needs(probe, run, conversation, profile, is_probe=True)
        if need not in METHODS or unknown.issuperset(METHODS[need])
    }
    return absent | {
        need
        for need in probe.scenario.needs
        if need in PROBE_ONLY and not PROBE_ONLY[need](run, conversation)
    }


def offered_after_probe(probe: Loaded, run: Run) -> set[str]:
    """Return the capabilities that a probe's run has shown to be offered."""
    if not _is_complete(probe, run) or run.unmet is not None:
        return set()
    return shown_needs(probe, run, conversation_of(run.trace))


def _is_complete(probe: Loaded, run: Run) -> bool:
    """Return whether the probe sent every request and the server called the model for each thread.

    A probe that stopped because a capability is missing counts as complete.
    """
    if not run.is_complete:
        return False
    if run.unmet is not None:
        return bool(run.unmet.capability)
    called = {call.thread for call in run.model.calls}
    return called.issuperset(alias for alias, steps in probe.scenario.scripts().items() if steps)
