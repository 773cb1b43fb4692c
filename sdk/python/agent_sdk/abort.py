"""A signal that ends a turn from anywhere: another task, another thread, a timer."""

import threading
from collections.abc import Callable

from agent_sdk.errors import AbortError


class AbortSignal:
    """Give it to `run` or `run_streamed`; `abort()` ends the turn with an AbortError.

    It can be shared by several turns, and be aborted from any thread, once.
    """

    def __init__(self) -> None:
        # Reentrant: a signal handler may abort while this thread is in here.
        self._lock = threading.RLock()
        self._waiting: dict[object, Callable[[], None]] = {}
        self._error: AbortError | None = None

    @classmethod
    def timeout(cls, seconds: float) -> "AbortSignal":
        """Return a signal that aborts after some seconds, with a TimeoutError as the reason."""
        signal = cls()
        reason = TimeoutError(f"no end after {seconds:g} s")
        timer = threading.Timer(seconds, signal.abort, [reason])
        timer.daemon = True
        timer.start()
        return signal

    @property
    def aborted(self) -> bool:
        """Return whether it was aborted."""
        return self._error is not None

    @property
    def reason(self) -> object:
        """Return the reason given to `abort`."""
        return None if self._error is None else self._error.reason

    def abort(self, reason: object = None) -> None:
        """End the turns that have this signal. Only the first call counts."""
        with self._lock:
            if self._error is not None:
                return
            self._error = AbortError(reason)
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for tell in waiting:
            tell()

    def raise_if_aborted(self) -> None:
        """Raise AbortError if it was aborted."""
        if self.aborted:
            raise self.error()

    def error(self) -> AbortError:
        """Return the error of an aborted turn; each turn has one of its own."""
        return AbortError(self.reason)

    def subscribe(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` on an abort, or at once if aborted; return a function to unsubscribe."""
        key = object()
        with self._lock:
            if self._error is None:
                self._waiting[key] = tell
                return lambda: self._forget(key)
        tell()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._waiting.pop(key, None)
