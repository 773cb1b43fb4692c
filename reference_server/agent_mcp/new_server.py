"""Checks of the arguments of `agent mcp add`, before any file is read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reference_server.brief import brief

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*")


class InvalidServer(Exception):
    """Arguments that are not a valid server; str() is one line, without values of variables."""


@dataclass(frozen=True, slots=True)
class NewServer:
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
        """Return whether the token is sent unencrypted to another machine."""
        from urllib.parse import urlsplit

        parts = urlsplit(self.url or "")
        clear = parts.scheme == "http" and not _is_this_machine(parts.hostname or "")
        return self.token_variable is not None and clear


def parse_server(
    name: str,
    *,
    command: Sequence[str],
    env: Sequence[str],
    url: str | None,
    token_variable: str | None,
) -> NewServer:
    """Return the server of these arguments. Raises InvalidServer if they cannot be one.

    `env` are entries `KEY=VALUE`; of two with one key the last counts.
    """
    if not _NAME.fullmatch(name):
        raise InvalidServer(
            f"{brief(name)!a} cannot be the name of a server: use letters, digits, hyphens and "
            "underscores"
        )
    if url is None:
        return _program(name, command, env, token_variable)
    return _address(name, url, command, env, token_variable)


def _program(
    name: str, command: Sequence[str], env: Sequence[str], token_variable: str | None
) -> NewServer:
    if not command:
        raise InvalidServer(
            f"what is the server {name}? Give the command of a program, "
            f"`agent mcp add {name} -- COMMAND [ARGS...]`, or an address, "
            f"`agent mcp add {name} --url URL`"
        )
    if token_variable is not None:
        raise InvalidServer(
            "--bearer-token-env-var is for a server at an address (--url); give a program its key "
            "with --env KEY=VALUE"
        )
    if not command[0]:
        raise InvalidServer("the command is empty")
    for word in command:
        _check_text(word, "a word of the command")
    return NewServer(name, tuple(command), _variables(env))


def _address(
    name: str, url: str, command: Sequence[str], env: Sequence[str], token_variable: str | None
) -> NewServer:
    if command:
        raise InvalidServer("give either --url or a command after `--`, not both")
    if env:
        raise InvalidServer(
            "--env is for a program, and with --url there is none; a token for the address is read "
            "from the variable that --bearer-token-env-var names"
        )
    _check_text(url, "--url")
    if not _ADDRESS.fullmatch(url) or not url.isprintable() or not _has_host(url):
        raise InvalidServer("--url must be an address that begins with http:// or https://")
    if token_variable is not None and not _VARIABLE.fullmatch(token_variable):
        # Not quoted: it may be the token.
        raise InvalidServer(
            "--bearer-token-env-var must be the name of an environment variable that holds the "
            "token, not the token"
        )
    return NewServer(name, url=url, token_variable=token_variable)


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
    variables: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            # Not quoted: without a name it is a value.
            raise InvalidServer("--env must be KEY=VALUE, as in --env API_KEY=abc")
        _check_text(entry, f"--env {brief(name)!a}")
        variables[name] = value
    return variables


def _check_text(word: str, source: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise InvalidServer(f"{source} is not UTF-8, which config.toml cannot hold") from None
