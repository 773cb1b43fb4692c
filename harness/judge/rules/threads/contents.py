"""Rules on the contents of a thread object: its settings and its preview."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.view_queries import (
    RequestsOfAllClients,
    is_ephemeral,
    may_be_same_folder,
    same_folder,
    thread_members,
    was_away,
    was_completed_before,
)
from harness.judge.rules.shared.violations import different, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import earliest
from harness.trace.views import ThreadView, TurnView

# The parameter `sandbox` and the type of the object in the reply ("Enumerations").
_SANDBOX = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


@rule(
    "thread.settings-echo",
    title="The reply to thread/start has the requested settings",
    level=Level.SHOULD,
)
class SettingsEcho(Monitor):
    """Judges the requested model, modelProvider, cwd, approvalPolicy and sandbox in the reply.

    Also, modelProvider and cwd of the reply must equal those of its thread. Derived: the result has
    the names of the params, but the specification does not say that the values are the same:
    SHOULD. The requested sandbox is a word, the returned one an object: its type is compared. Left
    open: settings that were not requested, relative folders, words that are not listed.
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or request.deliberate:
            return
        result = obj(frame.result)
        subject = f"thread {text(dig(result, 'thread', 'id'))}"
        requested = _requested_settings(obj(request.params))
        returned = {**result, "sandbox": dig(result, "sandbox", "type")}
        wrong = [key for key in requested if not _is_same(key, requested[key], returned.get(key))]
        for key in wrong:
            field = member(frame, "sandbox", "type") if key == "sandbox" else member(frame, key)
            also, clauses = (member(request, key),), ("thread-start.echoes",)
            frames = (request, frame)
            yield different(subject, frames, field, requested[key], also=also, clauses=clauses)
        thread = obj(result.get("thread"))
        apart = [key for key in ("modelProvider", "cwd") if result.get(key) != thread.get(key)]
        for key in apart:
            field, also = member(frame, "thread", key), (member(frame, key),)
            clauses = ("thread-start.members-agree",)
            yield different(subject, (frame,), field, result.get(key), also=also, clauses=clauses)
        if requested and not wrong and not apart:
            yield Witness(subject, (request, frame))


def _requested_settings(params: dict[str, Any]) -> dict[str, str]:
    """Return the requested settings, as the reply should name them."""
    settings = {key: text(params.get(key)) for key in ("model", "modelProvider", "approvalPolicy")}
    cwd, sandbox = text(params.get("cwd")), text(params.get("sandbox"))
    settings["cwd"] = cwd if posixpath.isabs(cwd) else ""
    settings["sandbox"] = sandbox if sandbox in _SANDBOX.values() else _SANDBOX.get(sandbox, "")
    return {key: value for key, value in settings.items() if value}


def _is_same(key: str, requested: str, returned: Any) -> bool:
    if key != "cwd" or not isinstance(returned, str):
        return requested == returned
    return same_folder(requested, returned)


@rule("thread.cwd-captured", title="A thread keeps its working directory", level=Level.MUST)
class CwdCaptured(Monitor):
    """Judges that a thread is shown with the cwd that the reply to its thread/start named.

    It is compared in thread/started and in every later answer that shows the thread. Two spellings
    of one path are equal; the requested path, and any with the same last component, may lead there
    through a link: SHOULD. Left open: threads of other clients, threads for which a turn/start of
    any client requested another cwd (the specification does not say whether the thread then shows
    it), a cwd that is not a string (shapes).
    """

    def begin(self) -> None:
        self._turn_starts = RequestsOfAllClients(self.trace, "turn/start")

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        """Judge a thread/started that came before the reply."""
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        if thread is not None and thread.reply is frame:
            for notification in thread.starts:
                yield from self._judge(notification)

    @on_answer("thread/read", "thread/resume", "thread/list", "thread/unarchive", "thread/rollback")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _may_have_moved(self, thread: ThreadView, frame: Frame) -> bool:
        """Return whether a client asked for another cwd for the thread."""
        return any(
            "cwd" in obj(request.params) and obj(request.params).get("threadId") == thread.id
            for request in self._turn_starts.before(frame)
        )

    def _judge(self, frame: Frame) -> Iterator[Outcome]:
        for field in thread_members(frame):
            shown_thread = obj(field.value)
            thread = self.conversation.threads.get(text(shown_thread.get("id")))
            if thread is None or thread.reply is None or self._may_have_moved(thread, frame):
                continue
            captured, now = dig(thread.reply.result, "thread", "cwd"), shown_thread.get("cwd")
            if not isinstance(captured, str) or not isinstance(now, str):
                continue
            frames = (thread.reply, frame)
            if same_folder(captured, now):
                yield Witness(thread.subject, frames)
                continue
            request = self.conversation.request_of(thread.reply)
            requested = text(dig(request.params, "cwd")) if request is not None else ""
            perhaps = may_be_same_folder(captured, now) or same_folder(requested, now)
            captured_field, level = (
                member(thread.reply, "thread", "cwd"),
                Level.SHOULD if perhaps else None,
            )
            cwd = field.part("cwd")
            yield different(
                thread.subject, frames, cwd, captured, also=(captured_field,), level=level
            )


@rule(
    "thread.preview-first-message",
    title="A thread's preview is its first input",
    level=Level.SHOULD,
)
class PreviewFirstMessage(Monitor):
    """Judges the preview of a thread that was requested after the end of its first turn.

    It should be the text of that turn's input, or its beginning; white space and a final ellipsis
    do not count. The specification says "usually": SHOULD. Left open: threads that were not started
    in the trace, were unsubscribed before that turn, or rolled back; ephemeral ones without a
    preview, which need not be stored; first turns of other clients or without a text; a preview
    that is not a string (shapes).
    """

    def begin(self) -> None:
        self._rollbacks = RequestsOfAllClients(self.trace, "thread/rollback")

    @on_answer("thread/read", "thread/list", "thread/resume")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or self._rollbacks.before(frame):
            return
        for field in thread_members(frame):
            thread = obj(field.value)
            view = self.conversation.threads.get(text(thread.get("id")))
            preview = thread.get("preview")
            first = _first_turn(view) if view is not None and view.reply is not None else None
            if view is None or first is None or not isinstance(preview, str):
                continue
            if first.request is not None and was_away(view, first.request):
                continue
            input_text = _input_text(first)
            if not input_text or not was_completed_before(self.trace, first, request):
                continue
            if not preview and (thread.get("ephemeral") is True or is_ephemeral(view)):
                continue
            frames = tuple(f for f in (first.request, frame) if f is not None)
            subject = f"thread {first.thread_id}"
            if _is_beginning(preview, input_text):
                yield Witness(subject, frames)
            else:
                reason = "what the first turn/start said, or its beginning"
                yield different(subject, frames, field.part("preview"), input_text, reason=reason)


def _first_turn(thread: ThreadView) -> TurnView | None:
    """Return the first turn, None if this client did not start it."""
    starts = [
        (turn.request or turn.starts[0], turn)
        for turn in thread.turns.values()
        if turn.request or turn.starts
    ]
    first = earliest(frame for frame, _ in starts)
    turn = next((turn for frame, turn in starts if frame is first), None)
    return turn if turn is not None and turn.request is not None else None


def _input_text(turn: TurnView) -> str:
    """Return the texts of a turn's input, joined by spaces."""
    parts = (
        [obj(part) for part in arr(obj(turn.request.params).get("input"))] if turn.request else []
    )
    return _plain(" ".join(text(part.get("text")) for part in parts if part.get("type") == "text"))


def _is_beginning(preview: str, input_text: str) -> bool:
    cut = _plain(preview).removesuffix("…").removesuffix("...").rstrip()
    return bool(cut) and "".join(input_text.split()).startswith("".join(cut.split()))


def _plain(words: str) -> str:
    return " ".join(words.split())
