"""Secrets in what is written down: what is taken for one, and what stands in its place.

It works on text as it is on the wire, so a secret is found in a message, in a command line and in a
URL alike. Equal secrets get equal masks (`<secret 1>`), so that a reader sees that two places hold
the same one; and what was once known as a secret is masked wherever it stands from then on.

A secret that a model spells out in several messages, a few characters each, cannot be seen.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Of a shorter text nobody can say that it is a secret wherever it stands.
MIN_SECRET_CHARACTERS: Final = 8
# As many are remembered: a stream of tokens that are used once must not slow everything down.
MAX_SECRETS: Final = 500

_MASK = re.compile(r"<secret \d+>")
# How the name of a member, a variable or an option ends whose value is a secret.
_WORDS: Final = (
    r"api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|token|secret|passw(?:or)?d"
    r"|passphrase|authorization|credentials?|cookie"
)
# What a variable of the environment is called whose value is a secret, and what such names end in
# that hold something else.
_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_OTHER_VARIABLE = re.compile(r"_(?:SOCK|SOCKET|FILE|PATH|DIR|HOME|URL|HOST|PORT|VAR|NAME|ID)$")
_OPTION = re.compile(rf"--?[\w-]*(?:{_WORDS})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form in which secrets come: the group `secret` of the expression is one.

    `hints` are texts in small letters of which one is in every text that has the form: looking for
    them costs next to nothing, and most messages have none.
    """

    pattern: re.Pattern[str]
    hints: tuple[str, ...]


def _form(pattern: str, *hints: str) -> _Form:
    return _Form(re.compile(pattern, re.IGNORECASE), hints)


_NAME_HINTS = ("key", "token", "secret", "passw", "passphrase", "authorization", "cred", "cookie")
# Within a JSON text that is itself a string, each quote has backslashes before it.
_QUOTE = r'\\*"'
_FORMS: Final = (
    # Authorization: Bearer …, in any place.
    _form(r"\b(?:bearer|basic)\s+(?P<secret>[\w.~+/=-]{8,})", "bearer", "basic"),
    # "apiKey": "…", "access_token": "…", also within a string.
    _form(
        rf"{_QUOTE}[\w.-]*(?:{_WORDS}){_QUOTE}\s*:\s*{_QUOTE}(?:bearer\s+|basic\s+)?"
        rf'(?P<secret>(?:[^"\\]|\\(?!\\*")[^"])+?){_QUOTE}',
        *_NAME_HINTS,
    ),
    # OPENAI_API_KEY=…, --api-key=…, --token …, Cookie: …
    _form(
        rf"(?<![?&\w])(?:--?)?[\w-]*(?:{_WORDS})\s*(?:=\s*|:\s+|(?<=-key) |(?<=token) )"
        r"(?:bearer\s+|basic\s+)?(?:\\*[\"'])?(?P<secret>(?!<secret )[^\s\"'\\,;]{8,})",
        *_NAME_HINTS,
    ),
    # https://user:password@host, and what a query says.
    _form(r"://[^/\s:@\"]*:(?P<secret>[^/\s@\"]+)@", "://"),
    _form(
        rf"[?&](?:[\w-]*(?:{_WORDS})|key|sig|signature|code|auth)=(?P<secret>[^&\s\"'\\#]+)",
        "?",
        "&",
    ),
    # What is made to be recognised: keys of model providers, code hosts, chats, clouds; JWTs.
    _form(r"(?<![\w-])(?P<secret>sk-[\w-]{12,})", "sk-"),
    _form(r"\b(?P<secret>(?:gh[pousr]|github_pat|glpat)[_-]\w{16,})", "gh", "glpat"),
    _form(r"\b(?P<secret>xox[abprs]-[\w-]{10,})", "xox"),
    _form(r"\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16})\b", "akia", "asia"),
    _form(r"\b(?P<secret>AIza[\w-]{30,})", "aiza"),
    _form(r"\b(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})", "eyj"),
    _form(
        r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*KEY-----)", "private"
    ),
)


def secret_values(environ: Mapping[str, str]) -> list[str]:
    """The values of those variables whose names say that they are secrets."""
    return [
        value
        # Of this process's own environment another thread may take a variable away meanwhile.
        for name in list(environ)
        if len(value := environ.get(name, "")) >= MIN_SECRET_CHARACTERS
        and _SECRET_VARIABLE.search(name)
        and not _OTHER_VARIABLE.search(name)
    ]


class Masker:
    """Puts masks in the place of secrets.

    `known` are secrets from the start; `patterns` are expressions of the user's, of which the whole
    match is a secret, or the first group where there is one. With `active` False everything stays
    as it is.
    """

    def __init__(
        self,
        *,
        patterns: Sequence[re.Pattern[str]] = (),
        known: Iterable[str] = (),
        active: bool = True,
    ) -> None:
        self._active = active
        self._patterns = tuple(patterns)
        self._numbers: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._literal: re.Pattern[str] | None = None
        for value in known:
            self._mask(value)

    @property
    def count(self) -> int:
        """Return the number of different secrets seen."""
        return len(self._numbers)

    def text(self, value: str) -> str:
        """A text with masks in the place of its secrets."""
        if not self._active:
            return value
        if self._literal is not None:
            value = self._literal.sub(lambda found: self._known[found[0]], value)
        small = value.lower()
        for form in _FORMS:
            if any(hint in small for hint in form.hints):
                value = form.pattern.sub(self._masked, value)
        for pattern in self._patterns:
            value = pattern.sub(self._masked, value)
        return value

    def raw(self, value: bytes) -> bytes:
        """Bytes as `text`, be they UTF-8 or not."""
        if not self._active:
            return value
        return self.text(value.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )

    def words(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words of a command line; the word behind `--api-key` is a secret."""
        if not self._active:
            return tuple(words)
        found: list[str] = []
        for word in words:
            behind = bool(found) and _OPTION.fullmatch(words[len(found) - 1]) is not None
            found.append(self._mask(word) if behind else self.text(word))
        return tuple(found)

    def _masked(self, found: re.Match[str]) -> str:
        group = "secret" if "secret" in found.re.groupindex else int(found.re.groups > 0)
        secret = found[group]
        if not secret or _MASK.search(secret):
            return found[0]
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + self._mask(secret) + found[0][end:]

    def _mask(self, secret: str) -> str:
        """The mask of a secret, which from now on is known."""
        number = self._numbers.setdefault(secret, len(self._numbers) + 1)
        mask = f"<secret {number}>"
        if (
            len(secret) >= MIN_SECRET_CHARACTERS
            and len(self._known) < MAX_SECRETS
            and secret not in self._known
        ):
            for form in {secret, json.dumps(secret)[1:-1]}:
                self._known[form] = mask
            longest = sorted(self._known, key=len, reverse=True)
            self._literal = re.compile("|".join(map(re.escape, longest)))
        return mask
