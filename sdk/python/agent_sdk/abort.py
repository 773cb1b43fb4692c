"""A signal that ends a turn from anywhere: another task, another thread, a timer."""

import threading
from collections.abc import Callable

from agent_sdk.errors import AbortError


class AbortSignal:
    """Signal for `run` and `run_streamed`: `abort()`, from any thread, ends their turns for good
    with an AbortError. Several turns can share one signal."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may call `abort` while this thread holds the lock.
        self._lock = threading.RLock()
        self._waiting: dict[object, Callable[[], None]] = {}
        self._error: AbortError | None = None

    @classmethod
    def timeout(cls, seconds: float) -> "AbortSignal":
        """Return a signal that aborts after `seconds`, with a TimeoutError as the reason."""
        signal = cls()
        reason = TimeoutError(f"no end after {seconds:g} s")
        timer = threading.Timer(seconds, signal.abort, [reason])
        timer.daemon = True
        timer.start()
        return signal

    @property
    def aborted(self) -> bool:
        """Return whether the signal was aborted."""
        return self._error is not None

    @property
    def reason(self) -> object:
        """Return the reason given to `abort`; None before or without one."""
        return None if self._error is None else self._error.reason

    def abort(self, reason: object = None) -> None:
        """End the turns that use this signal. Calls after the first do nothing."""
        with self._lock:
            if self._error is not None:
                return
            self._error = AbortError(reason)
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for tell in waiting:
            tell()

    def raise_if_aborted(self) -> None:
        """Raise AbortError if the signal was aborted."""
        if self.aborted:
            raise self.error()

    def error(self) -> AbortError:
        """Return a new AbortError with the reason; each aborted turn raises its own."""
        return AbortError(self.reason)

    def subscribe(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` on an abort, at once if already aborted; return a function to unsubscribe."""
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
