"""Token counts and the fill of the model's context.

The payload of the notification is not shown in the specification; it is the shipping server's.
The size at which compaction triggers is not shown either ("Limits"): here it is
`model_auto_compact_token_limit` of config.toml, else nine tenths of `model_context_window`; without
both it never triggers.
"""

from typing import Any, NamedTuple, cast

from harness.protocol.wire.thread import (
    ThreadTokenUsageUpdatedNotification,
    TokenCounts,
    TokenUsage,
)
from reference_server.config.model import Config
from reference_server.session.thread import LoadedThread


class ContextWindow(NamedTuple):
    """Tokens of a model call: at most `size`; from `limit` on the history is compacted. Or None."""

    size: int | None
    limit: int | None

    @classmethod
    def of(cls, config: Config) -> "ContextWindow":
        """Return the window of the configuration, its limit by default 90 % of the size."""
        size, limit = config.model_context_window, config.model_auto_compact_token_limit
        if limit is None and size is not None:
            limit = size * 9 // 10
        return cls(size, limit)


class Meter:
    """Counter that adds the tokens of one turn's model calls to those of its thread."""

    def __init__(self, thread: LoadedThread, turn_id: str, window: ContextWindow) -> None:
        self._thread = thread
        self._turn_id = turn_id
        self._window = window

    @property
    def is_full(self) -> bool:
        """Return whether the context has reached the limit, so that it is to be compacted."""
        limit = self._window.limit
        return limit is not None and self._thread.context_tokens >= limit

    def report(self, last: TokenCounts | None, *, of_thread: bool = True) -> None:
        """Count the tokens of a call and notify the subscribers; do nothing for None.

        `of_thread`: the call held the thread's own conversation.
        """
        if last is None:
            return
        if of_thread:
            self._thread.context_tokens = last.total_tokens
        usage = TokenUsage(
            total=self._thread.add_tokens(last),
            last=last,
            model_context_window=self._window.size,
        )
        self._thread.subscribers.notify(
            ThreadTokenUsageUpdatedNotification(
                thread_id=self._thread.id, turn_id=self._turn_id, token_usage=usage
            )
        )


def token_counts(usage: dict[str, Any]) -> TokenCounts | None:
    """Return the counts of one call; None if the provider reported none."""
    if not usage:
        return None
    inputs = _count(usage, "input_tokens")
    outputs = _count(usage, "output_tokens")
    return TokenCounts(
        total_tokens=_count(usage, "total_tokens") or inputs + outputs,
        input_tokens=inputs,
        cached_input_tokens=_count(_details(usage, "input_tokens_details"), "cached_tokens"),
        output_tokens=outputs,
        reasoning_output_tokens=_count(
            _details(usage, "output_tokens_details"), "reasoning_tokens"
        ),
    )


def _count(fields: dict[str, Any], key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _details(fields: dict[str, Any], key: str) -> dict[str, Any]:
    value = fields.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
