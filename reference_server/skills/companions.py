"""Files beside a SKILL.md: `icon.svg`, `icon-large.svg` and `config.toml`.

One that is wrong is told and left out; the skill is none the worse for it. Source: session-protocol
"Skill (SkillMetadata)"; which keys config.toml has is not shown.
"""

import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from harness.protocol.wire.skills import SkillInterface
from reference_server.skills.files import read_file
from reference_server.skills.skill import NoSkill, Problem

ICONS = {"icon_small": "icon.svg", "icon_large": "icon-large.svg"}
CONFIG = "config.toml"
CONFIG_LIMIT = 16 * 1024
"""Bytes of a config.toml."""
KEYS = ("display_name", "short_description", "brand_color", "default_prompt")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
_LENGTH = 2048
"""Characters of a value."""


def read_companions(folder: str) -> tuple[SkillInterface | None, list[Problem]]:
    """Return how a skill is shown, None if nothing says so, and what is wrong with its files."""
    fields: dict[str, str] = {}
    problems: list[Problem] = []
    for key, name in ICONS.items():
        path = os.path.join(folder, name)
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                fields[key] = name
            else:
                problems.append(Problem(path, "is not a regular file; put an image in its place"))
        except FileNotFoundError:
            if os.path.lexists(path):
                problems.append(Problem(path, "is a link that leads nowhere; remove it"))
        except OSError as error:
            problems.append(Problem(path, f"cannot be found: {error.strerror}; remove it"))
    path = os.path.join(folder, CONFIG)
    if os.path.lexists(path):
        try:
            text, _ = read_file(path, CONFIG_LIMIT)
            for key, value in _values(text):
                if isinstance(value, NoSkill):
                    problems.append(Problem(path, str(value)))
                else:
                    fields[key] = value
        except NoSkill as error:
            problems.append(Problem(path, str(error)))
    return (SkillInterface(**fields) if fields else None), problems


def _values(text: str) -> Iterator[tuple[str, str | NoSkill]]:
    """Yield each key with its value, or with what is wrong with it. Raises NoSkill."""
    from reference_server.skills.toml import read_toml  # most skills have no such file

    table = read_toml(text)
    for key, value in table.items():
        if key in KEYS:
            yield key, _checked(key, value)
        elif advice := _advice(key, table):
            yield key, NoSkill(advice)


def _checked(key: str, value: Any) -> str | NoSkill:
    if not isinstance(value, str):
        return NoSkill(f"`{key}` must be a text; put it in quotes")
    if len(value) > _LENGTH:
        return NoSkill(f"`{key}` has more than {_LENGTH} characters; shorten it")
    if key == "brand_color" and not _COLOUR.fullmatch(value):
        return NoSkill(f'`brand_color` must look like "#12AB9F", not {value[:40]!r}')
    return value


def _advice(key: str, table: dict[str, Any]) -> str | None:
    """Return what to say of a key that is probably a mistake; of others nothing is said."""
    import difflib  # only who has such a key waits for it

    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key[:100]).lower().replace("-", "_")
    matches = difflib.get_close_matches(snake, KEYS, 1, 0.8)
    if matches and matches[0] not in table:
        return f"there is no key `{key[:40]}`; did you mean `{matches[0]}`?"
    return None
