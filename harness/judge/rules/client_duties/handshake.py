"""Rule on the handshake of a client, which is not specified: recorded, never failed."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import replace

from harness.judge.base import (
    Monitor,
    Outcomes,
    Side,
    Witness,
    on_answer,
    on_harness_message,
    on_mark,
    rule,
)
from harness.judge.rules.shared.violations import root_member, unexpected_member
from harness.judge.verdict import Level
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ClientLeft
from harness.trace.trace import Mark

_FIRST = "initialize before anything else on this connection"


@rule(
    "duty.handshake-first",
    title="A client begins with the handshake, once",
    level=Level.INFO,
    side=Side.CLIENT,
)
class HandshakeFirst(Monitor):
    """Records a connection that does not begin with initialize and then initialized.

    That is a message before initialize, a client that left without any, a second initialize, a
    message in place of initialized after the answer to initialize, and an initialized that was sent
    as a request and refused, where the others have a notification. The specification does not name
    the handshake; servers that have it reject earlier messages, and may ignore what is missing
    afterwards. Left open: whether the client waits for the answer, a server that refuses
    initialize, and the harness's own client, which may go on with a connection.
    """

    def begin(self) -> None:
        self._first: Frame | None = None
        self._initialize: Frame | None = None
        self._has_sent_initialized = False
        self._awaits_initialized = False

    @on_answer("initialize")
    def on_initialize_answer(self, frame: Frame) -> Outcomes:
        is_accepted = frame.kind is Kind.RESPONSE
        self._awaits_initialized = is_accepted and not self._has_sent_initialized
        return None

    @on_answer("initialized")
    def on_initialized_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.ERROR or request is None or request.deliberate:
            return None
        subject, field = f"connection {frame.connection}", root_member(request, "id")
        expected = "no id: initialized is a notification"
        return [unexpected_member(subject, (request, frame), field, expected)]

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        first = self._first
        self._first = first or frame
        if frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        self._has_sent_initialized |= frame.method == "initialized"
        awaits_initialized, self._awaits_initialized = self._awaits_initialized, False
        if frame.method == "initialize" and frame.kind is Kind.REQUEST:
            return None if frame.deliberate else self._judge_initialize(first, frame)
        if frame.deliberate or frame.method == "initialized" or not awaits_initialized:
            return None
        subject, field = f"connection {frame.connection}", root_member(frame, "method")
        expected = "initialized after the answer to initialize"
        return [unexpected_member(subject, (frame,), field, expected)]

    def _judge_initialize(self, first: Frame | None, frame: Frame) -> Outcomes:
        subject, earlier = f"connection {frame.connection}", self._initialize
        self._initialize = frame
        if earlier is not None:
            field, expected = root_member(frame, "method"), "one initialize on a connection"
            return [unexpected_member(subject, (earlier, frame), field, expected)]
        if first is not None:
            return [
                unexpected_member(subject, (first, frame), root_member(first, "method"), _FIRST)
            ]
        return [Witness(subject, (frame,))]

    @on_mark(ClientLeft)
    def on_client_left(self, mark: Mark[ClientLeft]) -> Outcomes:
        first = self._first
        if first is None or first.connection != mark.body.connection or self._initialize:
            return None
        violation = unexpected_member(
            f"connection {first.connection}", (first,), root_member(first, "method"), _FIRST
        )
        return [replace(violation, actual=f"no initialize came; {root_member(first, 'method')}")]
