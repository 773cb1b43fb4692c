"""Taking secrets (keys and passwords) out of texts.

A secret is found as it is, with the escapes of JSON, URLs and HTML, and in base64, alone or after
other text (`user:key`). Callers choose the texts: `model.client` cleans its errors, `cli` standard
error.

A secret shorter than `MIN_SECRET_CHARACTERS` is a placeholder ("none", "x") that may be part of
ordinary words: it is taken out only where a credential is expected (after `Bearer`, or as the
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
"""Characters of the shortest secret that is looked for in the whole text."""
# The password in any URL, also one that is not in our settings: `scheme://user:password@host`.
_PASSWORD = re.compile(r"(://[^\s/?#:@\"']*:)[^\s/?#\"']+@")
# The names of variables that hold a secret, as far as names tell.
_OF_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.I)
_BEGUN_ESCAPE = re.compile(
    r"%(?:25){0,4}[0-9a-f]?|\\{1,8}(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|&#?\w{0,6}", re.I
)
_BASE64 = r"[A-Za-z0-9+/_-]?"
# Escapes may be escaped again, but only a few times: else many backslashes would take for ever.
Unit = re.Pattern[str]


class Secrets:
    """A set of secrets, compiled for finding them in any text."""

    def __init__(self, secrets: Sequence[str]) -> None:
        whole = sorted(
            {one for one in secrets if len(one) >= MIN_SECRET_CHARACTERS}, key=len, reverse=True
        )
        short = [one for one in secrets if 0 < len(one) < MIN_SECRET_CHARACTERS]
        self._forms = [_units(one) for one in whole]
        self._cores = [
            [*map(_unit_of_base64, core)] for one in whole for core in _base64_cores(one)
        ]
        patterns = [
            *map(_joined, self._forms),
            *(f"{_BASE64}{_joined(core)}{_BASE64}(?:=|%3d){{0,2}}" for core in self._cores),
            *(rf"(?<=Bearer ){_joined(_units(one))}(?![\w-])" for one in short),
        ]
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    @classmethod
    def of(cls, provider: Provider) -> "Secrets":
        """Return the secrets of one provider, and of the proxies on the way to it."""
        return cls([*_of_address(provider.base_url), *_of_proxies(), provider.api_key or ""])

    @classmethod
    def of_config(cls, config: Config) -> "Secrets":
        """Return the secrets of all providers and MCP servers."""
        env = config.environment
        found = [env.get("PROVIDER_API_KEY", ""), *_of_proxies()]
        named = (env.get("PROVIDER_BASE_URL"), env.get("OPENAI_BASE_URL"), config.openai_base_url)
        for address in named:
            found += _of_address(address)
        for provider in config.providers.values():
            found += [env.get(provider.env_key or "", ""), *_of_address(provider.base_url)]
        for server in config.mcp_servers.values():
            found += [env.get(server.token_variable or "", ""), *_of_address(server.url)]
            found += [value for name, value in server.env.items() if _OF_SECRET.search(name)]
        return cls(found)

    def hidden_in(self, text: str, *, cut: bool = False) -> str:
        """Return the text with `[key]` in the place of each secret.

        `cut`: the text is the beginning of a longer one; if it ends with what may be the beginning
        of a secret, that is left out.
        """
        text = _PASSWORD.sub(rf"\1{HIDDEN}@", text)
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return text[: self._begun(text)] if cut else text

    def _begun(self, text: str) -> int:
        """Find where a secret begins that the end of the text may have cut, else that end."""
        found = len(text)
        for units in (*self._forms, *self._cores):
            for start in range(max(0, len(text) - 12 * len(units)), found):
                if _goes_on(units, text, start):
                    found = start
                    break
        return found


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
    """Return a pattern for each character that matches all ways of escaping it."""
    return [_unit(character) for character in secret]


@cache
def _unit(character: str) -> Unit:
    return re.compile(_written(character))


@cache
def _unit_of_base64(character: str) -> Unit:
    """Letters and digits stand for themselves wherever base64 is written."""
    return re.compile(character if character.isalnum() else _written(character))


def _written(character: str) -> str:
    plain = re.escape(character)
    if character in "\"'/\\":
        plain = rf"\\{{0,8}}{plain}" if character != "\\" else r"\\{1,8}"
    code = ord(character)
    octets = "".join(
        rf"%(?:25){{0,4}}{octet:02x}" for octet in character.encode("utf-8", "replace")
    )
    ways = [rf"(?i:{octets})", rf"(?i:\\{{1,8}}u{code:04x})", rf"(?i:\\{{1,8}}x{code:02x})"]
    if character in _ENTITIES:
        ways.append(_ENTITIES[character])
    if character == " ":
        ways.append(r"\+")
    # The longest first: `%` is also the beginning of its own escape.
    return f"(?:{'|'.join([*ways, plain])})"


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


def _joined(units: list[Unit]) -> str:
    return "".join(unit.pattern for unit in units)


def _base64_cores(secret: str) -> Iterator[str]:
    """Yield the characters that base64 has for a secret, wherever it begins in what is encoded.

    What stands before and after it shares a character with it at either end; those are left out.
    """
    data = secret.encode("utf-8", "replace")
    for shift in range(3):
        first, end = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        text = base64.b64encode(b"\0" * shift + data).decode()[first:end]
        yield text
        if "+" in text or "/" in text:
            yield text.translate(str.maketrans("+/", "-_"))


def _goes_on(units: list[Unit], text: str, start: int) -> bool:
    """Return whether the text ends within a secret that begins at `start`."""
    at = start
    for unit in units:
        if at == len(text) or _BEGUN_ESCAPE.fullmatch(text, at):
            return True
        found = unit.match(text, at)
        if found is None:
            return False
        at = found.end()
    return False
