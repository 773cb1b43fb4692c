"""Moments in a turn of the reference server at which a bug can strike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.bugs.planting import swap

TURN = "reference_server.engine.turn:ActiveTurn"
SHELL = "reference_server.engine.tools.shell:_CommandRun"
PATCH = "reference_server.engine.tools.patch:_PatchRun"
Strike = Callable[[Any], None]
"""A change of the server's state; its argument is the thread."""


def turn_begins(strike: Strike) -> None:
    """Strike as each turn begins, before its first notification."""

    def begin(original: Any) -> Any:
        def changed(turn: Any) -> None:
            strike(turn.thread)
            original(turn)

        return changed

    swap(f"{TURN}._begin", begin)


def turn_ends(status: str, strike: Strike) -> None:
    """Strike after each turn that ends with this status."""

    def end(original: Any) -> Any:
        def changed(turn: Any, error: Any) -> None:
            original(turn, error)
            if turn._status == status:
                strike(turn.thread)

        return changed

    swap(f"{TURN}._end", end)


def model_is_asked_again(strike: Strike) -> None:
    """Strike after the model's stream is cut off, before the retry."""

    def tell(original: Any) -> Any:
        def changed(turn: Any, *about: Any) -> None:
            original(turn, *about)
            strike(turn.thread)

        return changed

    swap(f"{TURN}.tell_retry", tell)


def client_declines(strike: Strike) -> None:
    """Strike after the client declines a command."""

    def denied(original: Any) -> Any:
        def changed(run: Any, decision: Any) -> Any:
            told = original(run, decision)
            strike(run._context.thread)
            return told

        return changed

    swap(f"{SHELL}._decline", denied)


def in_all_threads(change: Strike) -> Strike:
    """Return a change that applies `change` to every thread of the server."""
    threads: list[Any] = []

    def remember(original: Any) -> Any:
        def changed(thread: Any, *about: Any, **more: Any) -> None:
            original(thread, *about, **more)
            threads.append(thread)

        return changed

    swap("reference_server.session.thread:LoadedThread.__init__", remember)

    def strike(_: Any) -> None:
        for thread in threads:
            change(thread)

    return strike
