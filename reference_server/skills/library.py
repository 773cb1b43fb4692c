"""Skills of each working directory, for listings and for `$name`.

`scan` reads one folder. Source: session-protocol "skills/list", "Skill scopes".
"""

import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from harness.protocol.wire.skills import SkillErrorInfo, SkillMetadata, SkillsListEntry
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.sandbox.places import settings_folder
from reference_server.settings import absolute_folder
from reference_server.skills.scan import SCAN_TIME, ScanResult, scan
from reference_server.skills.skill import Problem, Scope, Skill
from reference_server.skills.switches import Disabled, Switches

BUILTIN = str(Path(__file__).parent / "builtin")
MAX_CACHED = 200
"""Maximum folders of skills in the cache."""
LIST_TIME = 10.0
"""Seconds after which one request scans no further folder."""
WAIT_TIME = SCAN_TIME + 1
"""Seconds to wait for a folder, whose disk may not answer."""
_READERS = 4
"""Maximum folders scanned at a time; one whose disk does not answer keeps its place."""
_NO_ANSWER = f"does not answer; it was waited for {WAIT_TIME:g} s; see whether its disk is there"
_NOT_REACHED = f"was not looked at: the folders before it took {LIST_TIME:g} s; ask for fewer"

Root = tuple[str, Scope]


class Library:
    """Skills of one server; `readers` limits the files and folders that are read at a time."""

    def __init__(self, home: Home, config: Config) -> None:
        self.config = config
        self._home = home
        self._cache: OrderedDict[Root, ScanResult] = OrderedDict()
        self.readers = anyio.CapacityLimiter(_READERS)
        self.switches = Switches(home.config_file)

    @property
    def users_folder(self) -> Path:
        """The folder of the user's own skills."""
        return self._home.skills

    def folder(self, cwd: str) -> str:
        """Return a working directory as an absolute path. Raises Refusal for an unusable one."""
        return absolute_folder(cwd, self.config.folder)

    def clear_cache(self) -> None:
        """Clear the cache, so that the next listing reads the disk."""
        self._cache.clear()

    async def entries(
        self, cwds: Sequence[str], extra: Mapping[str, Sequence[str]], *, reload: bool
    ) -> list[SkillsListEntry]:
        """Return an entry for each working directory, with its path as given.

        `extra`: further folders of user scope, by absolute working directory. `reload`: scan all
        folders again instead of using the cache. Raises Refusal for an unusable path.
        """
        scans = _RequestScans(self, reload=reload)
        disabled = await self._read_disabled()
        return [
            await self._entry(cwd, extra.get(self.folder(cwd), ()), scans, disabled) for cwd in cwds
        ]

    async def usable_skills(self, cwd: str) -> dict[str, Skill]:
        """Return the enabled skills by name for `$name` in a working directory, read from disk.

        Of several with one name it is the nearest: the project's, then the user's, then the
        built-in one.
        """
        disabled = await self._read_disabled()
        scans = _RequestScans(self, reload=True)
        skills: dict[str, Skill] = {}
        for root in self._roots(cwd, ()):
            for skill in (await scans.scan(root)).skills:
                if not disabled.holds(skill):
                    skills.setdefault(skill.name, skill)
        return skills

    async def _entry(
        self, cwd: str, extra: Sequence[str], scans: "_RequestScans", disabled: Disabled
    ) -> SkillsListEntry:
        skills: dict[str, Skill] = {}
        problems: list[Problem] = [disabled.problem] if disabled.problem else []
        for root in self._roots(self.folder(cwd), extra):
            scanned = await scans.scan(root)
            for skill in scanned.skills:
                # The same skill may be found twice: a root may be a link to another one.
                skills.setdefault(skill.real, skill)
            problems += [one for one in scanned.problems if one not in problems]
        return SkillsListEntry(
            cwd=cwd,
            skills=[_skill_metadata(skill, not disabled.holds(skill)) for skill in skills.values()],
            errors=[SkillErrorInfo(path=one.path, message=one.message) for one in problems],
        )

    def _roots(self, cwd: str, extra: Sequence[str]) -> list[Root]:
        users: list[Root] = [(one, "user") for one in (str(self._home.skills), *extra)]
        return [
            (os.path.join(cwd, settings_folder(os.environ), "skills"), "repo"),
            *users,
            (BUILTIN, "system"),
        ]

    async def is_disabled(self, skill: Skill) -> bool:
        """Return whether a skill of any folder is disabled."""
        return (await self._read_disabled()).holds(skill)

    async def _read_disabled(self) -> Disabled:
        read = partial(Disabled.read, self._home.config_file)
        return await to_thread.run_sync(read, abandon_on_cancel=True, limiter=self.readers)

    def cached_scan(self, root: Root) -> ScanResult | None:
        """Return the cached scan of a folder of skills, else None."""
        if root in self._cache:
            self._cache.move_to_end(root)
        return self._cache.get(root)

    async def scan(self, root: Root) -> ScanResult:
        """Scan a folder of skills and cache the result; after WAIT_TIME return only a problem."""
        try:
            with anyio.fail_after(WAIT_TIME):
                result = await to_thread.run_sync(
                    scan, *root, abandon_on_cancel=True, limiter=self.readers
                )
        except TimeoutError:
            return ScanResult([], [Problem(root[0], _NO_ANSWER)])
        self._cache[root] = result
        self._cache.move_to_end(root)
        while len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return result


class _RequestScans:
    """Scans of one request, each folder at most once."""

    def __init__(self, library: Library, *, reload: bool) -> None:
        self._library = library
        self._reload = reload
        self._seen: dict[Root, ScanResult] = {}
        self._end = time.monotonic() + LIST_TIME

    async def scan(self, root: Root) -> ScanResult:
        if root not in self._seen:
            cached = None if self._reload else self._library.cached_scan(root)
            if cached is None and time.monotonic() > self._end:
                return ScanResult([], [Problem(root[0], _NOT_REACHED)])
            self._seen[root] = cached or await self._library.scan(root)
        return self._seen[root]


def _skill_metadata(skill: Skill, enabled: bool) -> SkillMetadata:
    metadata = SkillMetadata(
        name=skill.name,
        description=skill.description,
        enabled=enabled,
        path=skill.path,
        scope=skill.scope,
    )
    if skill.interface is not None:
        metadata.interface = skill.interface
    return metadata
