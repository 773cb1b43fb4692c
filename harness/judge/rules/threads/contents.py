"""Rules on the contents of a thread object: its settings and its preview."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.view_queries import (
    SentByAnybody,
    completed_before,
    ephemeral,
    perhaps_same_folder,
    same_folder,
    thread_members,
    was_away,
)
from harness.judge.rules.shared.violations import differs, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import earliest
from harness.trace.views import ThreadView, TurnView

# The string parameter `sandbox` and the type of the object that the reply holds ("Enumerations").
_SANDBOX = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


@rule(
    "thread.settings-echo",
    title="The reply to thread/start names what was asked for",
    level=Level.SHOULD,
)
class SettingsEcho(Monitor):
    """Judges model, modelProvider, cwd, approvalPolicy and sandbox of the reply, where asked for.

    And that modelProvider and cwd of the reply are those of the thread in it. Derived: the result
    has the names of the params, and nothing says that they are the same values, so SHOULD. The
    sandbox asked for is a word, the one returned an object: its type is compared. Left open:
    settings that were not asked for, relative folders, words that the text does not list.
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or request.deliberate:
            return
        result = obj(frame.result)
        subject = f"thread {text(dig(result, 'thread', 'id'))}"
        asked = _asked(obj(request.params))
        given = {**result, "sandbox": dig(result, "sandbox", "type")}
        wrong = [key for key in asked if not _same(key, asked[key], given.get(key))]
        for key in wrong:
            where = member(frame, "sandbox", "type") if key == "sandbox" else member(frame, key)
            also, clauses = (member(request, key),), ("thread-start.echoes",)
            frames = (request, frame)
            yield differs(subject, frames, where, asked[key], also=also, clauses=clauses)
        thread = obj(result.get("thread"))
        apart = [key for key in ("modelProvider", "cwd") if result.get(key) != thread.get(key)]
        for key in apart:
            where, also = member(frame, "thread", key), (member(frame, key),)
            clauses = ("thread-start.members-agree",)
            yield differs(subject, (frame,), where, result.get(key), also=also, clauses=clauses)
        if asked and not wrong and not apart:
            yield Witness(subject, (request, frame))


def _asked(params: dict[str, Any]) -> dict[str, str]:
    """Return the requested settings, as the reply should name them."""
    asked = {key: text(params.get(key)) for key in ("model", "modelProvider", "approvalPolicy")}
    cwd, sandbox = text(params.get("cwd")), text(params.get("sandbox"))
    asked["cwd"] = cwd if posixpath.isabs(cwd) else ""
    asked["sandbox"] = sandbox if sandbox in _SANDBOX.values() else _SANDBOX.get(sandbox, "")
    return {key: value for key, value in asked.items() if value}


def _same(key: str, asked: str, given: Any) -> bool:
    if key != "cwd" or not isinstance(given, str):
        return asked == given
    return same_folder(asked, given)


@rule("thread.cwd-captured", title="A thread keeps its working directory", level=Level.MUST)
class CwdCaptured(Monitor):
    """Judges that a thread is shown with the cwd that the reply to its thread/start named.

    In thread/started and in every later answer that shows the thread. One path written in two ways
    is the same; the one that the client asked for, and any whose last name is the same, may lead
    there through a link: SHOULD. Left open: threads of others, threads for which a turn/start of
    any client asked for another cwd (whether the thread then shows it is not said), a cwd that is
    no string (shapes).
    """

    def begin(self) -> None:
        self._turns = SentByAnybody(self.trace, "turn/start")

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        """Judge a thread/started that came before the reply."""
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        if thread is not None and thread.reply is frame:
            for told in thread.started:
                yield from self._judge(told)

    @on_answer("thread/read", "thread/resume", "thread/list", "thread/unarchive", "thread/rollback")
    def answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _moved(self, thread: ThreadView, shown: Frame) -> bool:
        """Return whether a client asked for another cwd for the thread."""
        return any(
            "cwd" in obj(request.params) and obj(request.params).get("threadId") == thread.id
            for request in self._turns.before(shown)
        )

    def _judge(self, frame: Frame) -> Iterator[Outcome]:
        for where in thread_members(frame):
            shown_thread = obj(where.value)
            thread = self.conversation.threads.get(text(shown_thread.get("id")))
            if thread is None or thread.reply is None or self._moved(thread, frame):
                continue
            captured, now = dig(thread.reply.result, "thread", "cwd"), shown_thread.get("cwd")
            if not isinstance(captured, str) or not isinstance(now, str):
                continue
            frames = (thread.reply, frame)
            if same_folder(captured, now):
                yield Witness(thread.subject, frames)
                continue
            request = self.conversation.request_of(thread.reply)
            asked = text(dig(request.params, "cwd")) if request is not None else ""
            perhaps = perhaps_same_folder(captured, now) or same_folder(asked, now)
            kept, level = member(thread.reply, "thread", "cwd"), Level.SHOULD if perhaps else None
            cwd = where.part("cwd")
            yield differs(thread.subject, frames, cwd, captured, also=(kept,), level=level)


@rule(
    "thread.preview-first-message",
    title="A thread's preview is, as a rule, what was said first",
    level=Level.SHOULD,
)
class PreviewFirstMessage(Monitor):
    """Judges the preview of a thread whose first turn had ended before it was asked for.

    It should be the text of that turn's input, whole or its beginning; white space and an ellipsis
    at the end do not count. The text says "usually": SHOULD. Left open: threads that were not
    started within the trace, were left before that turn or were rolled back, ephemeral ones that
    show no preview, of which nothing is kept, first turns of others or without a text, a preview
    that is no string (shapes).
    """

    def begin(self) -> None:
        self._rollbacks = SentByAnybody(self.trace, "thread/rollback")

    @on_answer("thread/read", "thread/list", "thread/resume")
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or self._rollbacks.before(frame):
            return
        for where in thread_members(frame):
            thread = obj(where.value)
            view = self.conversation.threads.get(text(thread.get("id")))
            preview = thread.get("preview")
            first = _first_turn(view) if view is not None and view.reply is not None else None
            if view is None or first is None or not isinstance(preview, str):
                continue
            if first.request is not None and was_away(view, first.request):
                continue
            said = _said(first)
            if not said or not completed_before(self.trace, first, request):
                continue
            if not preview and (thread.get("ephemeral") is True or ephemeral(view)):
                continue
            frames = tuple(f for f in (first.request, frame) if f is not None)
            subject = f"thread {first.thread_id}"
            if _is_beginning(preview, said):
                yield Witness(subject, frames)
            else:
                why = "what the first turn/start said, or its beginning"
                yield differs(subject, frames, where.part("preview"), said, why=why)


def _first_turn(thread: ThreadView) -> TurnView | None:
    """The turn that came first, None where that one was not asked for here."""
    begun = [
        (turn.request or turn.started[0], turn)
        for turn in thread.turns.values()
        if turn.request or turn.started
    ]
    first = earliest(frame for frame, _ in begun)
    turn = next((turn for frame, turn in begun if frame is first), None)
    return turn if turn is not None and turn.request is not None else None


def _said(turn: TurnView) -> str:
    """The texts of the input of a turn, joined."""
    parts = (
        [obj(part) for part in arr(obj(turn.request.params).get("input"))] if turn.request else []
    )
    return _plain(" ".join(text(part.get("text")) for part in parts if part.get("type") == "text"))


def _is_beginning(preview: str, said: str) -> bool:
    cut = _plain(preview).removesuffix("…").removesuffix("...").rstrip()
    return bool(cut) and "".join(said.split()).startswith("".join(cut.split()))


def _plain(words: str) -> str:
    return " ".join(words.split())
