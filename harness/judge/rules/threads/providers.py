"""Rule on the model provider that a thread reports."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.view_queries import RequestsOfAllClients, thread_members
from harness.judge.rules.shared.violations import Member, different
from harness.judge.rules.threads.announcements import SHOWING
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

# Requests that may change the provider of a thread, by unlisted params or by a model.
_CHANGING = methods_with("may-change-provider")


@rule("thread.one-provider", title="A thread is shown with one model provider", level=Level.MUST)
class OneProvider(Monitor):
    """Judges that the modelProvider of a thread is the same wherever the thread is shown.

    It is the provider that the thread uses, and no listed request changes it. SHOULD after a
    turn/start, a resume or a compaction of any client: the server may have changed the provider for
    that. Compared without case. Left open: threads that this client did not start or open, and
    providers of forks, which are separate threads.
    """

    once = True

    def begin(self) -> None:
        self._first_providers: dict[str, Member] = {}
        self._changing_requests = RequestsOfAllClients(self.trace, *_CHANGING)

    def _may_have_changed(self, thread_id: str, frame: Frame) -> bool:
        """Return whether a request of any client may have changed the thread's provider."""
        requests = self._changing_requests.before(frame)
        return any(
            text(obj(request.params).get("threadId")) in (thread_id, "") for request in requests
        )

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for thread in thread_members(frame):
            thread_id, name = text(obj(thread.value).get("id")), thread.part("modelProvider")
            if not thread_id or not text(name.value).strip():
                continue
            before = self._first_providers.setdefault(thread_id, name)
            if before.frame is frame:
                continue
            subject, frames = f"thread {thread_id}", (before.frame, frame)
            if text(before.value).casefold() == text(name.value).casefold():
                yield Witness(subject, frames)
                continue
            level = Level.SHOULD if self._may_have_changed(thread_id, frame) else None
            yield different(subject, frames, name, before.value, level=level, also=(before,))
