"""Where credentials are kept: in the keyring of the system, or in a file of the home.

Here lives the choice of the two, `mcp_oauth_credentials_store` of config.toml. `auto` is the
keyring where one works, else the file.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from reference_server.config.home import Home
from reference_server.oauth.credentials import Credentials, key_of
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.file_store import FileStore, locked
from reference_server.oauth.keyring_store import KeyringStore, NoKeyring

Choice = Literal["auto", "file", "keyring"]


class Store:
    """The credentials of one home; all methods block, and raise OAuthFailure."""

    def __init__(self, home: Home, choice: Choice = "auto") -> None:
        self._home = home
        self._choice = choice
        self._file = FileStore(home.credentials)
        self._keyring = KeyringStore(home.root)

    def load(self, server: str, url: str) -> Credentials | None:
        """Give the credentials of a server at this address, None if there are none.

        With `auto` the file counts first: it has an entry only where the keyring failed, after
        whatever the keyring still holds.
        """
        if self._choice != "keyring" and (found := self._file.load(server, url)) is not None:
            return found
        if self._choice == "file":
            return None
        try:
            return self._keyring.load(server, url)
        except NoKeyring as error:
            if self._choice == "auto":
                return None
            raise _unusable(error) from None

    def save(self, credentials: Credentials) -> str:
        """Keep the credentials of a login; gives why they are not where they should be, or ""."""
        if self._choice == "file":
            self._file.save(credentials)
            return ""
        try:
            self._keyring.save(credentials)
        except NoKeyring as error:
            if self._choice == "keyring":
                raise _unusable(error) from None
            self._file.save(credentials)
            return f"the keyring cannot be used ({error})" if error.there else ""
        self._file.remove(credentials.server)
        return ""

    def replace(self, old: Credentials, new: Credentials) -> bool:
        """Keep renewed credentials where the old ones are; tells whether they still were there."""
        if self._choice != "keyring" and self._file.replace(old, new):
            return True
        if self._choice == "file" or self.load(old.server, old.url) != old:
            return False
        try:
            self._keyring.save(new)
        except NoKeyring as error:
            raise _unusable(error) from None
        return True

    def remove(self, server: str, url: str) -> tuple[bool, str]:
        """Remove the credentials of a server from both places.

        Tells whether there were any, and what could not be asked although it may hold some ("" if
        nothing). In the file all addresses of that name count.
        """
        removed = self._file.remove(server)
        try:
            return self._keyring.remove(server, url) or removed, ""
        except NoKeyring as error:
            if self._choice == "keyring" and error.there:
                raise _unusable(error) from None
            unasked = error.there and self._choice != "file"
            return removed, f"the keyring could not be asked ({error})" if unasked else ""

    @contextmanager
    def renewing(self, server: str, url: str) -> Generator[None]:
        """Keep other processes from renewing the same token; it may be used only once."""
        name = key_of(server, url).partition("|")[2]
        try:
            with locked(self._home.root / "oauth" / f"{name}.lock"):
                yield
        except OSError as error:
            raise OAuthFailure(f"the token cannot be renewed: {error}") from None


def _unusable(error: NoKeyring) -> OAuthFailure:
    return OAuthFailure(
        f"the keyring of the system cannot be used ({error}); with "
        'mcp_oauth_credentials_store = "file" a file of the home is used'
    )
