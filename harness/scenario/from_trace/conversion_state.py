"""State while a client's messages are converted to steps."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ConversionState:
    """Steps made so far, aliases of threads and turns, and waits not yet written.

    `threads` and `turns` map ids to aliases; `unanswered_requests` maps an alias to the seq of its
    later answer; `open_gate` is "" if no gate is held.
    """

    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    setup: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    in_setup: bool = False
    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    ended_turns: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unanswered_requests: dict[str, int] = field(default_factory=dict[str, int])
    last_seq: int = -1
    open_gate: str = ""
