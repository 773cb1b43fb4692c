"""Parser of TOML, with errors as of other problems of skills."""

import re
import tomllib
from typing import Any

from reference_server.skills.skill import SkillError

_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text. Raises SkillError, with line and column if known."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error)
        if match := _PLACE.search(words):
            place = f"line {match[1]}, column {match[2]}: "
            raise SkillError(f"{place}{words[: match.start()]}; mend the TOML") from None
        raise SkillError(f"is not TOML: {words}; mend it") from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested too deeply.
        raise SkillError(f"is not TOML: {str(error)[:100]}; mend it") from None
