"""The state of a conversion of the client's messages to steps."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ConversionState:
    """State while the client's messages are turned into steps, one after the other."""

    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    setup: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    in_setup: bool = False
    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    ended_turns: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unanswered_requests: dict[str, int] = field(default_factory=dict[str, int])
    last_seq: int = -1
    open_gate: str = ""
