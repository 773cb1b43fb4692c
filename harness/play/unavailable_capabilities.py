"""Capabilities that a target promises but this machine cannot provide.

They are withdrawn from the profile, so that scenarios that need them are NOT_APPLICABLE, with the
missing program as the reason. Requiring one with `--require` is an error.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.client.target.host import Lack, lacks_of
from harness.client.target.overrides import unplaced_settings
from harness.client.target.profile import Profile
from harness.errors import UsageError
from harness.judge.verdict import Verdict
from harness.play.capability_evidence import undeclared_needs
from harness.play.judging import inapplicable_outcome
from harness.play.run import Run
from harness.protocol.values import dig, obj, text
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.explain import unknown_name
from harness.scenario.loader import Loaded

_UNCONFINED = ("", "danger-full-access", "dangerFullAccess", "externalSandbox")


def withdraw(
    profile: Profile,
    required: Collection[str],
    capabilities: Collection[str],
    found_lacks: Sequence[Lack] | None = None,
) -> tuple[Profile, tuple[Lack, ...]]:
    """Return the profile without capabilities that this machine lacks, and these lacks.

    `found_lacks` are those that another process of this run has found already. Raises `UsageError`
    if one is `required`, or if `host` of the profile names an unknown capability.
    """
    for capability in profile.host:
        if capability not in capabilities:
            problem = unknown_name("capability", capability, capabilities)
            raise UsageError(f"profile {profile.name}: host: {problem}")
    lacks = lacks_of(profile) if found_lacks is None else tuple(found_lacks)
    for lack in lacks:
        if lack.capability in required:
            raise UsageError(f"--require: {lack.reason}")
    if lacks and profile.capabilities != "probe":
        gone = {lack.capability for lack in lacks}
        remaining = [capability for capability in profile.capabilities if capability not in gone]
        profile = profile.model_copy(update={"capabilities": remaining})
    return profile, lacks


def withheld_outcome(
    loaded: Loaded, profile: Profile, lacks: Sequence[Lack]
) -> ScenarioOutcome | None:
    """Return the outcome of a scenario that only this machine cannot play, None for any other."""
    missing = [lack for lack in lacks if lack.capability in loaded.scenario.needs]
    other_needs = set(undeclared_needs(loaded, profile)) - {lack.capability for lack in missing}
    if not missing or other_needs:
        return None
    # Other machines would play it, so baseline entries about it are not checked here.
    outcome = inapplicable_outcome(loaded, [])
    lack = missing[0]
    return replace(outcome, reason=lack.reason, withheld=lack.capability, played=False)


def unplaced_outcome(loaded: Loaded, profile: Profile) -> ScenarioOutcome | None:
    """Return the outcome of a scenario whose settings this server cannot get, None for others."""
    scenario = loaded.scenario
    reason = unplaced_settings(profile, scenario.config, has_mcp_servers=bool(scenario.mcp))
    return replace(inapplicable_outcome(loaded, []), reason=reason) if reason else None


def explain_lack(outcome: ScenarioOutcome, run: Run, loaded: Loaded, lacks: Sequence[Lack]) -> None:
    """Add to a failed scenario's first new finding that the machine lacks a sandbox.

    Only if a command under a sandbox policy did not run.
    """
    lack = next((lack for lack in lacks if lack.capability == "sandbox"), None)
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
    """Return whether a command failed without an exit code."""
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
    """Return whether a thread or turn requested a confining sandbox policy."""
    policies = (
        policy
        for frame in run.trace.frames
        if not frame.from_target and frame.method in ("thread/start", "turn/start")
        for policy in (
            text(dig(frame.params, "sandbox")),
            text(dig(frame.params, "sandboxPolicy", "type")),
        )
    )
    return any(policy not in _UNCONFINED for policy in policies)
