"""What of a server is not shown: secrets, and characters that would act on a terminal.

Values of variables are always hidden; of addresses and arguments what looks like a password, a key
or a token. Nothing here is a guarantee: an argument can hold a secret that looks like none.
"""

import re
from collections.abc import Iterator, Sequence

HIDDEN = "*****"
_SECRET = (
    r"(?:api|access|private|secret)?[-_]?(?:key|keys|token|tokens|secret|secrets|pass|passwd|password"
    r"|pat|auth|authorization|bearer|credential|credentials|pwd|jwt)"
)
# The words of a name: `--api-key`, `GITHUB_TOKEN`, `authToken`.
_OF_SECRET = re.compile(rf"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z])){_SECRET}(?![a-z])", re.I)
_PASSWORD = re.compile(r"(://[^\s/?#@]*?:)[^\s/?#]*(?=@)")
_PARAMETER = re.compile(r"([?&;#])([^=&#\s]+)=([^&#\s]+)")
_SCHEME = re.compile(r"\b(Bearer|Basic|Token)\s+\S+", re.I)
# What providers begin their keys with.
_KNOWN_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|pk-|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|eyJ)"
    r"[A-Za-z0-9._-]{8,}"
)


def masked_address(address: str) -> str:
    """Give an address without the password and the values of parameters that look like secrets."""
    return _known(_PARAMETER.sub(_parameter, _PASSWORD.sub(rf"\1{HIDDEN}", address)))


def masked_words(words: Sequence[str]) -> list[str]:
    """Give the arguments of a command without what looks like a secret."""
    return list(_masked(words))


def escaped(text: str) -> str:
    """Give a text in one line without characters that are not printed: `\\x1b` for an escape."""
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(one: str) -> str:
    return one.encode("unicode_escape", "surrogatepass").decode("ascii")


def _masked(words: Sequence[str]) -> Iterator[str]:
    hides_next = False
    for word in words:
        name, equals, value = word.partition("=")
        if hides_next and not word.startswith("-"):
            yield HIDDEN
            hides_next = False
        elif equals and value and _is_name(name) and _OF_SECRET.search(name):
            yield f"{name}={HIDDEN}"
            hides_next = False
        else:
            yield masked_address(_SCHEME.sub(rf"\1 {HIDDEN}", word))
            hides_next = word.startswith("-") and not equals and bool(_OF_SECRET.search(word))


def _is_name(name: str) -> bool:
    return re.fullmatch(r"-*[\w.-]+", name) is not None


def _parameter(found: re.Match[str]) -> str:
    hidden = _OF_SECRET.search(found[2]) is not None
    return f"{found[1]}{found[2]}={HIDDEN}" if hidden else found[0]


def _known(text: str) -> str:
    return _KNOWN_KEY.sub(HIDDEN, text)
