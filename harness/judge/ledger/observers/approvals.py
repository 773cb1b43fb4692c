"""Open points of approvals: what is asked, remembered, and lost."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import listen, on, on_answer, on_kind, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, ServerEnded
from harness.trace.trace import Mark

_COMMAND: Final = "item/commandExecution/requestApproval"
_FILES: Final = "item/fileChange/requestApproval"
_LASTING: Final = (
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "applyNetworkPolicyAmendment",
)
_WORDS: Final = ("accept", "decline", "cancel", *_LASTING)
_KINDS: Final = {"commandExecution": "a command", "fileChange": "a file change"}


def words_of(command: Any) -> str:
    """A command as the model gave it: without the shell that carries it out."""
    parts = [text(one) for one in arr(command)]
    if isinstance(command, str):
        try:
            parts = shlex.split(command)
        except ValueError:
            return command
    if len(parts) == 3 and re.fullmatch(r"-\w*c", parts[1]):
        return parts[2]
    return " ".join(parts)


@dataclass(slots=True)
class _Question:
    """An approval request, and what became of it."""

    frame: Frame
    item: str
    turn: str
    answer: str = ""
    resolved: bool = False


class _Policies:
    """The approval policies in force in threads, by what was granted."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def granted(self, asked: Frame, answer: Frame) -> None:
        """Take a granted request in."""
        params = obj(asked.params)
        thread = text(params.get("threadId")) or text(dig(answer.result, "thread", "id"))
        policy = params.get("approvalPolicy")
        shown = dig(answer.result, "approvalPolicy")
        if isinstance(shown, str) and asked.method != "turn/start":
            self._of[thread] = shown
        elif isinstance(policy, str):
            self._of[thread] = policy

    def of(self, frame: Frame) -> str:
        """That of the thread that a message names."""
        return self._of.get(text(obj(frame.params).get("threadId")), "")


@observes(
    "approval-policy.trusted-commands",
    "approval-policy.on-failure-flow",
    "approval-policy.reject-flow",
    "approval-policy.never-blocked",
)
class Asked(Observer):
    """Questions asked under each policy."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._policies = _Policies()
        self._asked: dict[tuple[str, str], bool] = {}
        self._allowed: set[str] = set()

    @on_answer("thread/start", "thread/resume", "turn/start")
    def granted(self, frame: Frame) -> None:
        """A policy is in force."""
        asked = self.scene.asked(frame)
        if asked is not None and frame.kind is Kind.RESPONSE:
            self._policies.granted(asked, frame)

    @on(_COMMAND, _FILES)
    def question(self, frame: Frame) -> Iterator[Choice]:
        """Something is asked."""
        params = obj(frame.params)
        item = self.scene.conversation.item_of(frame)
        self._asked[text(params.get("turnId")), text(params.get("itemId"))] = True
        what = "a command" if frame.method == _COMMAND else "a file change"
        if self._policies.of(frame) == "on-failure":
            state = "while its item is in progress"
            if item is None or not item.started:
                state = "before its item has begun"
            elif not item.is_open:
                state = "after its item was completed"
            yield Choice("approval-policy.on-failure-flow", f"asked {state}", frame, what)

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note a command that is allowed for good: it tells nothing more of what is trusted."""
        question = self.scene.asked(frame) if frame.kind is Kind.RESPONSE else None
        if question is not None and dig(frame.result, "decision") in _LASTING:
            self._allowed.add(words_of(obj(question.params).get("command")).strip())

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """A command or a file change is over."""
        item = obj(dig(frame.params, "item"))
        kind = text(item.get("type"))
        if kind not in _KINDS:
            return
        status, policy = word(item.get("status")), self._policies.of(frame)
        key = text(obj(frame.params).get("turnId")), text(item.get("id"))
        if policy == "untrusted" and kind == "commandExecution":
            command = words_of(item.get("command")).strip()
            if command and command not in self._allowed:
                said = "asked about" if self._asked.get(key) else "not asked about"
                program = word(re.split(r"[\s;&|>]+", command)[0])
                yield Choice("approval-policy.trusted-commands", said, frame, program)
        elif policy == "reject":
            yield Choice(
                "approval-policy.reject-flow", f"its item is {status}", frame, _KINDS[kind]
            )
        elif policy == "never" and self._is_outside:
            yield Choice(
                "approval-policy.never-blocked", f"its item is {status}", frame, _KINDS[kind]
            )

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """A turn under never, or reject, that shows no item of what the model wanted."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or any(one.type in _KINDS for one in turn.items.values()):
            return
        policy = self._policies.of(frame)
        if policy == "never" and self._is_outside:
            yield Choice("approval-policy.never-blocked", "no item is shown", frame)
        elif policy == "reject" and "reject" in self.scene.scenario:
            yield Choice("approval-policy.reject-flow", "no item is shown", frame)

    @property
    def _is_outside(self) -> bool:
        """Return whether the scenario is about what the sandbox does not allow.

        No message says so.
        """
        return self.scene.scenario in (
            "approvals/never-in-the-sandbox",
            "approvals/never-file-change-outside",
            "approvals/never-more-rights",
        )


@observes(
    "approval.unknown-decision",
    "approval.file-decisions",
    "approval.interrupted",
    "approval.same-operation",
    "approval.scope-of-session",
    "approval.amendment-content",
)
class Answered(Observer):
    """Effects of an answer, and of what it allows later."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._questions: dict[tuple[str, str], _Question] = {}
        self._allowed: dict[str, tuple[str, str, str]] = {}
        self._reloaded: set[str] = set()
        self._restarted = False

    @on(_COMMAND, _FILES)
    def question(self, frame: Frame) -> Iterator[Choice]:
        """Something is asked."""
        params = obj(frame.params)
        item, turn = text(params.get("itemId")), text(params.get("turnId"))
        self._questions[turn, item] = _Question(frame, item, turn)
        yield from self._again(frame, words_of(params.get("command")), "asked about again")

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """An answer of the client."""
        if frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return
        question = self.scene.asked(frame)
        if question is None or question.method not in (_COMMAND, _FILES):
            return
        params = obj(question.params)
        known = self._questions.get((text(params.get("turnId")), text(params.get("itemId"))))
        if known is None or known.answer:
            return
        decision = dig(frame.result, "decision")
        known.answer = text(decision) if frame.kind is Kind.RESPONSE else "an error"
        command = words_of(params.get("command"))
        if known.answer in _LASTING and command:
            thread, cwd = text(params.get("threadId")), text(params.get("cwd"))
            self._allowed[command] = known.answer, thread, cwd

    @on("serverRequest/resolved")
    def on_server_request_resolved(self, frame: Frame) -> None:
        """A question is settled."""
        request = obj(frame.params).get("requestId")
        for question in self._questions.values():
            if question.frame.id == request:
                question.resolved = True

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """A command or file change is over."""
        item = obj(dig(frame.params, "item"))
        key = text(obj(frame.params).get("turnId")), text(item.get("id"))
        question = self._questions.get(key)
        status = word(item.get("status"))
        if question is not None:
            what = "a command" if question.frame.method == _COMMAND else "a file change"
            if question.answer == "an error":
                yield Choice(
                    "approval.unknown-decision", f"its item is {status}", frame, "an error"
                )
            elif question.answer and question.answer not in _WORDS:
                about = f"another word, {what}"
                yield Choice("approval.unknown-decision", f"its item is {status}", frame, about)
            elif what == "a file change" and question.answer in ("acceptForSession", "cancel"):
                yield Choice(
                    "approval.file-decisions", f"its item is {status}", frame, question.answer
                )
        elif item.get("type") == "commandExecution":
            yield from self._again(frame, words_of(item.get("command")), "not asked about")

    def _again(self, frame: Frame, command: str, said: str) -> Iterator[Choice]:
        """Return whether what was allowed to last is asked about another time."""
        allowed = self._allowed.get(command)
        if allowed is None:
            return
        decision, thread, _ = allowed
        here = text(obj(frame.params).get("threadId"))
        if decision != "acceptForSession":
            where = "after a restart" if self._restarted else "the same words"
            yield Choice("approval.amendment-content", said, frame, f"{decision}, {where}")
        elif self._restarted:
            yield Choice("approval.scope-of-session", said, frame, "after a restart")
        elif here in self._reloaded:
            yield Choice("approval.scope-of-session", said, frame, "loaded again")
        elif here != thread:
            yield Choice("approval.scope-of-session", said, frame, "in another thread")
        else:
            yield Choice("approval.same-operation", said, frame, "the same words")

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """A turn is over: what of its open questions?"""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or turn.status != "interrupted" or not turn.interrupts:
            return
        for (of, item), question in self._questions.items():
            if of != turn.id or question.answer or question.frame.connection != frame.connection:
                continue
            told = "serverRequest/resolved before the turn ends"
            if not question.resolved:
                told = "no serverRequest/resolved before the turn ends"
            view = turn.items.get(item)
            status = "not completed"
            if view is not None and view.completed:
                status = word(dig(view.completed[-1].params, "item", "status"))
            yield Choice("approval.interrupted", told, frame, "the question")
            yield Choice("approval.interrupted", status, frame, "the item")

    @on("thread/closed")
    def on_thread_closed(self, frame: Frame) -> None:
        """A thread is not loaded any more."""
        self._reloaded.add(text(obj(frame.params).get("threadId")))

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """Another process answers from here on."""
        self._restarted = True


@observes("approval.several-clients", "approval.lost-client", "subscription.open-questions")
class Several(Observer):
    """Recipients of a question if several clients have, or had, a thread."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._asked: dict[tuple[str, str], dict[str, Frame]] = {}
        self._lost: set[tuple[str, str]] = set()
        self._joined: dict[str, set[str]] = {}

    @on_sent("thread/resume")
    def on_thread_resume_sent(self, frame: Frame) -> None:
        """A client that comes while something is asked."""
        self._joined.setdefault(frame.connection, set()).add(
            text(obj(frame.params).get("threadId"))
        )

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Iterator[Choice]:
        """A question on one connection: was it put to another before?"""
        params = obj(frame.params)
        item = text(params.get("itemId"))
        if not item:
            return
        key = text(params.get("turnId")), item
        before = self._asked.setdefault(key, {})
        others = [one for name, one in before.items() if name != frame.connection]
        if others:
            same = "the same id" if others[0].id == frame.id else "another id"
            if key in self._lost:
                yield Choice("approval.lost-client", f"asked again, {same}", frame)
            elif self._came_later(frame, others[0]):
                yield Choice("subscription.open-questions", f"asked again, {same}", frame)
            else:
                yield Choice("approval.several-clients", f"all, with {same}", frame)
        before.setdefault(frame.connection, frame)

    def _came_later(self, frame: Frame, first: Frame) -> bool:
        view = self.scene.conversation.thread(text(obj(frame.params).get("threadId")))
        return any(one.seq > first.seq for one in view.resumed)

    @listen(("mark", Closed.kind))
    def on_closed(self, mark: Mark[Closed]) -> None:
        """A client leaves: what only it was asked is lost with it."""
        still = self.scene.facts.open_connections - {mark.body.connection}
        for key, asked in self._asked.items():
            answered = any(
                self.scene.views[name].answer_of(frame) is not None for name, frame in asked.items()
            )
            if not answered and not still & asked.keys():
                self._lost.add(key)
