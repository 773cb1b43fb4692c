"""Capabilities that a target promises and this machine cannot do: what becomes of what needs them.

They are withdrawn from what the profile promises, so that what needs them is NOT_APPLICABLE, with
the program that is missing as the reason. Whoever asks for one with `--require` gets an error.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.client.target.host import Lack, lacks_of
from harness.client.target.profile import Profile
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.capability_evidence import undeclared_needs
from harness.play.judging import inapplicable_outcome
from harness.play.run import Run
from harness.protocol.values import dig, obj, text
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.explain import unknown
from harness.scenario.loader import Loaded

_UNCONFINED = ("", "danger-full-access", "dangerFullAccess", "externalSandbox")


def withdraw(
    profile: Profile,
    required: Collection[str],
    capabilities: Collection[str],
    found_lacks: Sequence[Lack] | None = None,
) -> tuple[Profile, tuple[Lack, ...]]:
    """The profile without what this machine cannot do. Raises `UsageError` if it is `required`.

    `capabilities` are all capabilities; `found_lacks` what another process of this run has found already.
    """
    for capability in profile.host:
        if capability not in capabilities:
            raise UsageError(
                f"profile {profile.name}: host: {unknown('capability', capability, capabilities)}"
            )
    lacks = lacks_of(profile) if found_lacks is None else tuple(found_lacks)
    for lack in lacks:
        if lack.capability in required:
            raise UsageError(f"--require: {lack.reason}")
    if lacks and profile.capabilities != "probe":
        gone = {lack.capability for lack in lacks}
        rest = [one for one in profile.capabilities if one not in gone]
        profile = profile.model_copy(update={"capabilities": rest})
    return profile, lacks


def withheld_outcome(
    loaded: Loaded, profile: Profile, lacks: Sequence[Lack]
) -> ScenarioOutcome | None:
    """The outcome of a scenario that only this machine keeps from being played, if it is one."""
    missing = [lack for lack in lacks if lack.capability in loaded.scenario.needs]
    others = set(undeclared_needs(loaded, profile)) - {lack.capability for lack in missing}
    if not missing or others:
        return None
    # It would be played elsewhere, so that an entry of a baseline about it is not checked here.
    outcome = inapplicable_outcome(loaded, [])
    lack = missing[0]
    return replace(outcome, reason=lack.reason, withheld=lack.capability, played=False)


def explain_lack(outcome: ScenarioOutcome, run: Run, loaded: Loaded, lacks: Sequence[Lack]) -> None:
    """Say in the first finding of a scenario that failed that it wants what this machine lacks.

    It is one in which a command under a sandbox policy did not run.
    """
    lack = next((one for one in lacks if one.capability == "sandbox"), None)
    if lack is None or outcome.verdict is not Verdict.FAIL or not outcome.findings:
        return
    if not (_has_unrun_command(run) and _asks_for_confinement(run)):
        return
    index = next(i for i, finding in enumerate(outcome.findings) if not finding.known)
    first = outcome.findings[index]
    hint = f"{lack.reason}, or write `needs: [{lack.capability}]` so that it is not played here"
    outcome.findings[index] = replace(first, message=f"{first.message} ({hint})")
    outcome.reason = outcome.findings[index].message


def _has_unrun_command(run: Run) -> bool:
    """Return whether a command failed before it could have an exit code."""
    items = (
        obj(dig(frame.params, "item"))
        for frame in run.trace.frames
        if frame.from_target and frame.method == "item/completed"
    )
    return any(
        item.get("type") == "commandExecution"
        and item.get("status") == "failed"
        and item.get("exitCode") is None
        for item in items
    )


def _asks_for_confinement(run: Run) -> bool:
    """Return whether a thread or a turn asked for a sandbox policy that confines."""
    asked = (
        given
        for frame in run.trace.frames
        if not frame.from_target and frame.method in ("thread/start", "turn/start")
        for given in (
            text(dig(frame.params, "sandbox")),
            text(dig(frame.params, "sandboxPolicy", "type")),
        )
    )
    return any(given not in _UNCONFINED for given in asked)
