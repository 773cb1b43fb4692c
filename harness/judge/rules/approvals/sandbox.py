"""Rules on the sandbox that a thread/start or a turn/start requests."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, on_answer, on_sent, rule
from harness.judge.rules.messages.listed_words import (
    CHANGING_METHODS,
    is_idle,
    is_plain_text,
    params_without,
)
from harness.judge.rules.shared.policies import PolicyMonitor
from harness.judge.rules.shared.view_queries import is_failure, item_in, request_subject
from harness.judge.rules.shared.violations import (
    member,
    refusal_member,
    root_member,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.views import TurnView

WORDS = frozenset({"read-only", "workspace-write", "danger-full-access"})
CAMEL_WORDS = frozenset({"readOnly", "workspaceWrite", "dangerFullAccess"})


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A thread/start that was refused with one of the words."""

    request: Frame
    answer: Frame
    word: str
    other_params: str
    accepted_before: bool


class _SandboxWordRule(Monitor):
    """Base of rules that report a thread/start refused because of a sandbox in `words`.

    A refusal may have another cause, such as a server that is not ready or overloaded. Only if the
    same request was accepted with another sandbox, or none, before and after it, is the word
    certainly the cause. `one_sided_level` applies if it was accepted on one side only. Left open:
    a word that was accepted before.
    """

    words: frozenset[str]
    one_sided_level: Level

    def begin(self) -> None:
        self._accepted_words: dict[str, set[str]] = defaultdict(set)
        self._refusals: list[_Refusal] = []

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        word, other_params = text(params.get("sandbox")), params_without(params, "sandbox")
        accepted_words = self._accepted_words[other_params]
        if is_failure(frame):
            if word in self.words and word not in accepted_words:
                refusal = _Refusal(request, frame, word, other_params, bool(accepted_words))
                self._refusals.append(refusal)
            return
        accepted_words.add(word)
        for refusal in self._refusals:
            if refusal.other_params == other_params and refusal.word != word:
                yield self._refusal_violation(
                    refusal, None if refusal.accepted_before else self.one_sided_level
                )
        self._refusals = [
            refusal for refusal in self._refusals if refusal.other_params != other_params
        ]
        if word in self.words:
            yield Witness(f"sandbox {word}", (request, frame))

    def finish(self) -> Outcomes:
        for refusal in self._refusals:
            if refusal.accepted_before:
                yield self._refusal_violation(refusal, self.one_sided_level)

    def _refusal_violation(self, refusal: _Refusal, level: Level | None) -> Violation:
        frames = (refusal.request, refusal.answer)
        expected = f"a thread with sandbox {literal(refusal.word)}"
        field = root_member(refusal.answer, "error")
        return unexpected_member(f"sandbox {refusal.word}", frames, field, expected, level=level)


@rule("thread.sandbox-taken", title="The three words for a sandbox are accepted", level=Level.MUST)
class SandboxTaken(_SandboxWordRule):
    """Judges that thread/start is not refused for read-only, workspace-write, danger-full-access.

    SHOULD if the same thread/start was accepted with another sandbox, or none, only before or only
    after it: the refusal may have another cause. Left open: a request that was never accepted.
    """

    words = WORDS
    one_sided_level = Level.SHOULD


@rule(
    "thread.sandbox-camel-taken",
    title="The words for a sandbox are accepted in camelCase too",
    level=Level.INFO,
)
class SandboxCamelTaken(_SandboxWordRule):
    """Records whether thread/start is refused for readOnly, workspaceWrite, dangerFullAccess.

    An example in the specification uses one of them, its list has none: INFO. Left open: a request
    that was never accepted with another sandbox, or none.
    """

    words = CAMEL_WORDS
    one_sided_level = Level.INFO


@rule("turn.sandbox-policy-taken", title="A turn may have its own sandbox", level=Level.MUST)
class SandboxPolicyTaken(Monitor):
    """Judges that turn/start is not refused for a sandboxPolicy in the specified form.

    Left open: refusals if no turn of the thread had the same params except sandboxPolicy and input
    before, or one may still run; input other than text; policies with unknown values, such as
    another networkAccess of an externalSandbox, with an additional member, or with roots that are
    not absolute paths; requests after an archive or a similar change.
    """

    def begin(self) -> None:
        self._accepted: set[str] = set()

    @on_sent(*CHANGING_METHODS)
    def on_changing_sent(self, frame: Frame) -> Outcomes:
        self._accepted.clear()
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        params = obj(request.params)
        policy = params.get("sandboxPolicy")
        other_params = params_without(params, "sandboxPolicy", "input")
        subject = f"{request_subject(request)}, sandbox {text(dig(policy, 'type'))}"
        if not is_failure(frame):
            self._accepted.add(other_params)
            return [Witness(subject, (request, frame))] if policy is not None else None
        if (
            not _is_in_specification(policy)
            or other_params not in self._accepted
            or not is_idle(self.conversation, self.trace, request)
        ):
            return None
        if not is_plain_text(params.get("input")):
            return None
        frames, expected = (request, frame), f"a turn with {member(request, 'sandboxPolicy')}"
        return [unexpected_member(subject, frames, refusal_member(frame), expected)]


@rule(
    "turn.sandbox-applies",
    title="A turn that may only read changes no file unasked",
    level=Level.SHOULD,
    needs=("file-change", "sandbox-policy"),
)
class SandboxApplies(PolicyMonitor):
    """Judges that no fileChange is completed in a turn with sandboxPolicy readOnly, under never.

    Derived from the override and the name of the policy. Witnesses are a fileChange that ends
    otherwise, and one that is completed in a turn with dangerFullAccess on a read-only thread. Left
    open: turns under another or an uncertain approval policy, and commands, whose items do not say
    what they changed.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "fileChange" or len(item.completions) > 1:
            return None
        request = item.turn.request
        policy = _policy(request)
        if request is None or not policy or self.questions(item):
            return None
        if not self.is_under(item.turn, "never"):
            return None
        is_completed = text(item_in(frame).get("status")) == "completed"
        if policy == "dangerFullAccess" and is_completed and self._reads_only(item.turn):
            return [Witness(item.subject, (request, frame))]
        if policy != "readOnly":
            return None
        if not is_completed:
            return [Witness(item.subject, (request, frame))]
        field, also = member(frame, "item", "status"), (member(request, "sandboxPolicy", "type"),)
        return [wrong(item.subject, (request, frame), field, "failed or declined", also=also)]

    def _reads_only(self, turn: TurnView) -> bool:
        """Return whether the thread is read-only, and no other turn had a policy of its own."""
        thread = self.conversation.threads.get(turn.thread_id)
        if thread is None or not thread.opening_answers:
            return False
        has_other_policy = any(
            other is not turn and _policy(other.request) for other in thread.turns.values()
        )
        return (
            not has_other_policy
            and dig(thread.opening_answers[-1].result, "sandbox", "type") == "readOnly"
        )


def _policy(request: Frame | None) -> str:
    """Return the type of a turn/start's sandboxPolicy, "" for none."""
    return "" if request is None else text(dig(request.params, "sandboxPolicy", "type"))


def _is_in_specification(policy: Any) -> bool:
    """Return whether a policy has exactly the members and values specified for its type."""
    members = obj(policy)
    roots, network = members.get("writableRoots"), members.get("networkAccess")
    match members.get("type"):
        case "dangerFullAccess":
            return members.keys() == {"type"}
        case "readOnly":
            return members == {"type": "readOnly", "access": {"type": "fullAccess"}}
        case "externalSandbox":
            return members == {"type": "externalSandbox", "networkAccess": "enabled"}
        case "workspaceWrite":
            absolute = isinstance(roots, list) and all(map(posixpath.isabs, map(text, arr(roots))))
            member_names = {"type", "writableRoots", "networkAccess"}
            return members.keys() == member_names and absolute and isinstance(network, bool)
        case _:
            return False
