"""Access token of one MCP server, for the turns that call it.

One renewal serves all waiting tasks, in this process and in others, since most authorization
servers accept a refresh token once. A renewal continues if the turn that began it is interrupted:
otherwise its response would be lost, and the login with it.
"""

import logging
from dataclasses import replace
from urllib.parse import quote

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup

from reference_server.config.mcp import McpServer
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.store import Store

_log = logging.getLogger(__name__)
MIN_SECRET_CHARACTERS = 6
"""Minimum characters of a secret that is redacted."""
HIDDEN = "[key]"
RENEWAL_SECONDS = 2.0
"""Seconds that a renewal has to end when the server stops."""


class Bearer:
    """Access token of one server, with its renewal; all waits have a time limit."""

    def __init__(self, tasks: TaskGroup, server: McpServer, store: Store) -> None:
        self._tasks = tasks
        self._server = server
        self._store = store
        self._credentials: Credentials | None = None
        self._renewal: _Renewal | None = None
        self._seen: set[str] = set()
        self._hidden: list[str] = []

    async def load(self) -> None:
        """Load the stored credentials, again after a refusal. Raises OAuthFailure if unreadable."""
        self._keep(await to_thread.run_sync(self._store.load, self._server.name, self._server.url))

    async def token(self) -> str | None:
        """Return the token, None without a login. Raises OAuthFailure if it cannot be renewed."""
        credentials = self._credentials
        if credentials is not None and credentials.is_expired:
            credentials = await self._renew(credentials)
        return None if credentials is None else credentials.access_token

    async def other_token(self, refused: str | None) -> str | None:
        """Return another token to try, renewed if needed, None if there is none.

        `refused` is the token that was rejected, None if none was sent.

        Raises OAuthFailure if the credentials cannot be read or renewed.
        """
        credentials = self._credentials
        if credentials is None or credentials.access_token == refused:
            await self.load()
            credentials = self._credentials
        if credentials is None or (
            credentials.access_token == refused and credentials.refresh_token is None
        ):
            return None
        if credentials.access_token == refused or credentials.is_expired:
            credentials = await self._renew(credentials)
        return credentials.access_token

    def redact(self, text: str) -> str:
        """Return a text without the secrets of this server so far, also if percent-encoded.

        Other encodings are not searched for: in an answer of many MiB that would take seconds.
        """
        for form in self._hidden:
            text = text.replace(form, HIDDEN)
        return text

    def close(self) -> None:
        """Let a running renewal end within RENEWAL_SECONDS."""
        if self._renewal is not None:
            self._renewal.hurry()

    def _keep(self, credentials: Credentials | None) -> None:
        self._credentials = credentials
        if credentials is not None:
            # A shorter secret would match parts of ordinary words.
            secrets = [one for one in credentials.secrets if len(one) >= MIN_SECRET_CHARACTERS]
            self._seen.update(secrets, (quote(one, safe="") for one in secrets))
            self._hidden = sorted(self._seen, key=len, reverse=True)

    async def _renew(self, old: Credentials) -> Credentials:
        if (renewal := self._renewal) is None:
            renewal = self._renewal = _Renewal(self._store, old)
            self._tasks.start_soon(self._run, renewal)
        await renewal.done.wait()
        if renewal.new is None:
            raise OAuthFailure(renewal.failure)
        return renewal.new

    async def _run(self, renewal: "_Renewal") -> None:
        await renewal.run()
        self._renewal = None
        if renewal.new is not None:
            self._keep(renewal.new)


class _Renewal:
    """A renewal, for which several tasks may wait: `new` is set when it is `done`, or `failure`."""

    def __init__(self, store: Store, old: Credentials) -> None:
        self.done = anyio.Event()
        self.new: Credentials | None = None
        self.failure = "the agent ends"
        self._store = store
        self._old = old
        self._scope = anyio.CancelScope(shield=True)

    async def run(self) -> None:
        """Renew the token and set `done`; an OAuthFailure is kept in `failure`."""
        try:
            with self._scope:
                self.new = await to_thread.run_sync(self._renew)
        except OAuthFailure as error:
            self.failure = str(error)
        finally:
            self.done.set()

    def hurry(self) -> None:
        """End within RENEWAL_SECONDS."""
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + RENEWAL_SECONDS)

    def _renew(self) -> Credentials:
        """Renew and store the token, in a worker thread; the event loop sends the request.

        Raises OAuthFailure if that fails or the login has ended. Blocks.
        """
        from reference_server.oauth.tokens import NotRenewed, renew

        old = self._old
        with self._store.renewal_lock(old.server, old.url):
            stored = self._store.load(old.server, old.url)
            if stored is None:
                raise OAuthFailure("its login has ended")
            if stored.access_token != old.access_token and not stored.is_expired:
                return stored  # Renewed by another process, or by a new login.
            try:
                new = from_thread.run(renew, stored)
            except NotRenewed as error:
                if error.is_final:
                    self._store.replace(stored, replace(stored, refresh_token=None, expires_at=0))
                raise
            try:
                was_stored = self._store.replace(stored, new)
            except OAuthFailure as error:
                # The old token is used up; the new one lasts until this process ends.
                _log.warning("MCP server %s: its token is not kept: %s", old.server, error)
                return new
            if not was_stored:
                raise OAuthFailure("its login has ended")
            return new


def bearer_of(tasks: TaskGroup, server: McpServer, store: Store) -> Bearer | None:
    """Return the token of a server; None for a program, or if config.toml names its token."""
    if not server.url or server.token_variable is not None:
        return None
    return Bearer(tasks, server, store)
