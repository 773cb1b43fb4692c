"""Hides secrets in text that is kept: snapshots go into repositories, and into pull requests.

Here: what looks like a secret in text, and which members hold one. Not here: anything else that
differs from machine to machine (texts).
"""

import os
import re
from collections.abc import Mapping

SECRET = "<secret>"
_SHORTEST = 8
# Names of environment variables whose values are secrets.
_VARIABLES = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")
# Members whose values are secrets, however they look: whole names, since `inputTokens` is none.
_MEMBER = re.compile(
    r"(?i)(x-)?(api|access|auth|private|secret)[_-]?key|(proxy-)?authorization|(set-)?cookie|"
    r"passw(or)?d|(client[_-]?)?secret|((access|refresh|id|auth|bearer|session)[_-]?)?token"
)
_SHAPES = re.compile(
    r"""
    (?P<before>\b(?:[Bb]earer|[Bb]asic)\s+)[A-Za-z0-9+/=_.~-]{8,}
  | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}                        # keys of model providers
  | \bgh[opsur]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,}
  | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | \bA(?:KIA|SIA)[A-Z0-9]{16}\b | \bAIza[\w-]{30,}
  | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+  # JSON Web Tokens
  | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
  | (?P<user>://[^\s/:@]*:)[^\s/@]+(?=@)                      # https://user:password@host
    """,
    re.VERBOSE | re.DOTALL,
)


class Secrets:
    """What is to be hidden: what looks like a secret, and the values of secret variables."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        values = {
            value
            for name, value in environment.items()
            if name.upper().endswith(_VARIABLES) and len(value) >= _SHORTEST
        }
        self._values = sorted(values, key=len, reverse=True)

    def hidden(self, text: str) -> str:
        """The text with each secret as `<secret>`."""
        for value in self._values:
            text = text.replace(value, SECRET)
        return _SHAPES.sub(_replaced, text)

    def names(self, member: str) -> bool:
        """Whether the value of a member of this name is a secret."""
        return _MEMBER.fullmatch(member) is not None


def _replaced(match: re.Match[str]) -> str:
    return f"{match['before'] or match['user'] or ''}{SECRET}"
