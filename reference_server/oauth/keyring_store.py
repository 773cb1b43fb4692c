"""The keyring of the system.

The `keyring` package is imported with the first question, and asked in a thread that is left behind
if it does not answer: a desktop may hang or wait for somebody to unlock the keyring. What it says
in an error is not passed on: it may quote what it was given.
"""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from reference_server.oauth.failure import OAuthFailure

PATIENCE = 5.0
"""Seconds that the keyring has for an answer."""
SERVICE = "agent MCP credentials"
Answer = TypeVar("Answer")


class KeyringUnavailable(OAuthFailure):
    """The keyring cannot be used. `there`: whether there is one at all."""

    def __init__(self, words: str, *, there: bool) -> None:
        super().__init__(words)
        self.there = there


class KeyringStore:
    """Texts by name; all methods block for up to `PATIENCE` seconds, and raise KeyringUnavailable.

    After a failure it is not asked again by this process: each wait is seconds long.
    """

    def __init__(self, home: Path) -> None:
        # The keyring is the user's; another home is another set of logins.
        self._home = hashlib.sha256(str(home).encode()).hexdigest()[:16]
        self._failure: KeyringUnavailable | None = None

    def load(self, key: str) -> str | None:
        """Return a text."""
        return self._ask(lambda keyring: keyring.get_password(SERVICE, self._name(key)))

    def save(self, key: str, text: str) -> None:
        """Keep a text, and make sure that it is there."""

        def put(keyring: Any) -> bool:
            keyring.set_password(SERVICE, self._name(key), text)
            return keyring.get_password(SERVICE, self._name(key)) == text

        # There is a keyring that keeps nothing, for tests of other programs.
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
