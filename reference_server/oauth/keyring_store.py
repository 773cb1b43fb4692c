"""Access to the keyring of the system.

The `keyring` package is imported on first use, and called in a thread that is abandoned if it does
not return: a desktop may hang, or wait for the user to unlock the keyring. Its error messages are
not passed on, since they may quote a secret.
"""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from reference_server.oauth.failure import OAuthFailure

PATIENCE = 5.0
"""Seconds to wait for the keyring."""
SERVICE = "agent MCP credentials"
Answer = TypeVar("Answer")


class KeyringUnavailable(OAuthFailure):
    """The keyring cannot be used. `there`: whether the system has one."""

    def __init__(self, words: str, *, there: bool) -> None:
        super().__init__(words)
        self.there = there


class KeyringStore:
    """Texts by name. All methods block for up to `PATIENCE` and may raise KeyringUnavailable.

    After a failure all later calls fail at once, since each would wait for seconds.
    """

    def __init__(self, home: Path) -> None:
        # The keyring is the user's, but each home has its own logins.
        self._home = hashlib.sha256(str(home).encode()).hexdigest()[:16]
        self._failure: KeyringUnavailable | None = None

    def load(self, key: str) -> str | None:
        """Return a text; None if there is none."""
        return self._ask(lambda keyring: keyring.get_password(SERVICE, self._name(key)))

    def save(self, key: str, text: str) -> None:
        """Store a text and check that the keyring returns it."""

        def put(keyring: Any) -> bool:
            keyring.set_password(SERVICE, self._name(key), text)
            return keyring.get_password(SERVICE, self._name(key)) == text

        # The `keyring` package has a null backend, which stores nothing.
        if not self._ask(put):
            raise KeyringUnavailable("it does not keep what it is given", there=False)

    def remove(self, key: str) -> None:
        """Remove a text, if it is there."""

        def drop(keyring: Any) -> bool:
            if keyring.get_password(SERVICE, self._name(key)) is not None:
                keyring.delete_password(SERVICE, self._name(key))
            return True

        self._ask(drop)

    def _name(self, key: str) -> str:
        return f"{key}|{self._home}"

    def _ask(self, question: Callable[[Any], Answer]) -> Answer:
        if self._failure is not None:
            raise self._failure
        answers: list[Answer] = []
        failures: list[KeyringUnavailable] = []

        def ask() -> None:
            try:
                import keyring

                answers.append(question(keyring))
            except BaseException as error:
                absent = type(error).__name__ in ("NoKeyringError", "ModuleNotFoundError")
                words = "there is none" if absent else f"it fails ({type(error).__name__})"
                failures.append(KeyringUnavailable(words, there=not absent))

        thread = threading.Thread(target=ask, name="keyring", daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if answers:
            return answers[0]
        timeout = KeyringUnavailable(f"it does not answer within {PATIENCE:g} seconds", there=True)
        self._failure = failures[0] if failures else timeout
        raise self._failure
