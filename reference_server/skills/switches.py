"""Which skills are disabled: `[[skills.config]]` in config.toml of the home.

Here live reading these entries and changing one. Everything else in the file stays as its user
wrote it. The document does not show where it is kept; the form is the shipping server's.
"""

import contextlib
import os
import tempfile
import tomllib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, cast

from reference_server.safe_files import lock, make_private, open_regular
from reference_server.skills.document import read_document
from reference_server.skills.files import read_file
from reference_server.skills.scan import FILE_LIMIT
from reference_server.skills.skill import SKILL_FILE, NoSkill, Problem, Skill
from reference_server.skills.toml import read_toml

CONFIG_LIMIT = 1024 * 1024
"""Bytes of a config.toml: changing a larger one takes too long."""
_TRIES = 5
"""How often a change is made again because somebody else saved the file meanwhile."""


class Unwritable(Exception):
    """The file cannot be changed; str() names it, and says why and what to do."""


class Disabled:
    """The skills that are disabled, by the paths of their SKILL.md."""

    def __init__(self, paths: set[str] | None = None, problem: Problem | None = None) -> None:
        self._paths = paths or set()
        self.problem = problem

    @classmethod
    def read(cls, file: Path) -> "Disabled":
        """Read config.toml; of one that cannot be read, `problem` tells why."""
        try:
            table = read_toml(_text(file))
        except FileNotFoundError:
            return cls()
        except NoSkill as error:
            return cls(problem=Problem(str(file), f"{error}; until then no skill is disabled"))
        except OSError as error:
            words = f"cannot be read: {error.strerror}; change its permissions"
            return cls(problem=Problem(str(file), f"{words}; until then no skill is disabled"))
        paths: set[str] = set()
        for entry in _entries(table):
            path, enabled = entry.get("path"), entry.get("enabled", True)
            if isinstance(path, str) and path:
                (paths.add if enabled is False else paths.discard)(os.path.normpath(path))
        # A path that leads through a link is the skill's too.
        return cls(paths | {os.path.realpath(path) for path in paths})

    def holds(self, skill: Skill) -> bool:
        """Whether a skill is disabled."""
        return skill.path in self._paths or skill.real in self._paths


def check_skill(path: str) -> None:
    """Raise NoSkill where no skill is."""
    if os.path.basename(path) != SKILL_FILE:
        raise NoSkill(f"is not the path of a {SKILL_FILE}; name that file of the skill")
    read_document(read_file(path, FILE_LIMIT)[0])


class Switches:
    """Changes the entries of one home."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, path: str, *, enabled: bool) -> None:
        """Write that a skill is disabled, or take away what says so.

        Raises NoSkill where no skill is at the path (and, to enable it, no entry either),
        Unwritable, OSError. Other servers of the home wait for each other; a program that saves the
        file meanwhile is not overwritten. Blocks.
        """
        make_private(self._file.parent)
        with self._locked():
            if not (enabled and self._has_entry(path)):
                check_skill(path)
            for _ in range(_TRIES):
                if self._changed(path, enabled=enabled):
                    return
        raise Unwritable(f"{self._file}: is being saved by another program; try again")

    def _has_entry(self, path: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return any(_is_of(entry, path) for entry in _entries(self._parsed()[0]))
        return False

    def _changed(self, path: str, *, enabled: bool) -> bool:
        """Make the change; False if the file has changed meanwhile."""
        try:
            table, text, before = self._parsed()
        except FileNotFoundError:
            table, text, before = cast("dict[str, Any]", {}), "", None
        ours = [entry for entry in _entries(table) if _is_of(entry, path)]
        if enabled and not ours:
            return True
        made = _edited(text, path, enabled=enabled)
        if made is None:
            raise Unwritable(
                f"{self._file}: `skills.config` is not written as `[[skills.config]]`; "
                "write it so, or change it by hand"
            )
        return self._replace(made, before)

    def _parsed(self) -> tuple[dict[str, Any], str, os.stat_result]:
        before = os.stat(self._file)
        try:
            text = _text(self._file)
            return read_toml(text), text, before
        except NoSkill as error:
            raise Unwritable(f"{self._file}: {error}") from None

    def _replace(self, text: str, before: os.stat_result | None) -> bool:
        # A link to a file in the user's own keeping stays a link.
        target = Path(os.path.realpath(self._file))
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".config.toml.")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                if before is not None:
                    os.fchmod(file.fileno(), before.st_mode & 0o777)
                os.fsync(file.fileno())
            if not self._is_as(before):
                os.unlink(name)
                return False
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        return True

    def _is_as(self, before: os.stat_result | None) -> bool:
        try:
            now = os.stat(self._file)
        except FileNotFoundError:
            return before is None
        return before is not None and _identity(now) == _identity(before)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        path = self._file.with_name("config.lock")
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            lock(descriptor, path)
            yield
        finally:
            os.close(descriptor)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _text(file: Path) -> str:
    """Read a config.toml. Raises NoSkill, OSError."""
    if not file.is_file():
        if os.path.lexists(file):
            raise NoSkill("is not a file; remove it, or put a file in its place")
        raise FileNotFoundError(str(file))
    with file.open("rb") as opened:
        content = opened.read(CONFIG_LIMIT + 1)
    if len(content) > CONFIG_LIMIT:
        raise NoSkill(f"is larger than {CONFIG_LIMIT // 1024} KiB; shorten it")
    try:
        # As it is, also where its lines end in CR LF.
        return content.decode()
    except UnicodeDecodeError:
        raise NoSkill("is not UTF-8; save it in that encoding") from None


def _entries(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    skills = table.get("skills")
    entries = cast("dict[str, Any]", skills).get("config") if isinstance(skills, dict) else None
    if not isinstance(entries, list):
        return []
    return [cast("Any", one) for one in cast("list[Any]", entries) if isinstance(one, dict)]


def _is_of(entry: Mapping[str, Any], path: str) -> bool:
    own = entry.get("path")
    if not isinstance(own, str) or not own:
        return False
    return os.path.normpath(own) == path or os.path.realpath(own) == os.path.realpath(path)


def _edited(text: str, path: str, *, enabled: bool) -> str | None:
    """Give the text with the entry changed; None if it is written in a form that cannot be."""
    end = "\r\n" if "\r\n" in text else "\n"
    entry = _entry(path).replace("\n", end)
    made = text.replace(entry, "")
    try:
        if any(_is_of(one, path) for one in _entries(tomllib.loads(made))):
            # Not as the server writes it: a user did.
            made = _without(made, path)
        if not enabled:
            made += end if made and not made.endswith("\n") else ""
            made += entry
        # What is written inline or dotted can neither be found nor added to.
        says = _without_empty(tomllib.loads(made))
        return made if says == _wanted(text, path, enabled=enabled) else None
    except ValueError:
        return None


def _entry(path: str) -> str:
    """Give an entry as the server writes it: below what is there, which stays as it is."""
    import tomlkit

    return f"\n[[skills.config]]\npath = {tomlkit.string(path).as_string()}\nenabled = false\n"


def _without(text: str, path: str) -> str:
    """Take the entries of a path out. Raises ValueError."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import AoT

    end = "\r\n" if "\r\n" in text else "\n"
    document: Any = tomlkit.parse(text.replace("\r\n", "\n"))
    try:
        entries = document["skills"]["config"]
        if not isinstance(entries, AoT):
            raise ValueError("an inline array")
        found = cast("Any", entries)
        for index in reversed(range(len(found))):
            if _is_of(found[index], path):
                del found[index]
        if not found:
            del document["skills"]["config"]
        return tomlkit.dumps(document).replace("\n", end)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def _wanted(text: str, path: str, *, enabled: bool) -> dict[str, Any]:
    """Give what the file must say after the change. Raises ValueError where it cannot."""
    table = tomllib.loads(text)
    skills = table.setdefault("skills", {})
    if not isinstance(skills, dict):
        raise ValueError("no table")
    inner = cast("dict[str, Any]", skills)
    entries = [entry for entry in _entries(table) if not _is_of(entry, path)]
    inner["config"] = entries if enabled else [*entries, {"path": path, "enabled": False}]
    return _without_empty(table)


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    """Leave out an empty `skills`, and an empty `skills.config`: they say nothing."""
    skills = table.get("skills")
    if not isinstance(skills, dict):
        return table
    inner = {key: value for key, value in cast("dict[str, Any]", skills).items() if value != []}
    rest = {key: value for key, value in table.items() if key != "skills"}
    return {**rest, "skills": inner} if inner else rest
