"""Redaction of secrets (keys and passwords) in texts.

A secret is found in plain text, with the escapes of JSON, URLs and HTML, and in base64, alone or
after other text (`user:key`). Callers choose the texts: `model.client` redacts its errors, `cli`
standard error.

A secret shorter than `MIN_SECRET_CHARACTERS` is a placeholder ("none", "x") that may be part of
ordinary words: it is redacted only where a credential is expected (after `Bearer`, or as the
password in a URL).
"""

import base64
import re
from collections.abc import Iterator, Sequence
from functools import cache
from urllib.parse import unquote

from reference_server.config.model import Config, Provider

HIDDEN = "[key]"
MIN_SECRET_CHARACTERS = 6
"""Minimum characters of a secret that is redacted everywhere."""
# The password in any URL, also of one that is not in the settings: `scheme://user:password@host`.
_PASSWORD = re.compile(r"(://[^\s/?#:@\"']*:)[^\s/?#\"']+@")
# Names of variables that probably hold a secret.
_OF_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.I)
_BEGUN_ESCAPE = re.compile(
    r"%(?:25){0,4}[0-9a-f]?|\\{1,8}(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|&#?\w{0,6}", re.I
)
_BASE64 = r"[A-Za-z0-9+/_-]?"
# Patterns allow only a few nested escapes: otherwise many backslashes would take for ever.
Unit = re.Pattern[str]


class Secrets:
    """A set of secrets, compiled for searches in any text."""

    def __init__(self, secrets: Sequence[str]) -> None:
        long_secrets = sorted(
            {one for one in secrets if len(one) >= MIN_SECRET_CHARACTERS}, key=len, reverse=True
        )
        short = [one for one in secrets if 0 < len(one) < MIN_SECRET_CHARACTERS]
        self._forms = [_units(one) for one in long_secrets]
        self._cores = [
            [*map(_unit_of_base64, core)] for one in long_secrets for core in _base64_cores(one)
        ]
        patterns = [
            *map(_join, self._forms),
            *(f"{_BASE64}{_join(core)}{_BASE64}(?:=|%3d){{0,2}}" for core in self._cores),
            *(rf"(?<=Bearer ){_join(_units(one))}(?![\w-])" for one in short),
        ]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    @classmethod
    def of(cls, provider: Provider) -> "Secrets":
        """Return the secrets of one provider and of the proxies."""
        return cls([*_of_address(provider.base_url), *_of_proxies(), provider.api_key or ""])

    @classmethod
    def of_config(cls, config: Config) -> "Secrets":
        """Return the secrets of all providers, proxies and MCP servers."""
        env = config.environment
        secrets = [env.get("PROVIDER_API_KEY", ""), *_of_proxies()]
        addresses = (
            env.get("PROVIDER_BASE_URL"),
            env.get("OPENAI_BASE_URL"),
            config.openai_base_url,
        )
        for address in addresses:
            secrets += _of_address(address)
        for provider in config.providers.values():
            secrets += [env.get(provider.env_key or "", ""), *_of_address(provider.base_url)]
        for server in config.mcp_servers.values():
            secrets += [env.get(server.token_variable or "", ""), *_of_address(server.url)]
            secrets += [value for name, value in server.env.items() if _OF_SECRET.search(name)]
        return cls(secrets)

    def redact(self, text: str, *, cut: bool = False) -> str:
        """Return the text with `[key]` in place of each secret.

        `cut`: the text is the beginning of a longer one; a possible beginning of a secret at its
        end is removed.
        """
        text = _PASSWORD.sub(rf"\1{HIDDEN}@", text)
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return text[: self._cut_secret_start(text)] if cut else text

    def _cut_secret_start(self, text: str) -> int:
        """Return the offset of a secret that the text's end may cut, else the text's length."""
        position = len(text)
        for units in (*self._forms, *self._cores):
            for start in range(max(0, len(text) - 12 * len(units)), position):
                if _ends_within(units, text, start):
                    position = start
                    break
        return position


def _of_address(address: str | None) -> Iterator[str]:
    """Yield the password in an address, also in one that is malformed."""
    rest = (address or "").partition("://")[2] or address or ""
    login, at, _ = rest.rpartition("@")
    password = login.partition(":")[2]
    if at and password:
        yield password
        yield unquote(password)


def _of_proxies() -> Iterator[str]:
    from urllib.request import getproxies  # it takes long to import

    for name, address in getproxies().items():
        if name != "no":
            yield from _of_address(address)


def _units(secret: str) -> list[Unit]:
    """Return a pattern for each character that matches it with any escape."""
    return [_unit(character) for character in secret]


@cache
def _unit(character: str) -> Unit:
    return re.compile(_escape_pattern(character))


@cache
def _unit_of_base64(character: str) -> Unit:
    """Return the pattern of a base64 character; letters and digits are never escaped."""
    return re.compile(character if character.isalnum() else _escape_pattern(character))


def _escape_pattern(character: str) -> str:
    plain = re.escape(character)
    if character in "\"'/\\":
        plain = rf"\\{{0,8}}{plain}" if character != "\\" else r"\\{1,8}"
    code = ord(character)
    octets = "".join(
        rf"%(?:25){{0,4}}{octet:02x}" for octet in character.encode("utf-8", "replace")
    )
    patterns = [rf"(?i:{octets})", rf"(?i:\\{{1,8}}u{code:04x})", rf"(?i:\\{{1,8}}x{code:02x})"]
    if character in _ENTITIES:
        patterns.append(_ENTITIES[character])
    if character == " ":
        patterns.append(r"\+")
    # Escapes first: `%` is also the beginning of its own escape.
    return f"(?:{'|'.join([*patterns, plain])})"


_ENTITIES = {
    "&": "&(?:amp|#38|#x26);",
    "<": "&(?:lt|#60|#x3[cC]);",
    ">": "&(?:gt|#62|#x3[eE]);",
    '"': "&(?:quot|#34|#x22);",
    "'": "&(?:apos|#0?39|#x27);",
    "+": "&(?:plus|#43|#x2[bB]);",
    "/": "&(?:sol|#47|#x2[fF]);",
    "=": "&(?:equals|#61|#x3[dD]);",
}


def _join(units: list[Unit]) -> str:
    return "".join(unit.pattern for unit in units)


def _base64_cores(secret: str) -> Iterator[str]:
    """Yield the base64 forms of a secret, for each offset at which it may begin in encoded text.

    Characters that also encode adjacent text are left out.
    """
    data = secret.encode("utf-8", "replace")
    for shift in range(3):
        first, end = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        text = base64.b64encode(b"\0" * shift + data).decode()[first:end]
        yield text
        if "+" in text or "/" in text:
            yield text.translate(str.maketrans("+/", "-_"))


def _ends_within(units: list[Unit], text: str, start: int) -> bool:
    """Return whether the text ends within a secret that begins at `start`."""
    position = start
    for unit in units:
        if position == len(text) or _BEGUN_ESCAPE.fullmatch(text, position):
            return True
        match = unit.match(text, position)
        if match is None:
            return False
        position = match.end()
    return False
