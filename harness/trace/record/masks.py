"""Masks for secrets in recordings.

Secrets are searched in the text on the wire, so they are found in messages, command lines and URLs
alike. Equal secrets get equal masks (`<secret 1>`), so that a reader can match them; a value once
known as a secret is masked everywhere from then on.

A secret that a model spells out in several messages, a few characters each, cannot be seen.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# A shorter text can occur by chance, so it is not masked everywhere.
MIN_SECRET_CHARACTERS: Final = 8
# The number of remembered secrets: many one-time tokens must not slow masking down.
MAX_SECRETS: Final = 500

_MASK = re.compile(r"<secret \d+>")
# Endings of names of members, variables and options whose values are secrets.
_SECRET_WORDS: Final = (
    r"api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|token|secret|passw(?:or)?d"
    r"|passphrase|authorization|credentials?|cookie"
)
# Names of environment variables whose values are secrets, and endings of such names whose
# values are not.
_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_OTHER_VARIABLE = re.compile(r"_(?:SOCK|SOCKET|FILE|PATH|DIR|HOME|URL|HOST|PORT|VAR|NAME|ID)$")
_OPTION = re.compile(rf"--?[\w-]*(?:{_SECRET_WORDS})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """A pattern of secrets, whose group `secret` is masked.

    Every match contains one of the lower-case `hints`; they are searched first, since that is
    cheap and most messages contain none.
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
        rf"{_QUOTE}[\w.-]*(?:{_SECRET_WORDS}){_QUOTE}\s*:\s*{_QUOTE}(?:bearer\s+|basic\s+)?"
        rf'(?P<secret>(?:[^"\\]|\\(?!\\*")[^"])+?){_QUOTE}',
        *_NAME_HINTS,
    ),
    # OPENAI_API_KEY=…, --api-key=…, --token …, Cookie: …
    _form(
        rf"(?<![?&\w])(?:--?)?[\w-]*(?:{_SECRET_WORDS})\s*(?:=\s*|:\s+|(?<=-key) |(?<=token) )"
        r"(?:bearer\s+|basic\s+)?(?:\\*[\"'])?(?P<secret>(?!<secret )[^\s\"'\\,;]{8,})",
        *_NAME_HINTS,
    ),
    # https://user:password@host, and secret parameters of a query.
    _form(r"://[^/\s:@\"]*:(?P<secret>[^/\s@\"]+)@", "://"),
    _form(
        rf"[?&](?:[\w-]*(?:{_SECRET_WORDS})|key|sig|signature|code|auth)=(?P<secret>[^&\s\"'\\#]+)",
        "?",
        "&",
    ),
    # Recognisable formats: keys of model providers, code hosts, chats, clouds; JWTs.
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
    """Return the values of the variables whose names mark them as secrets."""
    return [
        value
        # Another thread may remove a variable of os.environ meanwhile.
        for name in list(environ)
        if len(value := environ.get(name, "")) >= MIN_SECRET_CHARACTERS
        and _SECRET_VARIABLE.search(name)
        and not _OTHER_VARIABLE.search(name)
    ]


class Masker:
    """A replacer of secrets by masks.

    `secrets` are known from the start; `patterns` are expressions of the user's, of which the first
    group is a secret, or the whole match if there is no group. With `active` False everything stays
    as it is.
    """

    def __init__(
        self,
        *,
        patterns: Sequence[re.Pattern[str]] = (),
        secrets: Iterable[str] = (),
        active: bool = True,
    ) -> None:
        self._active = active
        self._patterns = tuple(patterns)
        self._numbers: dict[str, int] = {}
        self._masks: dict[str, str] = {}
        self._literal: re.Pattern[str] | None = None
        for value in secrets:
            self._mask(value)

    @property
    def count(self) -> int:
        """The number of different secrets seen."""
        return len(self._numbers)

    def mask_text(self, value: str) -> str:
        """Return a text with masks for its secrets, which are remembered."""
        if not self._active:
            return value
        if self._literal is not None:
            value = self._literal.sub(lambda match: self._masks[match[0]], value)
        lowered = value.lower()
        for form in _FORMS:
            if any(hint in lowered for hint in form.hints):
                value = form.pattern.sub(self._mask_match, value)
        for pattern in self._patterns:
            value = pattern.sub(self._mask_match, value)
        return value

    def mask_bytes(self, value: bytes) -> bytes:
        """Return bytes, which need not be UTF-8, with masks for their secrets."""
        if not self._active:
            return value
        return self.mask_text(value.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )

    def mask_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command line with masks; the word after `--api-key` is a secret as a whole."""
        if not self._active:
            return tuple(words)
        masked: list[str] = []
        for word in words:
            follows_option = bool(masked) and _OPTION.fullmatch(words[len(masked) - 1]) is not None
            masked.append(self._mask(word) if follows_option else self.mask_text(word))
        return tuple(masked)

    def _mask_match(self, match: re.Match[str]) -> str:
        group = "secret" if "secret" in match.re.groupindex else int(match.re.groups > 0)
        secret = match[group]
        if not secret or _MASK.search(secret):
            return match[0]
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:start] + self._mask(secret) + match[0][end:]

    def _mask(self, secret: str) -> str:
        """Return the mask of a secret, and remember the secret."""
        number = self._numbers.setdefault(secret, len(self._numbers) + 1)
        mask = f"<secret {number}>"
        if (
            len(secret) >= MIN_SECRET_CHARACTERS
            and len(self._masks) < MAX_SECRETS
            and secret not in self._masks
        ):
            for form in {secret, json.dumps(secret)[1:-1]}:
                self._masks[form] = mask
            longest = sorted(self._masks, key=len, reverse=True)
            self._literal = re.compile("|".join(map(re.escape, longest)))
        return mask
