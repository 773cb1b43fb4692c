"""Retries of a failed model call, and their delays."""

import random
from collections.abc import Callable

from reference_server.config.model import Provider
from reference_server.model.errors import ModelError, Phase

MAX_DELAY_SECONDS = 10.0
MAX_RETRY_AFTER_SECONDS = 300.0
"""Maximum pause that a provider may request; after a longer one the call is not retried."""
JITTER = 0.1


class Retries:
    """Retries of one model call, counted separately for the phases `request` and `stream`."""

    def __init__(self, provider: Provider, rng: Callable[[], float] = random.random) -> None:
        self._allowed: dict[Phase, int] = {
            "request": provider.request_max_retries,
            "stream": provider.stream_max_retries,
        }
        self._used: dict[Phase, int] = {"request": 0, "stream": 0}
        self._first_delay = provider.retry_delay_ms / 1000
        self._rng = rng

    def delay(self, error: ModelError) -> float | None:
        """Use up a retry and return the seconds before it; None, without one, if it is final."""
        used = self._used[error.phase]
        if not error.retryable or used >= self._allowed[error.phase]:
            return None
        if (error.retry_after or 0) > MAX_RETRY_AFTER_SECONDS:
            return None
        self._used[error.phase] = used + 1
        if error.retry_after is not None:
            return error.retry_after
        backoff = min(self._first_delay * 2 ** min(used, 30), MAX_DELAY_SECONDS)
        return backoff * (1 + JITTER * (2 * self._rng() - 1))

    def count(self, phase: Phase) -> str:
        """Return the used and allowed retries as `2/5`."""
        return f"{self._used[phase]}/{self._allowed[phase]}"
