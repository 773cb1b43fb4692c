"""Choices about approvals: requests, remembered decisions, lost clients."""

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
from harness.trace.marks import ClientLeft, Closed, ServerEnded
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


def command_words(command: Any) -> str:
    """Return a command as one text, without a shell such as `bash -lc` that runs it."""
    parts = [text(part) for part in arr(command)]
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
    """An approval request, its answer, and whether it was resolved."""

    frame: Frame
    item: str
    turn: str
    answer: str = ""
    resolved: bool = False


class _Policies:
    """The approval policies in force in threads, as granted requests set them."""

    def __init__(self) -> None:
        self._by_thread: dict[str, str] = {}

    def note_answer(self, request: Frame, answer: Frame) -> None:
        """Store the policy that a granted request sets, or that its answer shows."""
        params = obj(request.params)
        thread = text(params.get("threadId")) or text(dig(answer.result, "thread", "id"))
        policy = params.get("approvalPolicy")
        shown_policy = dig(answer.result, "approvalPolicy")
        if isinstance(shown_policy, str) and request.method != "turn/start":
            self._by_thread[thread] = shown_policy
        elif isinstance(policy, str):
            self._by_thread[thread] = policy

    def of(self, frame: Frame) -> str:
        """Return the policy of the thread that a message names, "" if unknown."""
        return self._by_thread.get(text(obj(frame.params).get("threadId")), "")


@observes(
    "approval-policy.trusted-commands",
    "approval-policy.on-failure-flow",
    "approval-policy.reject-flow",
    "approval-policy.never-blocked",
)
class Asked(Observer):
    """Operations that need an approval under each policy."""

    def begin(self) -> None:
        """Set up the state."""
        self._policies = _Policies()
        self._asked: dict[tuple[str, str], bool] = {}
        self._allowed: set[str] = set()

    @on_answer("thread/start", "thread/resume", "turn/start")
    def on_policy_answer(self, frame: Frame) -> None:
        """Note the approval policy that is in force from now on."""
        request = self.scene.request_of(frame)
        if request is not None and frame.kind is Kind.RESPONSE:
            self._policies.note_answer(request, frame)

    @on(_COMMAND, _FILES)
    def on_approval_request(self, frame: Frame) -> Iterator[Choice]:
        """Note the request; under on-failure, yield its time relative to its item."""
        params = obj(frame.params)
        item = self.scene.conversation.item_of(frame)
        self._asked[text(params.get("turnId")), text(params.get("itemId"))] = True
        operation = "a command" if frame.method == _COMMAND else "a file change"
        if self._policies.of(frame) == "on-failure":
            state = "while its item is in progress"
            if item is None or not item.starts:
                state = "before its item has begun"
            elif not item.is_open:
                state = "after its item was completed"
            yield Choice("approval-policy.on-failure-flow", f"asked {state}", frame, operation)

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note a permanently allowed command, which no longer shows whether it is trusted."""
        question = self.scene.request_of(frame) if frame.kind is Kind.RESPONSE else None
        if question is not None and dig(frame.result, "decision") in _LASTING:
            self._allowed.add(command_words(obj(question.params).get("command")).strip())

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the treatment of a command or file change under untrusted, reject or never."""
        item = obj(dig(frame.params, "item"))
        kind = text(item.get("type"))
        if kind not in _KINDS:
            return
        status, policy = word(item.get("status")), self._policies.of(frame)
        key = text(obj(frame.params).get("turnId")), text(item.get("id"))
        if policy == "untrusted" and kind == "commandExecution":
            command = command_words(item.get("command")).strip()
            if command and command not in self._allowed:
                value = "asked about" if self._asked.get(key) else "not asked about"
                program = word(re.split(r"[\s;&|>]+", command)[0])
                yield Choice("approval-policy.trusted-commands", value, frame, program)
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
        """Yield that a turn under never or reject shows no item of a command or file change."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or any(item.type in _KINDS for item in turn.items.values()):
            return
        policy = self._policies.of(frame)
        if policy == "never" and self._is_outside:
            yield Choice("approval-policy.never-blocked", "no item is shown", frame)
        elif policy == "reject" and "reject" in self.scene.scenario:
            yield Choice("approval-policy.reject-flow", "no item is shown", frame)

    @property
    def _is_outside(self) -> bool:
        """Return whether the scenario acts outside the sandbox, which no message shows."""
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
    """Effects of an answer on its operation and on later ones."""

    def begin(self) -> None:
        """Set up the state."""
        self._questions: dict[tuple[str, str], _Question] = {}
        self._allowed: dict[str, tuple[str, str, str]] = {}
        self._reloaded: set[str] = set()
        self._restarted = False

    @on(_COMMAND, _FILES)
    def on_approval_request(self, frame: Frame) -> Iterator[Choice]:
        """Note the request; yield whether it repeats one that was allowed permanently."""
        params = obj(frame.params)
        item, turn = text(params.get("itemId")), text(params.get("turnId"))
        self._questions[turn, item] = _Question(frame, item, turn)
        yield from self._repetition(
            frame, command_words(params.get("command")), "asked about again"
        )

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note the client's decision, and the command if the decision is lasting."""
        if frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return
        question = self.scene.request_of(frame)
        if question is None or question.method not in (_COMMAND, _FILES):
            return
        params = obj(question.params)
        open_question = self._questions.get(
            (text(params.get("turnId")), text(params.get("itemId")))
        )
        if open_question is None or open_question.answer:
            return
        decision = dig(frame.result, "decision")
        open_question.answer = text(decision) if frame.kind is Kind.RESPONSE else "an error"
        command = command_words(params.get("command"))
        if open_question.answer in _LASTING and command:
            thread, cwd = text(params.get("threadId")), text(params.get("cwd"))
            self._allowed[command] = open_question.answer, thread, cwd

    @on("serverRequest/resolved")
    def on_server_request_resolved(self, frame: Frame) -> None:
        """Mark the approval requests of that id as resolved."""
        request = obj(frame.params).get("requestId")
        for question in self._questions.values():
            if question.frame.id == request:
                question.resolved = True

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the effect of an unusual decision, or that an allowed command ran unasked."""
        item = obj(dig(frame.params, "item"))
        key = text(obj(frame.params).get("turnId")), text(item.get("id"))
        question = self._questions.get(key)
        status = word(item.get("status"))
        if question is not None:
            operation = "a command" if question.frame.method == _COMMAND else "a file change"
            if question.answer == "an error":
                yield Choice(
                    "approval.unknown-decision", f"its item is {status}", frame, "an error"
                )
            elif question.answer and question.answer not in _WORDS:
                situation = f"another word, {operation}"
                yield Choice("approval.unknown-decision", f"its item is {status}", frame, situation)
            elif operation == "a file change" and question.answer in ("acceptForSession", "cancel"):
                yield Choice(
                    "approval.file-decisions", f"its item is {status}", frame, question.answer
                )
        elif item.get("type") == "commandExecution":
            yield from self._repetition(
                frame, command_words(item.get("command")), "not asked about"
            )

    def _repetition(self, frame: Frame, command: str, value: str) -> Iterator[Choice]:
        """Yield `value` at the point of a command that was allowed permanently, else nothing."""
        allowed = self._allowed.get(command)
        if allowed is None:
            return
        decision, thread, _ = allowed
        this_thread = text(obj(frame.params).get("threadId"))
        if decision != "acceptForSession":
            situation = "after a restart" if self._restarted else "the same words"
            yield Choice("approval.amendment-content", value, frame, f"{decision}, {situation}")
        elif self._restarted:
            yield Choice("approval.scope-of-session", value, frame, "after a restart")
        elif this_thread in self._reloaded:
            yield Choice("approval.scope-of-session", value, frame, "loaded again")
        elif this_thread != thread:
            yield Choice("approval.scope-of-session", value, frame, "in another thread")
        else:
            yield Choice("approval.same-operation", value, frame, "the same words")

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the fate of the unanswered requests of an interrupted turn, and of their items."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or turn.status != "interrupted" or not turn.interrupts:
            return
        for (turn_id, item), question in self._questions.items():
            if (
                turn_id != turn.id
                or question.answer
                or question.frame.connection != frame.connection
            ):
                continue
            resolution = "serverRequest/resolved before the turn ends"
            if not question.resolved:
                resolution = "no serverRequest/resolved before the turn ends"
            view = turn.items.get(item)
            status = "not completed"
            if view is not None and view.completions:
                status = word(dig(view.completions[-1].params, "item", "status"))
            yield Choice("approval.interrupted", resolution, frame, "the question")
            yield Choice("approval.interrupted", status, frame, "the item")

    @on("thread/closed")
    def on_thread_closed(self, frame: Frame) -> None:
        """Note that the thread was unloaded."""
        self._reloaded.add(text(obj(frame.params).get("threadId")))

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """Note that another process answers from here on."""
        self._restarted = True


@observes("approval.several-clients", "approval.lost-client", "subscription.open-questions")
class Several(Observer):
    """Recipients of an approval request if several clients have, or had, a thread."""

    def begin(self) -> None:
        """Set up the state."""
        self._asked: dict[tuple[str, str], dict[str, Frame]] = {}
        self._lost: set[tuple[str, str]] = set()
        self._joined: dict[str, set[str]] = {}

    @on_sent("thread/resume")
    def on_thread_resume_sent(self, frame: Frame) -> None:
        """Note that the client resumes the thread."""
        self._joined.setdefault(frame.connection, set()).add(
            text(obj(frame.params).get("threadId"))
        )

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Iterator[Choice]:
        """Yield the choice if another connection got a request for the same item before."""
        params = obj(frame.params)
        item = text(params.get("itemId"))
        if not item:
            return
        key = text(params.get("turnId")), item
        before = self._asked.setdefault(key, {})
        other_frames = [question for name, question in before.items() if name != frame.connection]
        if other_frames:
            same = "the same id" if other_frames[0].id == frame.id else "another id"
            if key in self._lost:
                yield Choice("approval.lost-client", f"asked again, {same}", frame)
            elif self._came_later(frame, other_frames[0]):
                yield Choice("subscription.open-questions", f"asked again, {same}", frame)
            else:
                yield Choice("approval.several-clients", f"all, with {same}", frame)
        before.setdefault(frame.connection, frame)

    def _came_later(self, frame: Frame, first: Frame) -> bool:
        view = self.scene.conversation.thread(text(obj(frame.params).get("threadId")))
        return any(request.seq > first.seq for request in view.resume_requests)

    @listen(("mark", Closed.kind), ("mark", ClientLeft.kind))
    def on_client_left(self, mark: Mark[ClientLeft | Closed]) -> None:
        """Note the unanswered requests that no remaining client has."""
        still = self.scene.facts.open_connections - {mark.body.connection}
        for key, questions in self._asked.items():
            answered = any(
                self.scene.views[name].answer_of(frame) is not None
                for name, frame in questions.items()
            )
            if not answered and not still & questions.keys():
                self._lost.add(key)
