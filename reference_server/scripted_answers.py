"""Answers of a scenario to requests of its client, in place of this server's own."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import anyio

from reference_server.connection import Connection
from reference_server.envelope import IncomingRequest, encode_message
from reference_server.refusal import HIDDEN_METHOD


class ScriptedAnswer(Protocol):
    """One answer; with `is_held` the request gets none."""

    @property
    def delay_seconds(self) -> float:
        """Seconds before the answer."""
        ...

    @property
    def is_held(self) -> bool:
        """Return whether the request stays without an answer."""
        ...

    @property
    def body(self) -> Mapping[str, Any]:
        """The members of the answer beside its id."""
        ...

    @property
    def notifications_after(self) -> Sequence[Mapping[str, Any]]:
        """The notifications after the answer, as messages."""
        ...


class ScriptedAnswers:
    """The answers by method: each of several in turn, then the last one again and again."""

    def __init__(self, answers: Mapping[str, Sequence[ScriptedAnswer]]) -> None:
        self._remaining = {method: list(given) for method, given in answers.items()}

    def take(self, method: str) -> ScriptedAnswer | None:
        """Return the answer to a request of this method, None if the server answers itself."""
        given = self._remaining.get(method.removeprefix(HIDDEN_METHOD))
        if not given:
            return None
        return given.pop(0) if len(given) > 1 else given[0]


NO_ANSWERS = ScriptedAnswers({})


async def send_answer(
    connection: Connection, request: IncomingRequest, answer: ScriptedAnswer
) -> None:
    """Send the answer after its delay, then the notifications behind it."""
    if answer.delay_seconds:
        # The delay that the scenario names is the one wait here that depends on time.
        with anyio.move_on_after(answer.delay_seconds):
            await anyio.sleep_forever()
    connection.outbox.put_answer(encode_message({"id": request.id, **answer.body}))
    for notification in answer.notifications_after:
        connection.outbox.put(encode_message(notification))
