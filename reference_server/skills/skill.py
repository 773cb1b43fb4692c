"""A skill, and one that cannot be used. Values only.

Source: session-protocol "Skill (SkillMetadata)".
"""

from dataclasses import dataclass
from typing import Literal

from harness.protocol.wire.skills import SkillInterface

SKILL_FILE = "SKILL.md"
Scope = Literal["repo", "user", "system"]
"""Kind of place in which a skill was found."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill; `path` is that of its SKILL.md as it was found, `real` with all links followed."""

    name: str
    description: str
    path: str
    real: str
    scope: Scope
    interface: SkillInterface | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file or folder, and what to do about it."""

    path: str
    message: str


class SkillError(Exception):
    """The file is not a usable skill; str() says why, and what to do."""
