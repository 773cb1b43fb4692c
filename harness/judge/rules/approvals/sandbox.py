"""Rules on the sandbox that a thread or a turn asks for."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, on_answer, on_sent, rule
from harness.judge.rules.messages.known_words import CHANGING, is_idle, is_plain_text, without
from harness.judge.rules.shared.settings_in_force import PolicyMonitor
from harness.judge.rules.shared.view_queries import failed, item_in, request_subject
from harness.judge.rules.shared.violations import instead, member, refusal, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.views import TurnView

WORDS = frozenset({"read-only", "workspace-write", "danger-full-access"})
CAMEL_WORDS = frozenset({"readOnly", "workspaceWrite", "dangerFullAccess"})


@dataclass(frozen=True, slots=True)
class _Refused:
    """A thread/start that was refused with one of the words."""

    request: Frame
    answer: Frame
    word: str
    rest: str
    before: bool


class _Words(Monitor):
    """The thread/start that was taken, by its other params.

    A refusal may be for anything else, such as a server that is not ready or has no room: only
    where the same request was taken with another sandbox, or none, before and after it, is it
    certainly for this word. `unsure` is the level where it was taken on one side only.
    """

    words: frozenset[str]
    unsure: Level

    def begin(self) -> None:
        self._taken: set[str] = set()
        self._refused: list[_Refused] = []

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        word, rest = text(params.get("sandbox")), without(params, "sandbox")
        if failed(frame):
            if word in self.words:
                self._refused.append(_Refused(request, frame, word, rest, rest in self._taken))
            return
        self._taken.add(rest)
        for one in self._refused:
            if one.rest == rest and one.word != word:
                yield self._found(one, None if one.before else self.unsure)
        self._refused = [one for one in self._refused if one.rest != rest]
        if word in self.words:
            yield Witness(f"sandbox {word}", (request, frame))

    def finish(self) -> Outcomes:
        for one in self._refused:
            if one.before:
                yield self._found(one, self.unsure)

    def _found(self, one: _Refused, level: Level | None) -> Violation:
        frames, expected = (one.request, one.answer), f"a thread with sandbox {literal(one.word)}"
        where = whole(one.answer, "error")
        return instead(f"sandbox {one.word}", frames, where, expected, level=level)


@rule("thread.sandbox-taken", title="The three words for a sandbox are taken", level=Level.MUST)
class SandboxTaken(_Words):
    """Judges that thread/start is not refused for read-only, workspace-write, danger-full-access.

    Where the same thread/start was taken with another sandbox, or none, only before or only after
    it, the refusal may be for something else: SHOULD. Left open: one that was never taken.
    """

    words = WORDS
    unsure = Level.SHOULD


@rule(
    "thread.sandbox-camel-taken",
    title="The words for a sandbox are taken in camelCase too",
    level=Level.INFO,
)
class SandboxCamelTaken(_Words):
    """Records whether thread/start is refused for readOnly, workspaceWrite, dangerFullAccess.

    An example of the text passes one of them, its list has none: so INFO. Left open: as above.
    """

    words = CAMEL_WORDS
    unsure = Level.INFO


@rule("turn.sandbox-policy-taken", title="A turn may have its own sandbox", level=Level.MUST)
class SandboxPolicyTaken(Monitor):
    """Judges that turn/start is not refused for a sandboxPolicy that is as the text has it.

    Left open: refusals where the thread had no turn with the same params but for sandboxPolicy and
    input before, or has one that may still run; input that is not text; policies with a value that
    the text does not show, such as another networkAccess of an externalSandbox, with a member more,
    or with roots that are no absolute paths; what follows an archive or its like.
    """

    def begin(self) -> None:
        self._taken: set[str] = set()

    @on_sent(*CHANGING)
    def on_changing_sent(self, frame: Frame) -> Outcomes:
        self._taken.clear()
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        params = obj(request.params)
        policy, rest = params.get("sandboxPolicy"), without(params, "sandboxPolicy", "input")
        subject = f"{request_subject(request)}, sandbox {text(dig(policy, 'type'))}"
        if not failed(frame):
            self._taken.add(rest)
            return [Witness(subject, (request, frame))] if policy is not None else None
        if (
            not _is_shown(policy)
            or rest not in self._taken
            or not is_idle(self.conversation, self.trace, request)
        ):
            return None
        if not is_plain_text(params.get("input")):
            return None
        frames, expected = (request, frame), f"a turn with {member(request, 'sandboxPolicy')}"
        return [instead(subject, frames, refusal(frame), expected)]


@rule(
    "turn.sandbox-applies",
    title="A turn that may only read changes no file unasked",
    level=Level.SHOULD,
    needs=("file-change", "sandbox-policy"),
)
class SandboxApplies(PolicyMonitor):
    """Judges that no fileChange is completed in a turn with sandboxPolicy readOnly, under never.

    Derived from the override and the name of the policy. Witnesses are one that ends otherwise, and
    one that is completed in a turn with dangerFullAccess on a thread that may only read. Left open:
    turns under another approval policy, or whose policy is not certain, and commands, of which the
    item does not say what they changed.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "fileChange" or len(item.completed) > 1:
            return None
        request = item.turn.request
        policy = _policy(request)
        if request is None or not policy or self.questions(item):
            return None
        if not self.under(item.turn, "never"):
            return None
        made = text(item_in(frame).get("status")) == "completed"
        if policy == "dangerFullAccess" and made and self._reads_only(item.turn):
            return [Witness(item.subject, (request, frame))]
        if policy != "readOnly":
            return None
        if not made:
            return [Witness(item.subject, (request, frame))]
        where, also = member(frame, "item", "status"), (member(request, "sandboxPolicy", "type"),)
        return [wrong(item.subject, (request, frame), where, "failed or declined", also=also)]

    def _reads_only(self, turn: TurnView) -> bool:
        """Return whether the thread is read-only, and no other turn had a policy of its own."""
        thread = self.conversation.threads.get(turn.thread_id)
        if thread is None or not thread.opened:
            return False
        others = any(
            other is not turn and _policy(other.request) for other in thread.turns.values()
        )
        return not others and dig(thread.opened[-1].result, "sandbox", "type") == "readOnly"


def _policy(request: Frame | None) -> str:
    """The type of a turn/start's sandboxPolicy, "" for none."""
    return "" if request is None else text(dig(request.params, "sandboxPolicy", "type"))


def _is_shown(policy: Any) -> bool:
    """Return whether a policy has only members and values that the text shows for its type."""
    given = obj(policy)
    roots, network = given.get("writableRoots"), given.get("networkAccess")
    match given.get("type"):
        case "dangerFullAccess":
            return given.keys() == {"type"}
        case "readOnly":
            return given == {"type": "readOnly", "access": {"type": "fullAccess"}}
        case "externalSandbox":
            return given == {"type": "externalSandbox", "networkAccess": "enabled"}
        case "workspaceWrite":
            absolute = isinstance(roots, list) and all(map(posixpath.isabs, map(text, arr(roots))))
            members = {"type", "writableRoots", "networkAccess"}
            return given.keys() == members and absolute and isinstance(network, bool)
        case _:
            return False
