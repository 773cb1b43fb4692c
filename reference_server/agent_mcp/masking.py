"""Masking of secrets, and escaping of characters that would act on a terminal.

In addresses and arguments, texts that look like a password, a key or a token are masked. That is no
guarantee: an argument can hold a secret that does not look like one.
"""

import re
from collections.abc import Iterator, Sequence

HIDDEN = "*****"
_OF_SECRETS = frozenset(
    {
        *("apikey", "key", "keys", "token", "tokens", "jwt", "pat"),
        *("pass", "passphrase", "passwd", "password", "passwords", "pwd", "secret", "secrets"),
        *("auth", "authorization", "bearer", "credential", "credentials"),
    }
)
"""Words in the names of secrets: `--api-key`, `GITHUB_TOKEN`, `authToken`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PASSWORD = re.compile(r"(://[^\s/?#@]*?:)[^\s/?#]*(?=@)")
_PARAMETER = re.compile(r"([?&;#])([^=&;#\s]+)=([^&;#\s]+)")
_SCHEME = re.compile(r"\b(Bearer|Basic|Token)\s+\S+", re.I)
_NAMED = re.compile(r"(-*[\w.-]+)(=|:(?!//)\s*)\S.*", re.DOTALL)
"""`NAME=VALUE`, or a header."""
# Prefixes of providers' keys.
_KNOWN_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|pk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|eyJ)"
    r"[A-Za-z0-9._-]{8,}"
)


def mask_address(address: str) -> str:
    """Return an address with its password, and parameters that look like secrets, masked."""
    return _mask_known_keys(_PARAMETER.sub(_mask_parameter, _PASSWORD.sub(rf"\1{HIDDEN}", address)))


def mask_words(words: Sequence[str]) -> list[str]:
    """Return the arguments of a command with texts that look like secrets masked."""
    return list(_mask_words(words))


def escape(text: str) -> str:
    """Return a text in one line with unprintable characters escaped, as in `\\x1b`."""
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _mask_words(words: Sequence[str]) -> Iterator[str]:
    hides_next = False
    for word in words:
        pair = _NAMED.fullmatch(word)
        if hides_next and not word.startswith("-"):
            yield HIDDEN
        elif pair and _is_of_secret(pair[1]):
            yield f"{pair[1]}{pair[2]}{HIDDEN}"
        else:
            yield mask_address(_SCHEME.sub(rf"\1 {HIDDEN}", word))
        hides_next = word.startswith("-") and not pair and _is_of_secret(word)


def _is_of_secret(name: str) -> bool:
    return any(word.lower() in _OF_SECRETS for word in _WORD.findall(name))


def _mask_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}={HIDDEN}" if _is_of_secret(match[2]) else match[0]


def _mask_known_keys(text: str) -> str:
    return _KNOWN_KEY.sub(HIDDEN, text)
