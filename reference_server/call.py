"""A request in progress and its one response; the router chooses the handler."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.rpc import ErrorCode
from reference_server.connection import Connection
from reference_server.envelope import IncomingRequest, encode_error, encode_result

if TYPE_CHECKING:
    # Only for its type: the handshake is answered before the services are imported.
    from reference_server.services import Services


class Call:
    """One request being handled."""

    def __init__(
        self,
        connection: Connection,
        request: IncomingRequest,
        services: "Callable[[], Services]",
    ) -> None:
        self.connection = connection
        self.method = request.method
        self.answered = False
        self._id = request.id
        self._services = services

    @property
    def services(self) -> "Services":
        """The threads and turns of the server, which all connections share."""
        return self._services()

    def answer(self, result: WireModel) -> None:
        """Queue the response; later messages come after it. Raises RuntimeError the second time."""
        self._put(encode_result(self._id, result))

    def refuse(self, code: ErrorCode, message: str) -> None:
        """Queue an error response; handlers raise `Refusal` instead of calling this."""
        self._put(encode_error(self._id, code, message))

    def _put(self, message: bytes) -> None:
        if self.answered:
            raise RuntimeError(f"{self.method} was answered twice")
        self.answered = True
        self.connection.outbox.put_answer(message)
