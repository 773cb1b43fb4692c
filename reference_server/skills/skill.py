"""A skill, a problem of a file, and the error of an unusable skill.

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
    """A skill; `path` is the path of its SKILL.md as found, `real` with all links followed."""

    name: str
    description: str
    path: str
    real: str
    scope: Scope
    interface: SkillInterface | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file or folder; the message says what to do."""

    path: str
    message: str


class SkillError(Exception):
    """The file is not a usable skill; str() says why, and what to do."""
