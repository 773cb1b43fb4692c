"""The connections of a trace: their names in a scenario, and the steps that open and end them."""

from collections.abc import Callable
from typing import Any

from harness.scenario.client_steps import MAIN
from harness.scenario.from_trace.given import Given
from harness.scenario.from_trace.told_items import Workshop

Step = dict[str, Any]


class Lines:
    """The names of connections. `add` writes a step down."""

    def __init__(self, given: Given, shop: Workshop, add: Callable[[Step], object]) -> None:
        self._given = given
        self._shop = shop
        self._add = add
        self._names: dict[str, str] = {}
        self._gone: set[str] = set()
        self._restarts = False

    def __contains__(self, connection: str) -> bool:
        return connection in self._names

    def is_gone(self, connection: str) -> bool:
        """Return whether the client ended a connection."""
        return connection in self._gone

    def on(self, connection: str) -> Step:
        """The `on` of a step; a further connection is opened by its first message."""
        if connection not in self._names:
            self._open(connection)
        return self.told(connection)

    def told(self, connection: str) -> Step:
        """The `on` of a step on a connection that was opened before, or on the first."""
        name = self._names.get(connection, MAIN)
        return {} if name == MAIN else {"on": name}

    def first(self, connection: str) -> None:
        """Give the first connection what is told before anything was said."""
        if not self._names:
            self._names[connection] = MAIN

    def server_ended(self) -> None:
        """Whoever speaks next speaks with another process."""
        self._restarts = True

    def end(self, connection: str) -> bool:
        """Note that the client ended a connection; gives whether it was open."""
        if connection not in self._names or connection in self._gone:
            return False
        self._gone.add(connection)
        return True

    def disconnect(self, connection: str) -> None:
        """Write down that the client ended a connection."""
        name = self._names[connection]
        self._add({"disconnect": True if name == MAIN else name})

    def _open(self, connection: str) -> None:
        if self._given.exact:
            self._names[connection] = self._given.connection
            return
        # A server whose only client has left ends, unless it listens for others.
        left = bool(self._names) and self._gone.issuperset(self._names)
        if not self._names or self._restarts or left:
            if self._restarts or left:
                self._add({"restart": True})
                self._restarts = False
            self._names[connection] = MAIN
            return
        self._names[connection] = connection
        self._shop.needs["several-clients"] = None
        self._add({"connect": connection})
