"""The base of rules on accepted requests of which something must be told."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from harness.judge.base import Monitor, Outcome, Outcomes, Witness
from harness.judge.rules.shared.subscriptions import (
    Exchanges,
    followers,
    stays,
    thread_of_request,
    told_after,
)
from harness.judge.rules.shared.view_queries import failed, never_came, request_subject
from harness.judge.rules.shared.violations import Member, absent
from harness.judge.verdict import Level
from harness.trace.frame import Frame


class TellingRequests(Monitor, ABC):
    """The accepted requests of this client about a thread, of which `told` must be told.

    To whom, the text does not say: one connection of the trace is enough, whatever it follows. What
    came on this connection is judged as it comes, what came on others in the end.
    """

    told: ClassVar[str]

    def begin(self) -> None:
        """Nothing was accepted yet."""
        self._accepted: list[tuple[Frame, Frame]] = []

    @abstractmethod
    def owes(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        """Return whether the request changed what must be told.

        It is asked anew whenever more is known.
        """

    def level_of(self, exchanges: Exchanges, request: Frame) -> Level | None:
        """Return the level of a missing notification, None for the level of the rule.

        SHOULD where no client that is still connected follows the thread: a server may tell
        followers alone. INFO where all of them leave it at once: what is told to them may be late.
        """
        thread_id, answer = thread_of_request(request), exchanges.answer_of(request) or request
        heard = followers(exchanges, thread_id, request).connections
        if not heard:
            return Level.SHOULD
        return (
            None if any(stays(exchanges, one, thread_id, answer) for one in heard) else Level.INFO
        )

    def accepted(self, answer: Frame) -> Outcomes:
        """Take in the answer to a request of the rule's method."""
        request = self.conversation.request_of(answer)
        if request is None or request.deliberate or failed(answer):
            return None
        if not thread_of_request(request):
            return None
        self._accepted.append((request, answer))
        return self.came(answer)

    def came(self, now: Frame) -> Outcomes:
        """Judge what was told on this connection until now."""
        yield from self._judge(now)

    def finish(self) -> Outcomes:
        """Judge what was told on any connection, and what never was."""
        yield from self._judge(None)

    def _judge(self, now: Frame | None) -> Iterator[Outcome]:
        if not self._accepted:
            return
        exchanges = Exchanges(self.trace, now)
        for request, answer in list(self._accepted):
            if not self.owes(exchanges, request, answer):
                self._accepted.remove((request, answer))
                continue
            found = told_after(exchanges, self.told, request)
            if now is not None:
                found = [told for told in found if told.connection == now.connection]
            subject, frames = request_subject(request), (request, answer)
            if found:
                self._accepted.remove((request, answer))
                yield Witness(subject, (*frames, found[0]))
            elif now is None:
                expected = f"{self.told} of thread {thread_of_request(request)} to some client"
                level, came = self.level_of(exchanges, request), never_came(self.trace)
                about = Member(request, ("params", "threadId"))
                yield absent(subject, frames, expected, came, about, level=level)
