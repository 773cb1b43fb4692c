"""Store of credentials: the keyring of the system, or a file of the home.

The file has an entry for each login, so that the keyring is used only for credentials that are in
it: no user has to unlock it for a server that needs no login. An entry is the credentials or, if
those are in the keyring, their members that are not secret.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, cast

from reference_server.config.home import Home
from reference_server.oauth.credentials import Credentials, key_of, parse_json
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.file_store import Entries, FileStore, file_lock
from reference_server.oauth.keyring_store import KeyringStore, KeyringUnavailable

Choice = Literal["auto", "file", "keyring"]
IN_KEYRING = "kept_in_keyring"


class Store:
    """Credentials of one home. All methods block, and raise OAuthFailure if a store fails."""

    def __init__(self, home: Home, choice: Choice = "auto") -> None:
        self._home = home
        self._choice = choice
        self._file = FileStore(home.credentials)
        self._keyring = KeyringStore(home.root)

    def check(self) -> None:
        """Raise OAuthFailure if the file cannot be locked or read, before a login begins."""
        self._file.change(lambda _entries: None)

    def load(self, server: str, url: str) -> Credentials | None:
        """Return the credentials of a server at this address; None if there are none."""
        entry = self._file.read().get(key_of(server, url))
        return None if entry is None else self._read(entry, server, url)

    def has_usable(self, server: str, url: str) -> bool:
        """Return whether there are valid or renewable credentials; does not use the keyring."""
        entry = self._file.read().get(key_of(server, url))
        if not isinstance(entry, dict):
            return False
        members = cast("dict[str, Any]", entry)
        if members.get(IN_KEYRING) is not True:
            credentials = self._read(members, server, url)
            return credentials is not None and credentials.is_usable
        ends = members.get("expires_at")
        return bool(members.get("renewable")) or not (
            isinstance(ends, int | float) and time.time() > ends
        )

    def has_any(self, server: str, url: str) -> bool:
        """Return whether there are credentials of a server at this address, usable or not."""
        return key_of(server, url) in self._file.read()

    def save(self, credentials: Credentials) -> str:
        """Store the credentials of a login in place of all others of that server's name.

        Return why an existing keyring could not be used, so that they are in the file, else "".
        """
        key, words = key_of(credentials.server, credentials.url), ""
        entry = credentials.to_json()
        if self._choice != "file":
            try:
                self._keyring.save(key, json.dumps(entry))
                entry = _marker(credentials)
            except KeyringUnavailable as error:
                if self._choice == "keyring":
                    raise OAuthFailure(
                        f"the keyring of the system cannot be used ({error}); with "
                        'mcp_oauth_credentials_store = "file" a file of the home is used'
                    ) from None
                words = f"the keyring cannot be used ({error})" if error.there else ""
        replaced_keys: list[str] = []

        def put(entries: Entries) -> None:
            replaced_keys.extend(_remove_entries(entries, credentials.server))
            entries[key] = entry

        self._file.change(put)
        self._remove_from_keyring(
            [one for one in replaced_keys if one != key or not _is_marker(entry)]
        )
        return words

    def replace(self, old: Credentials, new: Credentials) -> bool:
        """Replace stored credentials equal to `old` by renewed ones; return whether there were any.

        There are none after a logout or a new login since `old` was read.
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
                except KeyringUnavailable as error:
                    raise _in_keyring(old.server, error) from None
                entries[key] = _marker(new)
            else:
                entries[key] = new.to_json()
            replaced = True

        self._file.change(put)
        return replaced

    def remove(self, server: str) -> tuple[bool, str]:
        """Remove all credentials of a server's name, at any address, from file and keyring.

        Return whether there were any, and why some may remain in the keyring (else "").
        """
        if not self._file.read():
            return False, ""
        removed = False
        marked: list[str] = []

        def drop(entries: Entries) -> None:
            nonlocal removed
            keys = {key for key in entries if key.partition("|")[0] == server}
            removed = bool(keys)
            marked.extend(_remove_entries(entries, server))

        self._file.change(drop)
        return removed, self._remove_from_keyring(marked)

    @contextmanager
    def renewal_lock(self, server: str, url: str) -> Generator[None]:
        """Lock renewals, as a refresh token counts once. Raises OAuthFailure if that fails."""
        name = key_of(server, url).partition("|")[2]
        try:
            with file_lock(self._home.root / "oauth" / f"{name}.lock"):
                yield
        except OSError as error:
            raise OAuthFailure(f"the token cannot be renewed: {error}") from None

    def _read(self, entry: object, server: str, url: str) -> Credentials | None:
        try:
            if _is_marker(entry):
                text = self._keyring.load(key_of(server, url))
                if text is None:
                    return None
                entry = parse_json(text)
            credentials = Credentials.from_json(entry)
        except KeyringUnavailable as error:
            raise _in_keyring(server, error) from None
        except OAuthFailure as error:
            raise OAuthFailure(
                f"the credentials of `{server}` cannot be used: {error}; log in again"
            ) from None
        # The key has only a digest of the address, and the user may have edited the file.
        return credentials if (credentials.server, credentials.url) == (server, url) else None

    def _remove_from_keyring(self, keys: list[str]) -> str:
        """Remove these keys from the keyring; return why that failed, else ""."""
        try:
            for key in keys:
                self._keyring.remove(key)
        except KeyringUnavailable as error:
            return str(error)
        return ""


def _marker(credentials: Credentials) -> dict[str, Any]:
    return {
        "server": credentials.server,
        "url": credentials.url,
        "expires_at": credentials.expires_at,
        "renewable": credentials.refresh_token is not None,
        IN_KEYRING: True,
    }


def _is_marker(entry: object) -> bool:
    return isinstance(entry, dict) and cast("dict[str, Any]", entry).get(IN_KEYRING) is True


def _remove_entries(entries: Entries, server: str) -> list[str]:
    """Remove all entries of a server's name; return the keys of those in the keyring."""
    keys = [key for key in entries if key.partition("|")[0] == server]
    return [key for key in keys if _is_marker(entries.pop(key))]


def _in_keyring(server: str, error: KeyringUnavailable) -> OAuthFailure:
    return OAuthFailure(
        f"the credentials of `{server}` are in the keyring of the system, which cannot be used: "
        f"{error}"
    )
