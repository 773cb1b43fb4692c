"""Input of `agent mcp add`: a server as a value, checked before any file is touched."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reference_server.brief import brief

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*")


class Wrong(Exception):
    """Input that cannot be a server; str() is one line, which quotes no value of a variable."""


@dataclass(frozen=True, slots=True)
class Given:
    """A server to add: a program with its arguments and variables, or an address.

    `token_variable` names the environment variable that holds the bearer token for the address.
    """

    name: str
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    url: str | None = None
    token_variable: str | None = None

    @property
    def shows_token(self) -> bool:
        """Return whether the token crosses a network as it is."""
        from urllib.parse import urlsplit

        parts = urlsplit(self.url or "")
        clear = parts.scheme == "http" and not _is_this_machine(parts.hostname or "")
        return self.token_variable is not None and clear


def checked(
    name: str,
    *,
    command: Sequence[str],
    env: Sequence[str],
    url: str | None,
    token_variable: str | None,
) -> Given:
    """Return the server that these words of a command line describe. Raises Wrong.

    `env` are entries `KEY=VALUE`; of two with one key the last counts.
    """
    if not _NAME.fullmatch(name):
        raise Wrong(
            f"{brief(name)!a} cannot be the name of a server: use letters, digits, hyphens and "
            "underscores"
        )
    if url is None:
        return _program(name, command, env, token_variable)
    return _address(name, url, command, env, token_variable)


def _program(
    name: str, command: Sequence[str], env: Sequence[str], token_variable: str | None
) -> Given:
    if not command:
        raise Wrong(
            f"what is the server {name}? Give the command of a program, "
            f"`agent mcp add {name} -- COMMAND [ARGS...]`, or an address, "
            f"`agent mcp add {name} --url URL`"
        )
    if token_variable is not None:
        raise Wrong(
            "--bearer-token-env-var is for a server at an address (--url); give a program its key "
            "with --env KEY=VALUE"
        )
    if not command[0]:
        raise Wrong("the command is empty")
    for word in command:
        _check_text(word, "a word of the command")
    return Given(name, tuple(command), _variables(env))


def _address(
    name: str, url: str, command: Sequence[str], env: Sequence[str], token_variable: str | None
) -> Given:
    if command:
        raise Wrong("give either --url or a command after `--`, not both")
    if env:
        raise Wrong(
            "--env is for a program, and with --url there is none; a token for the address is read "
            "from the variable that --bearer-token-env-var names"
        )
    _check_text(url, "--url")
    if not _ADDRESS.fullmatch(url) or not url.isprintable() or not _has_host(url):
        raise Wrong("--url must be an address that begins with http:// or https://")
    if token_variable is not None and not _VARIABLE.fullmatch(token_variable):
        # Not quoted: it may be the token.
        raise Wrong(
            "--bearer-token-env-var must be the name of an environment variable that holds the "
            "token, not the token"
        )
    return Given(name, url=url, token_variable=token_variable)


def _is_this_machine(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _has_host(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _variables(entries: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            # Not quoted: without a name it is a value.
            raise Wrong("--env must be KEY=VALUE, as in --env API_KEY=abc")
        _check_text(entry, f"--env {brief(name)!a}")
        found[name] = value
    return found


def _check_text(word: str, what: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise Wrong(f"{what} is not UTF-8, which config.toml cannot hold") from None
