"""The events of `agent exec` as a release writes them: ids of threads, and members of the usage."""

from typing import Any

from harness.protocol.dialects.table import Dialect
from reference_server.agent_exec.output import Sink
from reference_server.dialect.ids import to_uuid
from reference_server.dialect.placeholders import filler

USAGE = "ExecUsage"
"""The type of `usage` in rows of members."""


class DialectSink:
    """A sink around another one, which gets the events of a release."""

    def __init__(self, inner: Sink, dialect: Dialect) -> None:
        self._inner = inner
        self._usage = {
            row.name: filler(row.value, {"version": dialect.release})({})
            for row in dialect.members
            if USAGE in row.types
        }

    async def tell(self, events: list[dict[str, Any]]) -> None:
        """Write events, in order. Raises PeerGone if the output cannot be written."""
        await self._inner.tell([self._event(event) for event in events])

    async def finish(self) -> None:
        """Write the end of the output, after the last event. Raises PeerGone."""
        await self._inner.finish()

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        match event:
            case {"type": "thread.started", "thread_id": str(thread)}:
                return {**event, "thread_id": to_uuid(thread)}
            case {"type": "turn.completed", "usage": dict()}:
                return {**event, "usage": {**self._usage, **event["usage"]}}
            case _:
                return event
