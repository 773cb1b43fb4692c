"""Choices about turns: their order, their ends, their notifications."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on, on_answer, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import names, outcome, word
from harness.protocol.spec.answers import schema_violation
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind, parse
from harness.trace.marks import ModelEnd
from harness.trace.trace import Mark
from harness.trace.views import TurnView

_ORDER: Final = "rpc.response-order"
_SKILL: Final = re.compile(r"\$([a-z][a-z0-9-]*)")
# The request that causes a notification.
_REQUEST_OF: Final = {
    "turn/started": "turn/start",
    "thread/started": "thread/start",
    "thread/archived": "thread/archive",
    "thread/unarchived": "thread/unarchive",
    "thread/name/updated": "thread/name/set",
    "thread/closed": "thread/unsubscribe",
}


@observes(_ORDER)
class ResponseOrder(Observer):
    """The order of a response and the notification that its request causes."""

    def begin(self) -> None:
        """Set up the state."""
        # Numbers of open requests, and of answered ones whose notification has not come, by
        # connection, method and thread ("" until the answer names a new thread).
        self._open: dict[tuple[str, str, str], int] = defaultdict(int)
        self._answered: dict[tuple[str, str, str], int] = defaultdict(int)
        self._early: dict[tuple[str, str], Frame] = {}

    @on_sent(*_REQUEST_OF.values())
    def on_request_sent(self, frame: Frame) -> None:
        """Count the open request."""
        self._open[frame.connection, frame.method, _thread_of(frame.params)] += 1

    @on_answer(*_REQUEST_OF.values())
    def on_response(self, frame: Frame) -> Iterator[Choice]:
        """Close the request; yield the choice if its notification came first."""
        request = self.scene.request_of(frame)
        if request is None:
            return
        thread = _thread_of(request.params)
        key = frame.connection, request.method, thread
        if self._open[key]:
            self._open[key] -= 1
            if frame.kind is Kind.RESPONSE:
                thread_id = thread or text(dig(frame.result, "thread", "id"))
                early = self._early.pop((frame.connection, thread_id), None)
                if early is not None:
                    yield Choice(_ORDER, "the notification first", early, request.method)
                else:
                    self._answered[frame.connection, request.method, thread_id] += 1

    @on(*_REQUEST_OF)
    def on_caused(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the response or this notification came first, if that is known."""
        method = _REQUEST_OF[frame.method]
        thread = _thread_of(frame.params) or text(dig(frame.params, "thread", "id"))
        key = frame.connection, method, thread
        if self._answered[key]:
            self._answered[key] -= 1
            yield Choice(_ORDER, "the response first", frame, method)
            return
        if self._open[key]:
            self._open[key] -= 1
            yield Choice(_ORDER, "the notification first", frame, method)
        elif method == "thread/start" and self._open[frame.connection, method, ""]:
            # The answer shows whether this is the requested thread.
            self._early[frame.connection, thread] = frame


def _thread_of(params: Any) -> str:
    return text(obj(params).get("threadId"))


@observes("turn.final-status-order", "thread-status.after-failure", "thread-status.transitions")
class Statuses(Observer):
    """Changes of a thread's status."""

    def begin(self) -> None:
        """Set up the state."""
        self._last: dict[tuple[str, str], str] = {}
        self._ended: dict[tuple[str, str], str] = {}

    @on_answer("thread/start", "thread/resume", "thread/fork")
    def on_opening_answer(self, frame: Frame) -> None:
        """Note the status in a reply as the thread's first."""
        thread = dig(frame.result, "thread")
        key = frame.connection, text(dig(thread, "id"))
        self._last[key] = _status(dig(thread, "status"))
        self._ended.pop(key, None)

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> None:
        """Forget the end of the former turn."""
        self._ended.pop((frame.connection, text(obj(frame.params).get("threadId"))), None)

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the transition; after turn/completed also their order."""
        params = obj(frame.params)
        key = frame.connection, text(params.get("threadId"))
        status = _status(params.get("status"))
        before = self._last.get(key)
        self._last[key] = status
        if before is not None and before != status:
            yield Choice("thread-status.transitions", f"{before} -> {status}", frame)
        if status.startswith("active"):
            return
        ended = self._ended.pop(key, None)
        if ended is not None and status != "notLoaded":
            yield Choice("turn.final-status-order", "turn/completed first", frame, ended)
            if ended == "failed":
                yield Choice("thread-status.after-failure", status, frame)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the choice if the thread's status changed before the turn's end."""
        params = obj(frame.params)
        key = frame.connection, text(params.get("threadId"))
        end, status = word(dig(params, "turn", "status")), self._last.get(key, "")
        if status in ("idle", "systemError"):
            yield Choice("turn.final-status-order", "the status first", frame, end)
            if end == "failed":
                yield Choice("thread-status.after-failure", status, frame)
        elif status.startswith("active"):
            self._ended[key] = end


def _status(status: Any) -> str:
    flags = ", ".join(sorted(word(flag) for flag in arr(dig(status, "activeFlags"))))
    name = word(dig(status, "type"))
    return f"{name} [{flags}]" if flags else name


_BETWEEN: Final = (
    "thread/tokenUsage/updated",
    "turn/diff/updated",
    "turn/plan/updated",
    "model/rerouted",
    "error",
)


@observes("turn.events-between")
class Between(Observer):
    """The place of a turn's notifications that are not about its items."""

    @on(*_BETWEEN)
    def on_between(self, frame: Frame) -> Iterator[Choice]:
        """Yield the place of a notification in the turn."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or not text(obj(frame.params).get("turnId")):
            return
        if turn.completions:
            yield Choice("turn.events-between", "after turn/completed", frame, frame.method)
        elif turn.starts:
            yield Choice("turn.events-between", "within the turn", frame, frame.method)
        elif turn.request is not None:
            yield Choice("turn.events-between", "before turn/started", frame, frame.method)


@observes(
    "errors.final-notified",
    "errors.retry-limits",
    "errors.turn-goes-on",
    "turn-error.other-member",
    "item.user-message-emitted",
    "turn-start.schema-unmet",
    "turn-start.empty-input",
    "turn-start.missing-file",
    "turn-start.unresolved-skill",
)
class Ends(Observer):
    """The choices that the end of a turn shows."""

    def begin(self) -> None:
        """Set up the state."""
        self._skills: set[str] = set()
        self._last_call = ""

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """Note the outcome of the last model call."""
        self._last_call = mark.body.outcome_text

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> None:
        """Note the names of skills."""
        for entry in arr(dig(frame.result, "data")):
            self._skills |= {text(dig(skill, "name")) for skill in arr(dig(entry, "skills"))}

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the errors, retries, user message, odd input and schema of a completed turn."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1:
            return
        status = turn.status
        retries = [error for error in turn.errors if obj(error.params).get("willRetry") is True]
        if status == "failed":
            final = any(obj(error.params).get("willRetry") is False for error in turn.errors)
            value = "yes" if final else "only with willRetry true" if retries else "no"
            yield Choice("errors.final-notified", value, frame)
            info = dig(frame.params, "turn", "error", "agentErrorInfo")
            if self._last_call and len(self.scene.facts.threads) == 1:
                info_word = names(info) if isinstance(info, dict) else word(info)
                situation = f"the model's answer: {self._last_call}"
                yield Choice("turn-error.other-member", info_word, frame, situation)
        if retries:
            yield Choice("errors.turn-goes-on", f"the turn ends as {word(status)}", frame)
        if retries and status == "failed":
            yield Choice("errors.retry-limits", f"failed after {len(retries)} retries", frame)
        if turn.request is None or not turn.starts:
            return
        entries = arr(obj(turn.request.params).get("input"))
        if not entries:
            yield Choice("turn-start.empty-input", f"it ends as {word(status)}", frame, "the turn")
        elif status == "completed":
            yield Choice("item.user-message-emitted", _user_message(turn), frame)
        for point, situation in _odd_input(entries, self._skills):
            yield Choice(point, f"it ends as {word(status)}", frame, situation)
        yield from self._schema_choice(turn, frame, len(retries))

    @staticmethod
    def _schema_choice(turn: TurnView, frame: Frame, retries: int) -> Iterator[Choice]:
        schema = obj(turn.request.params if turn.request else {}).get("outputSchema")
        messages = [
            item for item in turn.items.values() if item.type == "agentMessage" and item.completions
        ]
        if not isinstance(schema, dict) or not messages:
            return
        final = text(dig(messages[-1].completions[-1].params, "item", "text"))
        value = parse(final.encode())
        if value is MISSING or schema_violation(obj(schema), value):
            again = ", after it was tried again" if retries else ""
            yield Choice(
                "turn-start.schema-unmet", f"the turn ends as {word(turn.status)}{again}", frame
            )


def _user_message(turn: TurnView) -> str:
    kinds = [item.type for item in turn.items.values() if item.starts]
    if "userMessage" not in kinds:
        return "no"
    return "the first item" if kinds[0] == "userMessage" else "a later item"


def _odd_input(entries: list[Any], skills: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (point, situation) for each odd entry of an input; `skills` are the listed names."""
    kinds = {dig(entry, "type") for entry in entries}
    for entry in entries:
        path, kind = text(dig(entry, "path")), dig(entry, "type")
        if kind == "localImage" and "no-such" in path:
            yield "turn-start.missing-file", "the turn"
        elif kind == "skill" and skills and text(dig(entry, "name")) not in skills:
            yield "turn-start.unresolved-skill", "with a skill item"
        elif kind == "text" and skills and "skill" not in kinds:
            named = _SKILL.findall(text(dig(entry, "text")))
            if named and not set(named) & skills:
                yield "turn-start.unresolved-skill", "by its name alone"


@observes("turn-start.while-active")
class SecondStart(Observer):
    """A turn/start while a turn is active."""

    def begin(self) -> None:
        """Set up the state."""
        self._running: dict[int, str] = {}

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> None:
        """Note the active turn."""
        thread = self.scene.facts.thread_of(frame.params)
        turn = self.scene.conversation.turn_at(thread.id, thread.running_turn)
        if (
            thread.running_turn
            and not thread.interrupted_turn
            and turn is not None
            and turn.request
        ):
            self._running[frame.seq] = thread.running_turn

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the request is granted, and with which turn id."""
        request = self.scene.request_of(frame)
        running = self._running.pop(request.seq, "") if request is not None else ""
        if request is None or not running:
            return
        thread = self.scene.facts.thread_of(request.params)
        if frame.kind is not Kind.RESPONSE:
            yield Choice("turn-start.while-active", outcome(frame), frame)
        elif text(dig(frame.result, "turn", "id")) == running:
            yield Choice("turn-start.while-active", "granted, the id of the active turn", frame)
        elif thread.running_turn == running:
            yield Choice("turn-start.while-active", "granted, a new id", frame)


@observes("event.token-usage-often")
class TokenUsage(Observer):
    """The number of token usage notifications per model call that reported usage."""

    def begin(self) -> None:
        """Set up the state."""
        self._calls = 0
        self._updates = 0

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> None:
        """Reset the counts."""
        self._calls = self._updates = 0

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """Count a model call with usage."""
        self._calls += bool(mark.body.usage and mark.body.is_complete)

    @on("thread/tokenUsage/updated")
    def on_thread_token_usage_updated(self, frame: Frame) -> None:
        """Count the notification."""
        self._updates += 1

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield how the counts compare, if there is only one thread on one connection."""
        if len(self.scene.facts.threads) > 1 or len(self.scene.views) > 1:
            return
        calls, updates = self._calls, self._updates
        if calls and dig(frame.params, "turn", "status") == "completed":
            often = (
                "once" if updates == calls else "more often" if updates > calls else "less often"
            )
            yield Choice("event.token-usage-often", f"{often} after each model call", frame)


@observes("event.diff-often", "event.diff-when-none", "event.diff-paths")
class Diffs(Observer):
    """The number of a turn's diffs, and the paths in them."""

    @on("turn/diff/updated")
    def on_turn_diff_updated(self, frame: Frame) -> Iterator[Choice]:
        """Yield the form of each path in the diff: absolute or relative, with its prefix."""
        for line in text(obj(frame.params).get("diff")).splitlines():
            if line.startswith("+++ ") and "/dev/null" not in line:
                yield Choice("event.diff-paths", _path_form(line[4:]), frame)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield how often the diff was sent, compared with the completed file changes."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1:
            return
        changes = [
            text(dig(item.completions[-1].params, "item", "status"))
            for item in turn.items.values()
            if item.type == "fileChange" and item.completions
        ]
        done = changes.count("completed")
        if done and len(changes) == done:
            count = len(turn.diffs)
            often = "once" if count == done else "more often than once" if count > done else "not"
            yield Choice("event.diff-often", f"{often} after each file change", frame)
        elif changes and not done:
            for status in sorted(set(changes)):
                value = "yes" if turn.diffs else "no"
                yield Choice("event.diff-when-none", value, frame, f"a change that is {status}")


def _path_form(path: str) -> str:
    for prefix in ("a/", "b/"):
        if path.startswith(prefix):
            kind = "absolute" if path[2:3] == "/" else "relative"
            return f"{kind}, after {prefix}"
    return "absolute" if path[:1] == "/" else "relative"
