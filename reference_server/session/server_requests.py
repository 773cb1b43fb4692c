"""Requests from the server to its clients, such as approval requests, and their answers.

The caller interprets the answers. Source: session-protocol "Server request" (message forms),
"Approval sequence". Not shown there: all subscribers are sent the request with one id, and the
first answer counts; an answer that is late, a second one, or from a client that is not subscribed
changes nothing and is logged. A request stays open when its recipients have left: the turn waits
for an answer or its interrupt. A client that resumes the thread meanwhile gets the request too.
"""

import itertools
import logging
from typing import Any, cast

import anyio

from harness.protocol.wire.base import Json, WireModel
from harness.protocol.wire.rpc import ErrorCode
from reference_server.brief import brief_value
from reference_server.envelope import encode_request
from reference_server.outbox import Outbox
from reference_server.session.subscribers import Subscribers

_log = logging.getLogger(__name__)
Fields = dict[str, Any]


class _OpenRequest:
    """A server request that waits for its answer."""

    def __init__(self, subscribers: Subscribers, message: bytes, *, may_pass: bool) -> None:
        self.subscribers = subscribers
        self.message = message
        self.may_pass = may_pass
        self.recipients = subscribers.outboxes
        self.declined_by: list[Outbox] = []
        self.answered = anyio.Event()
        self.answer: Fields = {}

    def passes(self, answer: Fields, sender: Outbox) -> bool:
        """Record a "method not found" response; return whether another recipient may still answer.

        False for any other answer, and without `may_pass`.
        """
        error: Any = answer.get("error")
        if not self.may_pass or not isinstance(error, dict):
            return False
        if cast("Fields", error).get("code") != ErrorCode.METHOD_NOT_FOUND:
            return False
        self.declined_by.append(sender)
        return any(
            self.subscribers.has(one) for one in self.recipients if one not in self.declined_by
        )


class ServerRequests:
    """The open requests of one server; ids count from 0, and none is used twice."""

    def __init__(self) -> None:
        self._ids = itertools.count()
        self._open: dict[Json, _OpenRequest] = {}

    async def ask(
        self,
        thread_id: str,
        subscribers: Subscribers,
        method: str,
        params: WireModel,
        *,
        may_pass: bool = False,
    ) -> Fields:
        """Send the subscribers of a thread a request and return the first answer to come.

        The answer is `{id, result | error}`. With `may_pass` a "method not found" error counts only
        from the last recipient. `serverRequest/resolved` is sent at the end, also if cancelled.
        """
        # Imported late: most sessions send no request.
        from harness.protocol.wire.approval import ServerRequestResolvedNotification

        request_id = next(self._ids)
        message = encode_request(request_id, method, params)
        open_request = self._open[request_id] = _OpenRequest(
            subscribers, message, may_pass=may_pass
        )
        subscribers.send(message)
        try:
            await open_request.answered.wait()
            return open_request.answer
        finally:
            del self._open[request_id]
            subscribers.notify(
                ServerRequestResolvedNotification(thread_id=thread_id, request_id=request_id)
            )

    def send_open_requests(self, subscribers: Subscribers, newcomer: Outbox) -> None:
        """Send a client that has subscribed, also for a second time, the thread's open requests."""
        for question in self._open.values():
            if question.subscribers is subscribers:
                question.recipients.append(newcomer)
                newcomer.put(question.message)

    def take_answer(self, request_id: Json, answer: Fields, sender: Outbox) -> None:
        """Take a client's answer; log one that changes nothing."""
        question = self._open.get(request_id)
        if question is None:
            _log.warning(
                "an answer to the request %s, which is not open (any more)", brief_value(request_id)
            )
        elif not question.subscribers.has(sender):
            _log.warning("an answer to %s by a client that was not asked", brief_value(request_id))
        elif question.answered.is_set():
            _log.warning("a second answer to %s", brief_value(request_id))
        elif not question.passes(answer, sender):
            question.answer = answer
            question.answered.set()
