"""The connections of a trace: their names in a scenario, and the steps that open and end them."""

from collections.abc import Callable
from typing import Any

from harness.scenario.client_steps import MAIN_CONNECTION
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.setup import TraceHead

Step = dict[str, Any]


class ConnectionNames:
    """The scenario's names of a trace's connections; `add` appends a step."""

    def __init__(
        self, head: TraceHead, conversion: Conversion, add: Callable[[Step], object]
    ) -> None:
        self._head = head
        self._conversion = conversion
        self._add = add
        self._names: dict[str, str] = {}
        self._closed: set[str] = set()
        self._needs_restart = False

    def __contains__(self, connection: str) -> bool:
        return connection in self._names

    def is_closed(self, connection: str) -> bool:
        """Return whether the client ended a connection."""
        return connection in self._closed

    def on_of(self, connection: str) -> Step:
        """Return the `on` member of a step; add the step that opens the connection if it is new."""
        if connection not in self._names:
            self._open(connection)
        return self.on_of_open(connection)

    def on_of_open(self, connection: str) -> Step:
        """Return the `on` member of a step; {} for the first connection and unknown ones."""
        name = self._names.get(connection, MAIN_CONNECTION)
        return {} if name == MAIN_CONNECTION else {"on": name}

    def name_first(self, connection: str) -> None:
        """Name the first connection, on which the server may be the first to send."""
        if not self._names:
            self._names[connection] = MAIN_CONNECTION

    def note_server_end(self) -> None:
        """Note that the server ended: the next connection needs a restart."""
        self._needs_restart = True

    def is_open(self, connection: str) -> bool:
        """Return whether the client opened a connection and has not ended it."""
        return connection in self._names and connection not in self._closed

    def note_end(self, connection: str) -> None:
        """Note that the client ended a connection."""
        self._closed.add(connection)

    def add_disconnect(self, connection: str) -> None:
        """Add the step by which the client ends a connection."""
        name = self._names[connection]
        self._add({"disconnect": True if name == MAIN_CONNECTION else name})

    def _open(self, connection: str) -> None:
        if self._head.has_steps:
            self._names[connection] = self._head.connection
            return
        # A server ends with its only client, unless it listens for others.
        all_gone = bool(self._names) and self._closed.issuperset(self._names)
        if not self._names or self._needs_restart or all_gone:
            if self._needs_restart or all_gone:
                self._add({"restart": True})
                self._needs_restart = False
            self._names[connection] = MAIN_CONNECTION
            return
        self._names[connection] = connection
        self._conversion.needs["several-clients"] = None
        self._add({"connect": connection})
