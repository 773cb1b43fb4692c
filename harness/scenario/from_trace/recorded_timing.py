"""Waits of a model's script as a recording measured them."""

from collections.abc import Sequence
from typing import Any, Final

from harness.trace.model_marks import ModelPiece

# Shorter waits are left out; longer ones are several parts, as a `delay` has a maximum.
_MIN_SECONDS: Final = 0.001
_MAX_DELAY_SECONDS: Final = 10.0


def delays(seconds: float) -> list[dict[str, Any]]:
    """Return `delay` entries that wait that long in all."""
    found: list[dict[str, Any]] = []
    while seconds >= _MIN_SECONDS:
        wait = min(seconds, _MAX_DELAY_SECONDS)
        found.append({"delay": {"seconds": round(wait, 3)}})
        seconds -= wait
    return found


def timed_deltas(message: str, pieces: Sequence[ModelPiece]) -> list[Any]:
    """Return a message's deltas, each after its wait; the last one takes what is left.

    A masked secret changes the length of a text, so the pieces may not add up to it.
    """
    deltas: list[Any] = []
    for number, piece in enumerate(pieces):
        deltas += delays(piece.seconds)
        end = piece.characters if number < len(pieces) - 1 else len(message)
        delta, message = message[:end], message[end:]
        if delta:
            deltas.append(delta)
    return deltas
