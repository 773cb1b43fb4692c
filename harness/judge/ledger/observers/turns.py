"""Open points of turns: their order, their ends, what is told of them."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on, on_answer, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import names, outcome, word
from harness.protocol.spec.answers import unmet
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind, parse
from harness.trace.marks import ModelEnd
from harness.trace.trace import Mark
from harness.trace.views import TurnView

_ORDER: Final = "rpc.response-order"
_SKILL: Final = re.compile(r"\$([a-z][a-z0-9-]*)")
# The notification that follows from a request.
_CAUSED: Final = {
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
        """Nothing was seen yet."""
        # Requests without an answer, and answered ones whose notification has not come, by the
        # connection, the method and the thread; a new thread's is known by its answer.
        self._open: dict[tuple[str, str, str], int] = defaultdict(int)
        self._answered: dict[tuple[str, str, str], int] = defaultdict(int)
        self._early: dict[tuple[str, str], Frame] = {}

    @on_sent(*_CAUSED.values())
    def sent(self, frame: Frame) -> None:
        """A request is open from here on."""
        self._open[frame.connection, frame.method, _thread_of(frame.params)] += 1

    @on_answer(*_CAUSED.values())
    def answered(self, frame: Frame) -> Iterator[Choice]:
        """A request is not open any more; a refused one causes nothing."""
        asked = self.scene.asked(frame)
        if asked is None:
            return
        thread = _thread_of(asked.params)
        key = frame.connection, asked.method, thread
        if self._open[key]:
            self._open[key] -= 1
            if frame.kind is Kind.RESPONSE:
                shown = thread or text(dig(frame.result, "thread", "id"))
                early = self._early.pop((frame.connection, shown), None)
                if early is not None:
                    yield Choice(_ORDER, "the notification first", early, asked.method)
                else:
                    self._answered[frame.connection, asked.method, shown] += 1

    @on(*_CAUSED)
    def on_caused(self, frame: Frame) -> Iterator[Choice]:
        """A notification that follows from a request of this connection."""
        method = _CAUSED[frame.method]
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
            # Whether this is the thread that was asked for, the answer tells.
            self._early[frame.connection, thread] = frame


def _thread_of(params: Any) -> str:
    return text(obj(params).get("threadId"))


@observes("turn.final-status-order", "thread-status.after-failure", "thread-status.transitions")
class Statuses(Observer):
    """Changes of a thread's status."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._last: dict[tuple[str, str], str] = {}
        self._ended: dict[tuple[str, str], str] = {}

    @on_answer("thread/start", "thread/resume", "thread/fork")
    def opened(self, frame: Frame) -> None:
        """The status that a reply shows is where the changes begin."""
        thread = dig(frame.result, "thread")
        key = frame.connection, text(dig(thread, "id"))
        self._last[key] = _status(dig(thread, "status"))
        self._ended.pop(key, None)

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> None:
        """A new turn: what comes now is not of the former one."""
        self._ended.pop((frame.connection, text(obj(frame.params).get("threadId"))), None)

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Iterator[Choice]:
        """One change."""
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
        """The end of a turn: its thread's status has changed before, or will."""
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
    """The place of a turn's notifications that are about none of its items."""

    @on(*_BETWEEN)
    def on_between(self, frame: Frame) -> Iterator[Choice]:
        """One of them."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or not text(obj(frame.params).get("turnId")):
            return
        if turn.completed:
            yield Choice("turn.events-between", "after turn/completed", frame, frame.method)
        elif turn.started:
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
    """The turn as a whole, as its end shows it."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._skills: set[str] = set()
        self._last_call = ""

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """Note the outcome of the last model call."""
        self._last_call = mark.body.told

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> None:
        """The names of skills."""
        for entry in arr(dig(frame.result, "data")):
            self._skills |= {text(dig(one, "name")) for one in arr(dig(entry, "skills"))}

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """The end of a turn."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1:
            return
        status = turn.status
        retries = [one for one in turn.errors if obj(one.params).get("willRetry") is True]
        if status == "failed":
            final = any(obj(one.params).get("willRetry") is False for one in turn.errors)
            said = "yes" if final else "only with willRetry true" if retries else "no"
            yield Choice("errors.final-notified", said, frame)
            info = dig(frame.params, "turn", "error", "agentErrorInfo")
            if self._last_call and len(self.scene.facts.threads) == 1:
                shown = names(info) if isinstance(info, dict) else word(info)
                about = f"the model's answer: {self._last_call}"
                yield Choice("turn-error.other-member", shown, frame, about)
        if retries:
            yield Choice("errors.turn-goes-on", f"the turn ends as {word(status)}", frame)
        if retries and status == "failed":
            yield Choice("errors.retry-limits", f"failed after {len(retries)} retries", frame)
        if turn.request is None or not turn.started:
            return
        asked = arr(obj(turn.request.params).get("input"))
        if not asked:
            yield Choice("turn-start.empty-input", f"it ends as {word(status)}", frame, "the turn")
        elif status == "completed":
            yield Choice("item.user-message-emitted", _user_message(turn), frame)
        for point, about in _odd_input(asked, self._skills):
            yield Choice(point, f"it ends as {word(status)}", frame, about)
        yield from self._schema(turn, frame, len(retries))

    @staticmethod
    def _schema(turn: TurnView, frame: Frame, retries: int) -> Iterator[Choice]:
        schema = obj(turn.request.params if turn.request else {}).get("outputSchema")
        said = [one for one in turn.items.values() if one.type == "agentMessage" and one.completed]
        if not isinstance(schema, dict) or not said:
            return
        final = text(dig(said[-1].completed[-1].params, "item", "text"))
        value = parse(final.encode())
        if value is MISSING or unmet(obj(schema), value):
            again = ", after it was tried again" if retries else ""
            yield Choice(
                "turn-start.schema-unmet", f"the turn ends as {word(turn.status)}{again}", frame
            )


def _user_message(turn: TurnView) -> str:
    kinds = [one.type for one in turn.items.values() if one.started]
    if "userMessage" not in kinds:
        return "no"
    return "the first item" if kinds[0] == "userMessage" else "a later item"


def _odd_input(entries: list[Any], skills: set[str]) -> Iterator[tuple[str, str]]:
    """The points that an input comes to; which skills there are, a list has told before."""
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
        """Nothing was seen yet."""
        self._running: dict[int, str] = {}

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> None:
        """Note the turn that is active."""
        thread = self.scene.facts.named(frame.params)
        turn = self.scene.conversation.turn_at(thread.id, thread.running)
        if thread.running and not thread.interrupted and turn is not None and turn.request:
            self._running[frame.seq] = thread.running

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Tell the answer; a turn that was over by then is no active one."""
        asked = self.scene.asked(frame)
        running = self._running.pop(asked.seq, "") if asked is not None else ""
        if asked is None or not running:
            return
        thread = self.scene.facts.named(asked.params)
        if frame.kind is not Kind.RESPONSE:
            yield Choice("turn-start.while-active", outcome(frame), frame)
        elif text(dig(frame.result, "turn", "id")) == running:
            yield Choice("turn-start.while-active", "granted, the id of the active turn", frame)
        elif thread.running == running:
            yield Choice("turn-start.while-active", "granted, a new id", frame)


@observes("event.token-usage-often")
class TokenUsage(Observer):
    """Counts of token usage, beside the model calls of the turn that reported some."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._calls = 0
        self._told = 0

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> None:
        """Count anew."""
        self._calls = self._told = 0

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """A model call has ended."""
        self._calls += bool(mark.body.usage and mark.body.completed)

    @on("thread/tokenUsage/updated")
    def on_thread_token_usage_updated(self, frame: Frame) -> None:
        """It is told."""
        self._told += 1

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Compare, where it is clear whose calls they were."""
        if len(self.scene.facts.threads) > 1 or len(self.scene.views) > 1:
            return
        calls, told = self._calls, self._told
        if calls and dig(frame.params, "turn", "status") == "completed":
            often = "once" if told == calls else "more often" if told > calls else "less often"
            yield Choice("event.token-usage-often", f"{often} after each model call", frame)


@observes("event.diff-often", "event.diff-when-none", "event.diff-paths")
class Diffs(Observer):
    """The time of a turn's diff, and the names of files in it."""

    @on("turn/diff/updated")
    def on_turn_diff_updated(self, frame: Frame) -> Iterator[Choice]:
        """Give the choices about names of files."""
        for line in text(obj(frame.params).get("diff")).splitlines():
            if line.startswith("+++ ") and "/dev/null" not in line:
                yield Choice("event.diff-paths", _path(line[4:]), frame)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Give the choice about how often it came."""
        turn = self.scene.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1:
            return
        changes = [
            text(dig(one.completed[-1].params, "item", "status"))
            for one in turn.items.values()
            if one.type == "fileChange" and one.completed
        ]
        done = changes.count("completed")
        if done and len(changes) == done:
            count = len(turn.diffs)
            often = "once" if count == done else "more often than once" if count > done else "not"
            yield Choice("event.diff-often", f"{often} after each file change", frame)
        elif changes and not done:
            for status in sorted(set(changes)):
                said = "yes" if turn.diffs else "no"
                yield Choice("event.diff-when-none", said, frame, f"a change that is {status}")


def _path(path: str) -> str:
    for prefix in ("a/", "b/"):
        if path.startswith(prefix):
            kind = "absolute" if path[2:3] == "/" else "relative"
            return f"{kind}, after {prefix}"
    return "absolute" if path[:1] == "/" else "relative"
