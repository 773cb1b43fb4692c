"""`model/rerouted`: another model answers than the one that was asked.

Source: session-protocol "Events" ("the backend reroutes to another model"). The type of the reason
is not shown there; a provider's answer names the model but no reason, so all have the same one.
"""

from harness.protocol.wire.turn import ModelReroutedNotification
from reference_server.session.thread import LoadedThread

REASON = "providerChoice"


class Reroutes:
    """The reroutes of one turn; each is sent once, not again with every call."""

    def __init__(self, thread: LoadedThread, turn_id: str) -> None:
        self._thread = thread
        self._turn_id = turn_id
        self._reported = ""

    def note(self, answering: str) -> None:
        """Take the name of the model that answers a call."""
        requested = self._thread.settings.model
        if answering == requested:
            self._reported = ""
        elif answering != self._reported:
            self._reported = answering
            self._thread.subscribers.notify(
                ModelReroutedNotification(
                    thread_id=self._thread.id,
                    turn_id=self._turn_id,
                    from_model=requested,
                    to_model=answering,
                    reason=REASON,
                )
            )
