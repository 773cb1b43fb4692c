"""Files beside a SKILL.md: `icon.svg`, `icon-large.svg` and `config.toml`.

A bad file, or a bad value in config.toml, is reported and ignored; the rest of the skill is used.
Source: session-protocol "Skill (SkillMetadata)", which does not list the keys of config.toml.
"""

import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from harness.protocol.wire.skills import SkillInterface
from reference_server.skills.files import read_file
from reference_server.skills.skill import Problem, SkillError

ICONS = {"icon_small": "icon.svg", "icon_large": "icon-large.svg"}
CONFIG = "config.toml"
CONFIG_LIMIT = 16 * 1024
"""Maximum bytes of a config.toml."""
KEYS = ("display_name", "short_description", "brand_color", "default_prompt")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
_MAX_VALUE_LENGTH = 2048
"""Maximum characters of a value."""


def read_companions(folder: str) -> tuple[SkillInterface | None, list[Problem]]:
    """Return a skill's interface, None if no file has any, and the problems of the files."""
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
                if isinstance(value, SkillError):
                    problems.append(Problem(path, str(value)))
                else:
                    fields[key] = value
        except SkillError as error:
            problems.append(Problem(path, str(error)))
    return (SkillInterface(**fields) if fields else None), problems


def _values(text: str) -> Iterator[tuple[str, str | SkillError]]:
    """Yield each known or misspelt key with its value or error. Raises SkillError if not TOML."""
    from reference_server.skills.toml import read_toml  # most skills have no such file

    table = read_toml(text)
    for key, value in table.items():
        if key in KEYS:
            yield key, _check_value(key, value)
        elif advice := _advice(key, table):
            yield key, SkillError(advice)


def _check_value(key: str, value: Any) -> str | SkillError:
    if not isinstance(value, str):
        return SkillError(f"`{key}` must be a text; put it in quotes")
    if len(value) > _MAX_VALUE_LENGTH:
        return SkillError(f"`{key}` has more than {_MAX_VALUE_LENGTH} characters; shorten it")
    if key == "brand_color" and not _COLOUR.fullmatch(value):
        return SkillError(f'`brand_color` must look like "#12AB9F", not {value[:40]!r}')
    return value


def _advice(key: str, table: dict[str, Any]) -> str | None:
    """Return advice for a key that is probably a mistake, else None."""
    import difflib  # slow to import, and rarely needed

    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key[:100]).lower().replace("-", "_")
    matches = difflib.get_close_matches(snake, KEYS, 1, 0.8)
    if matches and matches[0] not in table:
        return f"there is no key `{key[:40]}`; did you mean `{matches[0]}`?"
    return None
