"""Token counts: the provider's words to the protocol's.

Here lives the reading of `usage` of response.completed. The payload of thread/tokenUsage/updated is
not shown in the document; its shape is the shipping server's.
"""

from typing import Any, cast

from harness.wire.thread import TokenCounts


def token_counts(usage: dict[str, Any]) -> TokenCounts | None:
    """Read the counts of one call; None when the provider reported none."""
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
    return value if isinstance(value, int) else 0


def _details(fields: dict[str, Any], key: str) -> dict[str, Any]:
    value = fields.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
