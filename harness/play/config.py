"""The options of a run, checked before any server is started."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.client.target.host import Lack
from harness.client.target.place import base_folder
from harness.client.target.profile import Deviation, Profile, load_profile, split_command
from harness.client.target.program import find_program
from harness.errors import UsageError
from harness.judge.base import Monitor, judges
from harness.judge.rules.discovery import all_rules
from harness.play.name_checks import check_command, check_entry, check_profile
from harness.play.plays import PlayLimits
from harness.play.withheld import withdraw
from harness.protocol.spec.book import Book
from harness.protocol.spec.loading import load_book
from harness.report.results import expiry
from harness.report.results.baseline import load_baseline
from harness.report.results.baseline_globs import Spoken
from harness.report.results.report import Issue
from harness.scenario.explain import unknown
from harness.scenario.model import Scenario
from harness.scenario.surfaces import EXEC_COMMAND, MCP_COMMAND, needs_agent
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION, surface_of

_ONCE = PlayLimits()


@dataclass(frozen=True, slots=True)
class Config:
    """The checked options of a run. Make it with `configure`.

    `shipped` are those of the `entries` that speak of the bundled scenarios, being a built-in
    profile's; `spoken` are the scenarios of the others. `lacks` is what this machine cannot do of
    what the profile promised. `run` names the run whose traces are kept, "" keeps none. With
    `keep_going` every scenario is played, however hopeless the
    server is. `surfaces` are those on which the target is played. `places` says where the entries
    of the baseline file stand (`known.toml:4:1`), `expiring` what is told of their last days.
    `plays` says how often a scenario is played, and until when.
    """

    profile: Profile
    entries: tuple[Deviation, ...]
    rules: dict[str, type[Monitor]]
    book: Book
    base: Path
    scale: float = 1.0
    strict: bool = False
    only_rules: tuple[str, ...] = ()
    option: str = ""
    bundled_entries: tuple[Deviation, ...] = ()
    entry_scenarios: tuple[Spoken, ...] = ()
    lacks: tuple[Lack, ...] = ()
    keep_going: bool = False
    run: str = ""
    surfaces: tuple[str, ...] = (SESSION,)
    places: Mapping[Deviation, str] = field(default_factory=dict[Deviation, str])
    expiry_issues: tuple[Issue, ...] = ()
    plays: PlayLimits = _ONCE

    def surfaces_of(self, scenario: Scenario) -> list[str]:
        """On which surfaces a scenario is played: an SDK plays a session's on a known agent."""
        no_agent = needs_agent(scenario) and not self.profile.exec.command
        without = {SDK} if no_agent else set[str]()
        return [one for one in self.surfaces if one in scenario.surfaces and one not in without]


def configure(
    *,
    target: str = "spec",
    server_cmd: str = "",
    agent_cmd: str = "",
    sdk_cmd: str = "",
    baseline: str = "",
    rule: str = "",
    require: str = "",
    scale: float = 1.0,
    strict: bool = False,
    lacks: Sequence[Lack] | None = None,
    keep_going: bool = False,
    run: str = "",
    plays: PlayLimits = _ONCE,
) -> Config:
    """Check everything that can be checked before a server is started. Raises `UsageError`.

    `lacks` is what another process of this run found the machine to lack; None asks the machine.
    """
    profile = load_profile(target)
    if server_cmd:
        command = split_command(server_cmd)
        check_command(command)
        profile = profile.model_copy(update={"command": command})
    if agent_cmd:
        command = split_command(agent_cmd)
        check_command(command, "--agent-cmd")
        program = profile.exec.model_copy(update={"command": command})
        profile = profile.model_copy(update={"exec": program})
        find_program(command, "--agent-cmd")
    if sdk_cmd:
        command = split_command(sdk_cmd)
        check_command(command, "--sdk-cmd")
        driver = profile.sdk.model_copy(update={"command": command})
        profile = profile.model_copy(update={"sdk": driver})
        find_program(command, "--sdk-cmd")
    given = {"server": bool(server_cmd), "agent": bool(agent_cmd), "sdk": bool(sdk_cmd)}
    surfaces = _chosen_surfaces(profile, **given)
    if not surfaces:
        raise UsageError(
            f"the profile {profile.name!r} has no command; give --server-cmd 'program arguments', "
            "--agent-cmd for agent exec and agent mcp, or --sdk-cmd for the driver of an SDK"
        )
    profile = _without_unplayed(profile, surfaces)
    if SESSION in surfaces:
        profile.listening_kind()
        find_program(profile.command)
    if not 0 < scale < math.inf:
        raise UsageError("--timeout-scale must be a number greater than 0")
    book = load_book()
    known = [one.id for one in book.capabilities]
    check_profile(profile, book)
    wanted = _wanted(require, known)
    if EXEC in surfaces and not {EXEC_COMMAND, MCP_COMMAND} & {*wanted}:
        _check_commands(profile)
        wanted = [*wanted, EXEC_COMMAND] if wanted else []
    profile, found = withdraw(_required(profile, wanted), wanted, known, lacks)
    rules = all_rules()
    entries = list(profile.deviations)
    for index, entry in enumerate(entries):
        check_entry(entry, profile.place("deviations", index, "rule"), rules)
    spoken = [
        Spoken(entry.scenario, profile.place("deviations", index, "scenario"))
        for index, entry in enumerate(entries)
        if not profile.is_built_in("deviations", index)
    ]
    shipped = [
        entry for index, entry in enumerate(entries) if profile.is_built_in("deviations", index)
    ]
    places: dict[Deviation, str] = {}
    if baseline:
        added = load_baseline(Path(baseline))
        for index, entry in enumerate(added.entries):
            check_entry(entry, added.place(index, "rule"), rules)
            spoken.append(Spoken(entry.scenario, added.place(index, "scenario")))
            places[entry] = str(added.place(index, "rule"))
        entries += added.entries
    only = tuple(dict.fromkeys(name.strip() for name in rule.split(",") if rule))
    for name in only:
        if name not in rules:
            raise UsageError(f"--rule: {unknown('rule id', name, rules, listed='harness list')}")
    if only:
        rules = {name: rules[name] for name in only}
        entries = [entry for entry in entries if entry.rule in only]
    entries = [one for one in entries if _is_relevant(one, rules, surfaces)]
    day = expiry.today()
    expiring = expiry.expiring(entries, day, places)
    entries = [one for one in entries if expiry.alive(one, day)]
    rules = {name: one for name, one in rules.items() if _judges_any(one, surfaces)}
    return Config(
        profile,
        tuple(entries),
        rules,
        book,
        base_folder(),
        scale,
        strict,
        only_rules=only,
        option=target,
        bundled_entries=tuple(shipped),
        entry_scenarios=tuple(spoken),
        lacks=found,
        keep_going=keep_going,
        run=run,
        surfaces=surfaces,
        places=places,
        expiry_issues=tuple(expiring),
        plays=plays,
    )


def _chosen_surfaces(profile: Profile, *, server: bool, agent: bool, sdk: bool) -> tuple[str, ...]:
    """Return the surfaces that a command was given for, else those of the profile's commands."""
    named = server or agent or sdk
    session = server or (bool(profile.command) and not named)
    program = agent or (bool(profile.exec.command) and not named)
    driver = sdk or (bool(profile.sdk.command) and not named)
    return (
        *((SESSION,) if session else ()),
        *((EXEC, COMMAND) if program else ()),
        *((SDK,) if driver else ()),
    )


def _without_unplayed(profile: Profile, surfaces: Collection[str]) -> Profile:
    """The profile without the commands of what is not played."""
    unused: dict[str, Any] = {}
    if SESSION not in surfaces:
        unused["command"] = []
    if not {EXEC, COMMAND, SDK} & {*surfaces}:
        unused["exec"] = profile.exec.model_copy(update={"command": []})
    if SDK not in surfaces:
        unused["sdk"] = profile.sdk.model_copy(update={"command": []})
    return profile.model_copy(update=unused)


def _is_relevant(
    entry: Deviation, rules: Mapping[str, type[Monitor]], surfaces: Collection[str]
) -> bool:
    """Return whether an entry is about what is played.

    An entry about any scenario is about all surfaces.
    """
    if entry.rule in rules:
        return _judges_any(rules[entry.rule], surfaces)
    return entry.scenario == "*" or surface_of(entry.scenario) in surfaces


def _check_commands(profile: Profile) -> None:
    """A list of capabilities has a command of the agent that is played. Raises `UsageError`."""
    promised = profile.capabilities
    if promised != "probe" and not {EXEC_COMMAND, MCP_COMMAND} & {*promised}:
        raise UsageError(
            f"profile {profile.name}: capabilities: no command of the agent is promised; add "
            f'"{EXEC_COMMAND}", "{MCP_COMMAND}" or both'
        )


def _wanted(require: str, capabilities: list[str]) -> list[str]:
    """`--require all` or a list, as capabilities. Raises `UsageError`."""
    if not require:
        return []
    wanted = capabilities if require == "all" else [name.strip() for name in require.split(",")]
    for name in wanted:
        if name not in capabilities:
            raise UsageError(f"--require: {unknown('capability', name, ('all', *capabilities))}")
    return wanted


def _required(profile: Profile, required: Sequence[str]) -> Profile:
    """Add to the profile what the server must offer, so that nothing of it is probed."""
    if not required:
        return profile
    declared = profile.capabilities if profile.capabilities != "probe" else []
    return profile.model_copy(update={"capabilities": sorted({"core", *declared, *required})})


def _judges_any(rule: type[Monitor], surfaces: Collection[str]) -> bool:
    return any(judges(rule, surface) for surface in surfaces)
