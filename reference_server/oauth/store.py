"""The store of credentials: the keyring of the system, or a file of the home.

The file says for each login where they are, so that the keyring is asked only for what is in it:
nobody is asked to unlock it for a server that needs no login. An entry is the credentials, or,
where the keyring has them, what is known of them that is no secret.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, cast

from reference_server.config.home import Home
from reference_server.oauth.credentials import Credentials, key_of, parsed
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.file_store import Entries, FileStore, locked
from reference_server.oauth.keyring_store import KeyringStore, NoKeyring

Choice = Literal["auto", "file", "keyring"]
KEPT = "kept_in_keyring"


class Store:
    """The credentials of one home; all methods block, and raise OAuthFailure."""

    def __init__(self, home: Home, choice: Choice = "auto") -> None:
        self._home = home
        self._choice = choice
        self._file = FileStore(home.credentials)
        self._keyring = KeyringStore(home.root)

    def check(self) -> None:
        """Make sure that credentials can be kept, as far as that is known before."""
        self._file.change(lambda _entries: None)

    def load(self, server: str, url: str) -> Credentials | None:
        """Return the credentials of a server at this address, None if there are none."""
        entry = self._file.read().get(key_of(server, url))
        return None if entry is None else self._read(entry, server, url)

    def usable(self, server: str, url: str) -> bool:
        """Return whether there are credentials that have not ended for good; asks no keyring."""
        entry = self._file.read().get(key_of(server, url))
        if not isinstance(entry, dict):
            return False
        members = cast("dict[str, Any]", entry)
        if members.get(KEPT) is not True:
            found = self._read(members, server, url)
            return found is not None and found.usable
        ends = members.get("expires_at")
        return bool(members.get("renewable")) or not (
            isinstance(ends, int | float) and time.time() > ends
        )

    def save(self, credentials: Credentials) -> str:
        """Keep the credentials of a login and return why they are not in the keyring, if one is there.

        They take the place of those of that name, whatever their address.
        """
        key, words = key_of(credentials.server, credentials.url), ""
        entry = credentials.to_json()
        if self._choice != "file":
            try:
                self._keyring.save(key, json.dumps(entry))
                entry = _marker(credentials)
            except NoKeyring as error:
                if self._choice == "keyring":
                    raise OAuthFailure(
                        f"the keyring of the system cannot be used ({error}); with "
                        'mcp_oauth_credentials_store = "file" a file of the home is used'
                    ) from None
                words = f"the keyring cannot be used ({error})" if error.there else ""
        others: list[str] = []

        def put(entries: Entries) -> None:
            others.extend(_drop(entries, credentials.server))
            entries[key] = entry

        self._file.change(put)
        self._clear([one for one in others if one != key or not _is_marker(entry)])
        return words

    def replace(self, old: Credentials, new: Credentials) -> bool:
        """Keep renewed credentials in the place of the old ones and return whether they were there.

        Else somebody has logged out, or in again, since `old` was read.
        """
        key = key_of(old.server, old.url)
        replaced = False

        def put(entries: Entries) -> None:
            nonlocal replaced
            entry = entries.get(key)
            if entry is None or self._read(entry, old.server, old.url) != old:
                return
            if _is_marker(entry):
                try:
                    self._keyring.save(key, json.dumps(new.to_json()))
                except NoKeyring as error:
                    raise _in_keyring(old.server, error) from None
                entries[key] = _marker(new)
            else:
                entries[key] = new.to_json()
            replaced = True

        self._file.change(put)
        return replaced

    def remove(self, server: str) -> tuple[bool, str]:
        """Remove all credentials of a server, whatever their address, wherever they are.

        Tells whether there were any, and why some may be left in the keyring ("" if none are).
        """
        if not self._file.read():
            return False, ""
        removed = False
        marked: list[str] = []

        def drop(entries: Entries) -> None:
            nonlocal removed
            found = {key for key in entries if key.partition("|")[0] == server}
            removed = bool(found)
            marked.extend(_drop(entries, server))

        self._file.change(drop)
        return removed, self._clear(marked)

    @contextmanager
    def renewing(self, server: str, url: str) -> Generator[None]:
        """Keep other processes from renewing the same token, which can be used only once."""
        name = key_of(server, url).partition("|")[2]
        try:
            with locked(self._home.root / "oauth" / f"{name}.lock"):
                yield
        except OSError as error:
            raise OAuthFailure(f"the token cannot be renewed: {error}") from None

    def _read(self, entry: object, server: str, url: str) -> Credentials | None:
        try:
            if _is_marker(entry):
                text = self._keyring.load(key_of(server, url))
                if text is None:
                    return None
                entry = parsed(text)
            found = Credentials.from_json(entry)
        except NoKeyring as error:
            raise _in_keyring(server, error) from None
        except OAuthFailure as error:
            raise OAuthFailure(
                f"the credentials of `{server}` cannot be used: {error}; log in again"
            ) from None
        # The key is a digest, and somebody may have edited the file.
        return found if (found.server, found.url) == (server, url) else None

    def _clear(self, keys: list[str]) -> str:
        """Remove what the keyring has of these and return why it could not be."""
        try:
            for key in keys:
                self._keyring.remove(key)
        except NoKeyring as error:
            return str(error)
        return ""


def _marker(credentials: Credentials) -> dict[str, Any]:
    return {
        "server": credentials.server,
        "url": credentials.url,
        "expires_at": credentials.expires_at,
        "renewable": credentials.refresh_token is not None,
        KEPT: True,
    }


def _is_marker(entry: object) -> bool:
    return isinstance(entry, dict) and cast("dict[str, Any]", entry).get(KEPT) is True


def _drop(entries: Entries, server: str) -> list[str]:
    """Drop all entries of a name and return the keys of those that the keyring has."""
    keys = [key for key in entries if key.partition("|")[0] == server]
    return [key for key in keys if _is_marker(entries.pop(key))]


def _in_keyring(server: str, error: NoKeyring) -> OAuthFailure:
    return OAuthFailure(
        f"the credentials of `{server}` are in the keyring of the system, which cannot be used: "
        f"{error}"
    )
