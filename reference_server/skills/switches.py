"""Disabled skills: `[[skills.config]]` in config.toml of the home.

Everything else in the file stays as its user wrote it; `config.editing` changes the file. The
specification does not show where a switch is stored; the form is the shipping server's.
"""

import os
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from reference_server.config.editing import Unwritable, change_config
from reference_server.config.text import ConfigTextError, read_text
from reference_server.config.text_edits import line_end, quote, remove_values
from reference_server.skills.document import read_document
from reference_server.skills.files import read_file
from reference_server.skills.scan import FILE_LIMIT
from reference_server.skills.skill import SKILL_FILE, Problem, Skill, SkillError
from reference_server.skills.toml import read_toml

__all__ = ["Disabled", "Switches", "Unwritable", "check_skill"]


class Disabled:
    """Disabled skills, by the paths of their SKILL.md; `problem`: why config.toml is unreadable."""

    def __init__(self, paths: set[str] | None = None, problem: Problem | None = None) -> None:
        self._paths = paths or set()
        self.problem = problem

    @classmethod
    def read(cls, file: Path) -> "Disabled":
        """Read config.toml. If it cannot be read, `problem` says why and no skill is disabled."""
        try:
            table = read_toml(_text(file))
        except FileNotFoundError:
            return cls()
        except SkillError as error:
            return cls(problem=Problem(str(file), f"{error}; until then no skill is disabled"))
        except OSError as error:
            words = f"cannot be read: {error.strerror}; change its permissions"
            return cls(problem=Problem(str(file), f"{words}; until then no skill is disabled"))
        paths: set[str] = set()
        for entry in _entries(table):
            path, enabled = entry.get("path"), entry.get("enabled", True)
            if isinstance(path, str) and path:
                (paths.add if enabled is False else paths.discard)(os.path.normpath(path))
        # A path may lead to the skill through a link.
        return cls(paths | {os.path.realpath(path) for path in paths})

    def holds(self, skill: Skill) -> bool:
        """Return whether a skill is disabled."""
        return skill.path in self._paths or skill.real in self._paths


def check_skill(path: str) -> None:
    """Raise SkillError unless the path is a usable skill's SKILL.md."""
    if os.path.basename(path) != SKILL_FILE:
        raise SkillError(f"is not the path of a {SKILL_FILE}; name that file of the skill")
    read_document(read_file(path, FILE_LIMIT)[0])


class Switches:
    """Switches of skills in one home's config.toml."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self, path: str, *, enabled: bool) -> None:
        """Write the entry that disables a skill, or remove it.

        Raises SkillError if there is no usable skill at the path (nor, when enabling, an entry),
        Unwritable, OSError. Blocks.
        """
        change_config(self._file, partial(self._change, path, enabled=enabled))

    def _change(self, path: str, text: str, *, enabled: bool) -> str:
        try:
            table = read_toml(text)
        except SkillError as error:
            raise Unwritable(f"{self._file}: {error}") from None
        own_entries = [entry for entry in _entries(table) if _is_of(entry, path)]
        if not (enabled and own_entries):
            check_skill(path)
        if enabled and not own_entries:
            return text
        new_text = _edit_text(text, path, enabled=enabled)
        if new_text is None:
            raise Unwritable(
                f"{self._file}: `skills.config` is not written as `[[skills.config]]`; "
                "write it so, or change it by hand"
            )
        return new_text


def _text(file: Path) -> str:
    """Return the text of a config.toml. Raises SkillError, OSError."""
    try:
        return read_text(file)
    except ConfigTextError as error:
        raise SkillError(str(error)) from None


def _entries(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    skills = table.get("skills")
    entries = cast("dict[str, Any]", skills).get("config") if isinstance(skills, dict) else None
    if not isinstance(entries, list):
        return []
    return [cast("Any", one) for one in cast("list[Any]", entries) if isinstance(one, dict)]


def _is_of(entry: Mapping[str, Any], path: str) -> bool:
    entry_path = entry.get("path")
    if not isinstance(entry_path, str) or not entry_path:
        return False
    return os.path.normpath(entry_path) == path or os.path.realpath(entry_path) == os.path.realpath(
        path
    )


def _edit_text(text: str, path: str, *, enabled: bool) -> str | None:
    """Return the text with the entry changed; None if its form of entries is not supported."""
    end = line_end(text)
    entry = _entry(path).replace("\n", end)
    new_text = text.replace(entry, "")
    try:
        if any(_is_of(one, path) for one in _entries(tomllib.loads(new_text))):
            # An entry that a user wrote in another form.
            new_text = _without(new_text, path)
        if not enabled:
            new_text += end if new_text and not new_text.endswith("\n") else ""
            new_text += entry
        # An inline or dotted table cannot be edited here, so the result would be wrong.
        new_table = _without_empty(tomllib.loads(new_text))
        return new_text if new_table == _expected_table(text, path, enabled=enabled) else None
    except (ValueError, RecursionError):
        return None


def _entry(path: str) -> str:
    """Return an entry in the server's form, which is appended to the file."""
    return f"\n[[skills.config]]\npath = {quote(path)}\nenabled = false\n"


def _without(text: str, path: str) -> str:
    """Return the text without the entries of a path. Raises ValueError if it is not TOML."""
    entries = cast("dict[str, Any]", tomllib.loads(text)["skills"])["config"]
    for index in reversed(range(len(entries))):
        if isinstance(entries[index], dict) and _is_of(entries[index], path):
            text = remove_values(text, ("skills", "config", index))
    return text


def _expected_table(text: str, path: str, *, enabled: bool) -> dict[str, Any]:
    """Return the table to find after the change. Raises ValueError if `skills` is no table."""
    table = tomllib.loads(text)
    skills = table.setdefault("skills", {})
    if not isinstance(skills, dict):
        raise ValueError("no table")
    inner = cast("dict[str, Any]", skills)
    entries = [entry for entry in _entries(table) if not _is_of(entry, path)]
    inner["config"] = entries if enabled else [*entries, {"path": path, "enabled": False}]
    return _without_empty(table)


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table without an empty `skills` or `skills.config`, which have no effect."""
    skills = table.get("skills")
    if not isinstance(skills, dict):
        return table
    inner = {key: value for key, value in cast("dict[str, Any]", skills).items() if value != []}
    rest = {key: value for key, value in table.items() if key != "skills"}
    return {**rest, "skills": inner} if inner else rest
