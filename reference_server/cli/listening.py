"""`agent app-server --listen`: the address to listen at, and the conditions of admission.

`reference_server.reception` takes the connections. A server on standard streams never imports this.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reference_server.cli.surroundings import UsageError, complain
from reference_server.reception import Host, Reception
from reference_server.sandbox.places import OWN_SOCKET, TOKEN_FILE
from reference_server.transport.addresses import (
    Address,
    BadAddress,
    TcpAddress,
    UnixAddress,
    parse_address,
)
from reference_server.transport.base import Edge, plain_edge
from reference_server.transport.handshake import Admission
from reference_server.transport.listener import CannotListen, Listener, open_listener

MIN_TOKEN_CHARACTERS = 16
"""Characters of a token; a shorter one could be guessed."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Options about listening; `listen` is the address as it stands on the command line."""

    listen: str
    token_env: str | None = None
    token_file: str | None = None
    origins: Sequence[str] = ()
    max_connections: int | None = None


@dataclass(frozen=True, slots=True)
class Listening:
    """An open listening socket, with the conditions of admission."""

    listener: Listener
    admission: Admission
    options: ListenOptions
    edge: Edge = plain_edge

    def hidden_from_commands(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the server's environment for the commands it runs, without the token.

        Two added variables name the socket and the token file, which are hidden from confined
        commands: a command that reaches this server could approve itself.
        """
        hidden = {name: environment[name] for name in environment if name != self.options.token_env}
        if isinstance(self.listener.address, UnixAddress):
            hidden[OWN_SOCKET] = os.path.abspath(self.listener.address.path)
        if self.options.token_file is not None:
            hidden[TOKEN_FILE] = os.path.abspath(self.options.token_file)
        return hidden

    async def serve(
        self,
        server: Host,
        refusal: Callable[[str], str | None] | None = None,
        *,
        announcement: str = "",
    ) -> None:
        """Print the address, or the announcement if given, then serve until the server stops.

        `refusal`, if given, replaces `Admission.missing_reason`.
        """
        complain(announcement or f"listening on {self.listener.address}")
        admission = self.admission
        if refusal:
            admission = replace(admission, missing_reason=refusal)
        await Reception(server, self.listener, admission, self.edge).run()

    def close(self) -> None:
        """Close the socket and remove its file."""
        self.listener.close()


def listen(
    options: ListenOptions, environment: Mapping[str, str], edge: Edge = plain_edge
) -> Listening:
    """Open the socket, whose clients speak through `edge`.

    Raises UsageError for a wrong address or token, or if it cannot listen.
    """
    try:
        address = parse_address(options.listen)
        admission = _admission(address, options, environment)
        return Listening(open_listener(address), admission, options, edge)
    except (BadAddress, CannotListen) as error:
        raise UsageError(f"--listen {error}") from None


def _admission(
    address: Address, options: ListenOptions, environment: Mapping[str, str]
) -> Admission:
    token = _token(options, environment)
    if isinstance(address, UnixAddress):
        if token is not None and not address.websocket:
            raise UsageError(
                f"--listen {address}: a token is sent with the request for a WebSocket, and here "
                "there is none; the rights of the socket's folder say who may connect"
            )
    elif token is None and not address.is_loopback:
        raise UsageError(
            f"--listen {address}: others can reach this address, so clients must have a token; "
            "give it with --token-env NAME or --token-file FILE, or listen on 127.0.0.1"
        )
    return Admission(
        token=token,
        origins=frozenset(options.origins),
        checks_host=isinstance(address, TcpAddress) and address.is_loopback,
        max_connections=options.max_connections,
    )


def _token(options: ListenOptions, environment: Mapping[str, str]) -> str | None:
    if options.token_env is not None:
        source = f"--token-env {options.token_env}"
        token = environment.get(options.token_env, "")
    elif options.token_file is not None:
        source = f"--token-file {options.token_file}"
        token = _read_token(options.token_file, source)
    else:
        return None
    if len(token) < MIN_TOKEN_CHARACTERS or not (token.isascii() and token.isprintable()):
        raise UsageError(
            f"{source}: a token has at least {MIN_TOKEN_CHARACTERS} characters, all printable "
            "ASCII; `openssl rand -hex 32` makes one"
        )
    return token


def _read_token(path: str, source: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"{source}: others may read this file; chmod 600 {path}")
            return file.read(1 << 16).strip()
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}") from None
