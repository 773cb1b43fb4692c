"""The rule on the model provider that a thread reports."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.view_queries import SentByAnybody, thread_members
from harness.judge.rules.shared.violations import Member, differs
from harness.judge.rules.threads.announcements import SHOWING
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

# What may give a thread another provider, by the params that the text does not list or by a model.
_CHANGING = methods_with("may-change-provider")


@rule("thread.one-provider", title="A thread is shown with one model provider", level=Level.MUST)
class OneProvider(Monitor):
    """Judges that the modelProvider of a thread is the same wherever the thread is shown.

    It is the provider that the thread uses, and nothing listed changes it. After a turn/start, a
    resume or a compaction of any client it is SHOULD: the server may have gone to another provider
    for that. Upper and lower case are not told apart. Left open: what is shown to a client that did
    not start or open the thread, and providers of forks, which are threads of their own.
    """

    once = True

    def begin(self) -> None:
        self._named: dict[str, Member] = {}
        self._changing = SentByAnybody(self.trace, *_CHANGING)

    def _may_have_changed(self, thread_id: str, shown: Frame) -> bool:
        """Return whether a client asked for what may give the thread, or any, another provider."""
        asked = self._changing.before(shown)
        return any(text(obj(one.params).get("threadId")) in (thread_id, "") for one in asked)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._shown(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._shown(frame)

    def _shown(self, frame: Frame) -> Outcomes:
        for thread in thread_members(frame):
            thread_id, name = text(obj(thread.value).get("id")), thread.part("modelProvider")
            if not thread_id or not text(name.value).strip():
                continue
            before = self._named.setdefault(thread_id, name)
            if before.frame is frame:
                continue
            subject, frames = f"thread {thread_id}", (before.frame, frame)
            if text(before.value).casefold() == text(name.value).casefold():
                yield Witness(subject, frames)
                continue
            level = Level.SHOULD if self._may_have_changed(thread_id, frame) else None
            yield differs(subject, frames, name, before.value, level=level, also=(before,))
