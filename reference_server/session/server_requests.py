"""Requests from the server to its clients, such as approval requests, and their answers.

Here live the ids, which clients are asked, which answer counts, and the notification that the
request is resolved. What an answer means is up to the caller. Source: session-protocol "Server
request" (message forms), "Approval sequence". Not shown there: all subscribers are sent the request
under one id, and the first answer counts; an answer that is late, double, or from a client that was
not asked changes nothing and is logged. A request stays open when the clients that were asked have
left: the turn waits for a subscriber to answer, or to be interrupted. A client that resumes the
thread meanwhile is sent the request too.
"""

import itertools
import logging
from typing import Any

import anyio

from harness.wire.approval import ServerRequestResolvedNotification
from harness.wire.base import Json, WireModel
from reference_server.brief import brief_value
from reference_server.envelope import encode_request
from reference_server.outbox import Outbox
from reference_server.session.subscribers import Subscribers

_log = logging.getLogger(__name__)
Fields = dict[str, Any]


class _OpenRequest:
    """One request without an answer yet."""

    def __init__(self, subscribers: Subscribers, message: bytes) -> None:
        self.subscribers = subscribers
        self.message = message
        self.asked = subscribers.outboxes
        self.answered = anyio.Event()
        self.answer: Fields = {}


class ServerRequests:
    """The open requests of one server; ids count from 0, and none is used twice."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._open: dict[Json, _OpenRequest] = {}

    async def ask(
        self, thread_id: str, subscribers: Subscribers, method: str, params: WireModel
    ) -> Fields:
        """Ask the subscribers of a thread and wait for the first answer, `{id, result | error}`.

        `serverRequest/resolved` is sent before it returns, also when it is cancelled.
        """
        request_id = next(self._ids)
        message = encode_request(request_id, method, params)
        question = self._open[request_id] = _OpenRequest(subscribers, message)
        subscribers.send(message)
        try:
            await question.answered.wait()
            return question.answer
        finally:
            del self._open[request_id]
            subscribers.notify(
                ServerRequestResolvedNotification(thread_id=thread_id, request_id=request_id)
            )

    def ask_too(self, subscribers: Subscribers, newcomer: Outbox) -> None:
        """Send a new subscriber of a thread the open requests that it was not sent before."""
        for question in self._open.values():
            if question.subscribers is subscribers and newcomer not in question.asked:
                question.asked.append(newcomer)
                newcomer.put(question.message)

    def take_answer(self, request_id: Json, answer: Fields, sender: Outbox) -> None:
        """Take what a client answered."""
        question = self._open.get(request_id)
        if question is None:
            _log.warning(
                "an answer to the request %s, which is not open (any more)", brief_value(request_id)
            )
        elif not question.subscribers.has(sender):
            _log.warning("an answer to %s by a client that was not asked", brief_value(request_id))
        elif question.answered.is_set():
            _log.warning("a second answer to %s", brief_value(request_id))
        else:
            question.answer = answer
            question.answered.set()
