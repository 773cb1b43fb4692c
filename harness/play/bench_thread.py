"""A bench on an event loop in its own thread, for synchronous callers."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from harness.play.bench import Bench, open_bench
from harness.play.config import Config
from harness.play.interruption import Waiter
from harness.play.run import Run
from harness.scenario.loader import Loaded

T = TypeVar("T")
R = TypeVar("R")


class BenchThread:
    """The bench of one worker. It opens at its first use, and again after `close`."""

    def __init__(self, config: Config, worker: str, interruption: Waiter) -> None:
        self._config = config
        self._worker = worker
        self._interruption = interruption
        self._stack = contextlib.ExitStack()
        self._opened: tuple[BlockingPortal, Bench] | None = None

    @property
    def bench(self) -> Bench:
        """The bench, for reading its state; use the methods here to make it act."""
        return self._open()[1]

    @property
    def opened_bench(self) -> Bench | None:
        """The bench, None if it is not open."""
        return self._opened[1] if self._opened is not None else None

    def run(self, loaded: Loaded, step_bound: float | None = None) -> Run:
        """Play one scenario; a step waits at most `step_bound` seconds, if given.

        Raises `Interrupted` at a signal, and `SetupFailed` if the server cannot be used at all.
        """
        self.bench.step_bound = step_bound
        try:
            return self._wait_for(self.bench.run, loaded)
        finally:
            self.bench.step_bound = None

    def missing_commands(self, needs: Sequence[str]) -> list[str]:
        """Return the needs that are commands unknown to the agent. Raises like `run`."""
        return self._wait_for(self.bench.commands.prober.missing_needs, needs)

    def first_turn(self, patience: float) -> Run:
        """Play the plain turn on a fresh process. Raises like `run`."""
        return self._wait_for(self.bench.first_turn, patience)

    def retire(self) -> None:
        """End the shared processes, so that the next scenario starts a fresh one."""
        portal, bench = self._open()
        portal.call(bench.servers.retire_all)

    def close(self) -> Bench | None:
        """End all processes, and return the bench; None if it was not open."""
        bench, self._opened = self.opened_bench, None
        self._stack.close()
        return bench

    def _wait_for(self, call: Callable[[T], Awaitable[R]], argument: T) -> R:
        portal, _ = self._open()
        return self._interruption.wait(portal.start_task_soon(call, argument))

    def _open(self) -> tuple[BlockingPortal, Bench]:
        if self._opened is None:
            config = self._config
            portal = self._stack.enter_context(start_blocking_portal())
            opening = open_bench(
                config.profile,
                config.book,
                base=config.base,
                worker=self._worker,
                scale=config.scale,
                progress=config.progress,
            )
            bench = self._stack.enter_context(portal.wrap_async_context_manager(opening))
            self._opened = portal, bench
        return self._opened
