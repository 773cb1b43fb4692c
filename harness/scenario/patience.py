"""Timeouts that count silence: a server that still reports about a turn is slow, not silent."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import anyio

from harness.protocol.values import dig, text
from harness.trace.frame import Frame, Kind
from harness.trace.recorder import Recorder

MAX_BOUNDS_PER_WAIT: Final = 6
"""A wait takes at most this multiple of its bound, however much the server sends.

For a step it is a multiple of the scenario's bound, since one step may stand for many messages.
"""
# The deadline is not moved for less than this part of the bound: messages come in thousands.
_MIN_EXTENSION_OF_BOUND: Final = 0.05


class Patience:
    """One wait of at most `bound` seconds of silence about turns, on all connections of a trace.

    `longest` is the bound of the whole wait, in seconds. `seconds` is the bound that was hit: the
    silence, or the whole wait if messages kept coming. `on_extended` is called when the deadline
    moves.
    """

    def __init__(
        self,
        recorder: Recorder,
        bound: float,
        longest: float | None = None,
        on_extended: Callable[[], None] | None = None,
    ) -> None:
        self._on_extended = on_extended
        self._recorder = recorder
        self._bound = bound
        self._longest = MAX_BOUNDS_PER_WAIT * bound if longest is None else longest
        self._scope = anyio.CancelScope()
        self._last = 0.0
        self.seconds = bound

    @property
    def deadline(self) -> float:
        """Return when the wait ends if nothing comes, on the clock of `anyio.current_time`."""
        return self._scope.deadline

    @contextmanager
    def wait(self) -> Generator[None]:
        """Bound the block; it is left without an exception when the bound is hit."""
        started = anyio.current_time()
        self._last = started + self._longest
        self._recorder.listeners.append(self._on_frame)
        try:
            with self._scope:
                self._scope.deadline = started + self._bound
                yield
        finally:
            self._recorder.listeners.remove(self._on_frame)
            if self._last - self._scope.deadline <= _MIN_EXTENSION_OF_BOUND * self._bound:
                self.seconds = self._longest

    def _on_frame(self, frame: Frame) -> None:
        if not is_about_a_turn(frame):
            return
        deadline = min(anyio.current_time() + self._bound, self._last)
        if deadline - self._scope.deadline > _MIN_EXTENSION_OF_BOUND * self._bound:
            self._scope.deadline = deadline
            if self._on_extended is not None:
                self._on_extended()


def is_about_a_turn(frame: Frame) -> bool:
    """Return whether a frame is a server notification that names a turn."""
    if not frame.from_target or frame.kind is not Kind.NOTIFICATION:
        return False
    params = frame.params
    return bool(text(dig(params, "turnId")) or text(dig(params, "turn", "id")))
