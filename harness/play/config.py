"""Options of a run, checked before any server is started."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.client.target.host import Lack
from harness.client.target.profile import Deviation, Profile, load_profile
from harness.client.target.program import find_program
from harness.client.target.run_folders import base_folder
from harness.client.target.shell_syntax import split_command
from harness.errors import UsageError
from harness.judge.base import Monitor, judges_surface
from harness.judge.rules.discovery import all_rules
from harness.play.name_checks import check_command, check_entry, check_profile
from harness.play.play_limits import PlayLimits
from harness.play.release_question import ask_release
from harness.play.unavailable_capabilities import withdraw
from harness.protocol.releases import holds_for
from harness.protocol.spec.book import Book
from harness.protocol.spec.loading import load_book
from harness.protocol.suites import Suite, load_suite
from harness.report.progress.log import SILENT, ProgressLog
from harness.report.results import expiry
from harness.report.results.baseline import load_baseline
from harness.report.results.baseline_globs import EntryScenario
from harness.report.results.report import Issue
from harness.scenario.bundled import bundled_ids
from harness.scenario.explain import unknown_name
from harness.scenario.model import Scenario
from harness.scenario.surfaces import EXEC_COMMAND, MCP_COMMAND, needs_agent
from harness.trace.surfaces import COMMAND, EXEC, SDK, SESSION, surface_of

_ONCE = PlayLimits()


@dataclass(frozen=True, slots=True)
class Config:
    """Checked options of a run. Make it with `configure`.

    `bundled_entries` are the `entries` of a built-in profile, which are about the bundled
    scenarios; `entry_scenarios` are the scenarios of the others. `lacks` are the promises of the
    profile that this machine cannot keep. `run` names the run whose traces are stored, "" stores
    none. With `keep_going` every scenario is played, whatever the server does. `surfaces` are those
    on which the target is played. `places` maps the entries of the baseline file to their places
    (`known.toml:4:1`), `expiry_issues` are about their last days. `plays` limits the plays.
    `progress` gets the events of the run.
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
    entry_scenarios: tuple[EntryScenario, ...] = ()
    lacks: tuple[Lack, ...] = ()
    keep_going: bool = False
    suite: Suite | None = None
    run: str = ""
    surfaces: tuple[str, ...] = (SESSION,)
    places: Mapping[Deviation, str] = field(default_factory=dict[Deviation, str])
    expiry_issues: tuple[Issue, ...] = ()
    plays: PlayLimits = _ONCE
    progress: ProgressLog = SILENT

    @property
    def release(self) -> str:
        """The release that the server says, "" if it was not asked or does not say it."""
        return self.profile.edition.release if self.profile.edition is not None else ""

    @property
    def suite_note(self) -> str:
        """The rules and scenarios that came after the suite, as a line, "" if everything counts."""
        return "" if self.suite is None else self.suite.note(all_rules(), bundled_ids())

    def surfaces_of(self, scenario: Scenario) -> list[str]:
        """Return the surfaces to play a scenario on, without SDK if it needs a missing agent."""
        no_agent = needs_agent(scenario) and not self.profile.exec.command
        without = {SDK} if no_agent else set[str]()
        return [
            surface
            for surface in self.surfaces
            if surface in scenario.surfaces and surface not in without
        ]


def later_entries(suite: Suite, rules: Iterable[str]) -> list[Deviation]:
    """Return known deviations for the rules that came after a suite: reported, but not counted."""
    reason = f"the rule is newer than the suite {suite.name}"
    later = sorted(set(rules) - suite.rules)
    # Flaky: such an entry is not stale where its rule finds nothing.
    return [Deviation(rule=rule, reason=reason, flaky=True) for rule in later]


def configure(
    *,
    target: str = "spec",
    server_cmd: str = "",
    agent_cmd: str = "",
    sdk_cmd: str = "",
    baseline: str = "",
    rule: str = "",
    suite: str = "",
    require: str = "",
    scale: float = 1.0,
    strict: bool = False,
    lacks: Sequence[Lack] | None = None,
    keep_going: bool = False,
    run: str = "",
    plays: PlayLimits = _ONCE,
    release: str | None = None,
    confined: bool = False,
) -> Config:
    """Check all options before a server is started. Raises `UsageError` for the first mistake.

    `lacks` is what another process of this run found missing on the machine; None checks the
    machine. So does `release`, that of the server for a profile of several releases; None asks it.
    `confined`: the programs run confined (see `enter_confined_run`).
    """
    commands = (server_cmd, agent_cmd, sdk_cmd)

    def load(release: str) -> Profile:
        profile = _with_commands(load_profile(target, release), *commands)
        return profile.as_confined() if confined else profile

    profile = load(release or "")
    book = load_book()
    edition = profile.edition
    if release is None and edition is not None and not edition.is_named:
        release = ask_release(profile, book, scale=scale if 0 < scale < math.inf else 1.0)
        profile = load(release)
    given_commands = {"server": bool(server_cmd), "agent": bool(agent_cmd), "sdk": bool(sdk_cmd)}
    surfaces = _chosen_surfaces(profile, **given_commands)
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
    capabilities = [capability.id for capability in book.capabilities]
    check_profile(profile, book)
    required = _parse_required(require, capabilities)
    if EXEC in surfaces and not {EXEC_COMMAND, MCP_COMMAND} & {*required}:
        _check_commands(profile)
        required = [*required, EXEC_COMMAND] if required else []
    profile, found_lacks = withdraw(_promise(profile, required), required, capabilities, lacks)
    rules = all_rules()
    entries = list(profile.deviations)
    for index, entry in enumerate(entries):
        check_entry(entry, profile.place("deviations", index, "rule"), rules)
    spoken = [
        EntryScenario(entry.scenario, profile.place("deviations", index, "scenario"))
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
            if not _is_of_release(entry, added.place(index, "since"), profile):
                continue
            spoken.append(EntryScenario(entry.scenario, added.place(index, "scenario")))
            places[entry] = str(added.place(index, "rule"))
            entries.append(entry)
    frozen = load_suite(suite) if suite else None
    if frozen is not None:
        later = later_entries(frozen, rules)
        entries += later
        shipped += later
    only_rules = tuple(dict.fromkeys(name.strip() for name in rule.split(",") if rule))
    for name in only_rules:
        if name not in rules:
            raise UsageError(
                f"--rule: {unknown_name('rule id', name, rules, listed='harness list')}"
            )
    if only_rules:
        rules = {name: rules[name] for name in only_rules}
        entries = [entry for entry in entries if entry.rule in only_rules]
    entries = [entry for entry in entries if _is_relevant(entry, rules, surfaces)]
    day = expiry.today()
    expiring = expiry.expiry_issues(entries, day, places)
    entries = [entry for entry in entries if expiry.is_alive(entry, day)]
    rules = {
        name: rule_type for name, rule_type in rules.items() if _judges_any(rule_type, surfaces)
    }
    return Config(
        profile,
        tuple(entries),
        rules,
        book,
        base_folder(),
        scale,
        strict,
        only_rules=only_rules,
        option=target,
        suite=frozen,
        bundled_entries=tuple(shipped),
        entry_scenarios=tuple(spoken),
        lacks=found_lacks,
        keep_going=keep_going,
        run=run,
        surfaces=surfaces,
        places=places,
        expiry_issues=tuple(expiring),
        plays=plays,
    )


def _is_of_release(entry: Deviation, place: object, profile: Profile) -> bool:
    """Return whether an entry of a baseline holds for the judged release.

    Raises `UsageError` if it has a range and the profile knows of no releases.
    """
    row = {"since": entry.since, "until": entry.until}
    if profile.edition is None and any(row.values()):
        raise UsageError(
            f"{place}: the profile {profile.name!r} knows of no releases, so that since and until "
            "mean nothing; take them out, or give it [version]"
        )
    return profile.edition is None or holds_for(profile.edition.rows_of, row)


def _with_commands(profile: Profile, server_cmd: str, agent_cmd: str, sdk_cmd: str) -> Profile:
    """Return the profile with the commands of the options, checked."""
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
    return profile


def _chosen_surfaces(profile: Profile, *, server: bool, agent: bool, sdk: bool) -> tuple[str, ...]:
    """Return the surfaces for which a command was given, else those of the profile's commands."""
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
    """Return the profile without commands for surfaces that are not played."""
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
    """Return whether an entry concerns a surface that is played.

    An entry for any scenario concerns all surfaces.
    """
    if entry.rule in rules:
        return _judges_any(rules[entry.rule], surfaces)
    return entry.scenario == "*" or surface_of(entry.scenario) in surfaces


def _check_commands(profile: Profile) -> None:
    """Raise `UsageError` if the profile lists capabilities but no command of the agent."""
    promised = profile.capabilities
    if promised != "probe" and not {EXEC_COMMAND, MCP_COMMAND} & {*promised}:
        raise UsageError(
            f"profile {profile.name}: capabilities: no command of the agent is promised; add "
            f'"{EXEC_COMMAND}", "{MCP_COMMAND}" or both'
        )


def _parse_required(require: str, capabilities: list[str]) -> list[str]:
    """Return the capabilities of `--require`. Raises `UsageError` if one is unknown."""
    if not require:
        return []
    required = capabilities if require == "all" else [name.strip() for name in require.split(",")]
    for name in required:
        if name not in capabilities:
            raise UsageError(
                f"--require: {unknown_name('capability', name, ('all', *capabilities))}"
            )
    return required


def _promise(profile: Profile, required: Sequence[str]) -> Profile:
    """Return the profile with the required capabilities declared, so that they are not probed."""
    if not required:
        return profile
    declared = profile.capabilities if profile.capabilities != "probe" else []
    return profile.model_copy(update={"capabilities": sorted({"core", *declared, *required})})


def _judges_any(rule: type[Monitor], surfaces: Collection[str]) -> bool:
    return any(judges_surface(rule, surface) for surface in surfaces)
