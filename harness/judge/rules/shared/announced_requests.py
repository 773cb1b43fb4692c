"""Base of rules on accepted requests that must be announced by a notification."""

from abc import ABC, abstractmethod
from collections import Counter
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
from harness.trace.order import came_before


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
            notifications = self._announcements(exchanges, request, answer)
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

    def _announcements(self, exchanges: Exchanges, request: Frame, answer: Frame) -> list[Frame]:
        """Return the notifications that may announce a request.

        They came before the next such request about the thread. Any later one counts if a client
        got one for each of these requests, since they may be late.
        """
        notifications = notifications_after(exchanges, self.notification, request)
        later = [
            other
            for other, other_answer in self._later_requests(exchanges, request, answer)
            if self.is_due(exchanges, other, other_answer)
        ]
        if not later:
            return notifications
        in_time = [frame for frame in notifications if came_before(frame, later[0])]
        numbers = Counter(frame.connection for frame in notifications)
        are_late = max(numbers.values(), default=0) > len(later)
        return in_time or (notifications if are_late else [])

    def _later_requests(
        self, exchanges: Exchanges, request: Frame, answer: Frame
    ) -> Iterator[tuple[Frame, Frame]]:
        """Yield the accepted requests of the same kind about the thread after an answer."""
        for other in exchanges.requests(request.method or ""):
            other_answer = exchanges.answer_of(other)
            if (
                came_before(answer, other)
                and thread_of_request(other) == thread_of_request(request)
                and other_answer is not None
                and not is_failure(other_answer)
            ):
                yield other, other_answer
