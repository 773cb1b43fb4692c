"""Base of rules on accepted requests that must be announced by a notification."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from harness.judge.base import Monitor, Outcome, Outcomes, Witness
from harness.judge.rules.shared.subscriptions import (
    Exchanges,
    followers,
    keeps_following,
    notifications_after,
    thread_of_request,
)
from harness.judge.rules.shared.view_queries import describe_silence, is_failure, request_subject
from harness.judge.rules.shared.violations import Member, absent
from harness.judge.verdict import Level
from harness.trace.frame import Frame


class AnnouncedRequests(Monitor, ABC):
    """Base of rules on accepted requests about a thread that a `notification` must follow.

    The specification does not say which clients get it, so one on any connection is enough.
    Notifications on this connection are judged as they arrive, those on others at the end.
    """

    notification: ClassVar[str]

    def begin(self) -> None:
        """Start without accepted requests."""
        self._accepted: list[tuple[Frame, Frame]] = []

    @abstractmethod
    def is_due(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        """Return whether the request must be announced by a notification.

        Called again as more messages arrive; once it is False, the request is no longer judged.
        """

    def level_of(self, exchanges: Exchanges, request: Frame) -> Level | None:
        """Return the level of a missing notification, None for the level of the rule.

        SHOULD if no connected client follows the thread: a server may notify followers only. INFO
        if all followers unsubscribe at once: the notification may be late.
        """
        thread_id, answer = thread_of_request(request), exchanges.answer_of(request) or request
        heard = followers(exchanges, thread_id, request).connections
        if not heard:
            return Level.SHOULD
        return (
            None
            if any(
                keeps_following(exchanges, connection, thread_id, answer) for connection in heard
            )
            else Level.INFO
        )

    def add_accepted(self, answer: Frame) -> Outcomes:
        """Track the request of an answer and judge up to the answer.

        None if the request was rejected, is unknown, was wrong on purpose, or has no thread id.
        """
        request = self.conversation.request_of(answer)
        if request is None or request.deliberate or is_failure(answer):
            return None
        if not thread_of_request(request):
            return None
        self._accepted.append((request, answer))
        return self.judge_until(answer)

    def judge_until(self, now: Frame) -> Outcomes:
        """Yield a witness for each tracked request whose notification came here by `now`."""
        yield from self._judge(now)

    def finish(self) -> Outcomes:
        """Judge the remaining requests by the notifications on all connections."""
        yield from self._judge(None)

    def _judge(self, now: Frame | None) -> Iterator[Outcome]:
        if not self._accepted:
            return
        exchanges = Exchanges(self.trace, now)
        for request, answer in list(self._accepted):
            if not self.is_due(exchanges, request, answer):
                self._accepted.remove((request, answer))
                continue
            notifications = notifications_after(exchanges, self.notification, request)
            if now is not None:
                notifications = [
                    notification
                    for notification in notifications
                    if notification.connection == now.connection
                ]
            subject, frames = request_subject(request), (request, answer)
            if notifications:
                self._accepted.remove((request, answer))
                yield Witness(subject, (*frames, notifications[0]))
            elif now is None:
                expected = (
                    f"{self.notification} of thread {thread_of_request(request)} to some client"
                )
                level, actual = self.level_of(exchanges, request), describe_silence(self.trace)
                thread_field = Member(request, ("params", "threadId"))
                yield absent(subject, frames, expected, actual, thread_field, level=level)
