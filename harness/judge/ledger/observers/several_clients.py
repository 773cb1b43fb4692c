"""Choices about connections: notifications, leaving a thread, odd messages, model calls."""

import re
from collections.abc import Iterator
from typing import Final

from harness.judge.base import listen, on, on_answer, on_kind, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import UNANSWERED, outcome, word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import as_id
from harness.trace.frame import DamageKind, Frame, Kind, json_error
from harness.trace.marks import ClientLeft, Closed, ModelCall, ServerEnded
from harness.trace.trace import Mark

_OPENING_METHODS: Final = ("thread/start", "thread/resume", "thread/fork")


@observes("rpc.several-clients", "subscription.news", "subscription.begins")
class Hearing(Observer):
    """The connections that get a notification."""

    def begin(self) -> None:
        """Set up the state."""
        self._opened_by: dict[tuple[str, str], str] = {}
        self._unheard: dict[str, Frame] = {}
        self._heard: set[str] = set()

    @on_answer(*_OPENING_METHODS)
    def on_opening_answer(self, frame: Frame) -> None:
        """Note that the connection has opened the thread."""
        request = self.scene.request_of(frame)
        thread = text(dig(frame.result, "thread", "id"))
        if request is not None and thread:
            self._opened_by[frame.connection, thread] = request.method

    @on_answer("thread/unsubscribe")
    def on_thread_unsubscribe_answer(self, frame: Frame) -> None:
        """Note that the connection has left the thread."""
        request = self.scene.request_of(frame)
        if request is not None and frame.kind is Kind.RESPONSE:
            self._opened_by.pop((frame.connection, text(obj(request.params).get("threadId"))), None)

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Iterator[Choice]:
        """Yield that a notification reached a subscriber, or a connection without the thread."""
        params = obj(frame.params)
        thread = text(params.get("threadId")) or text(dig(params, "thread", "id"))
        method = frame.method
        if not thread or self.scene.book.event(method) is None:
            return
        opened_by = self._opened_by.get((frame.connection, thread))
        if opened_by is not None:
            if method == "turn/started":
                yield Choice("subscription.begins", "told of its turns", frame, opened_by)
            other_connections = self.scene.facts.open_connections - {
                name for name, owner in self._opened_by if owner == thread
            }
            if other_connections:
                self._unheard.setdefault(method, frame)
        elif len(self.scene.facts.open_connections) > 1:
            self._heard.add(method)
            point = "subscription.news" if method.startswith("thread/") else "rpc.several-clients"
            yield Choice(point, "told to all", frame, method)

    def finish(self) -> Iterator[Choice]:
        """Yield the notifications that no connection without the thread got."""
        for method, frame in self._unheard.items():
            if method not in self._heard:
                is_thread_event = method.startswith("thread/")
                point = "subscription.news" if is_thread_event else "rpc.several-clients"
                yield Choice(point, "told to subscribers", frame, method)


@observes("loading.order", "loading.active-turn", "subscription.lost-connection")
class Leaving(Observer):
    """Effects when the last client leaves a thread."""

    def begin(self) -> None:
        """Set up the state."""
        self._steps: dict[str, list[str]] = {}
        self._active: dict[str, str] = {}
        self._lost: set[str] = set()
        self._last: Frame | None = None

    @on_sent("thread/unsubscribe")
    def on_thread_unsubscribe_sent(self, frame: Frame) -> None:
        """Note that the only subscriber leaves."""
        facts = self.scene.facts.thread_of(frame.params)
        if facts.is_loaded and facts.subscribers == {frame.connection}:
            self._steps[facts.id] = []
            if facts.running_turn:
                self._active[facts.id] = facts.running_turn

    @on_answer("thread/unsubscribe")
    def on_thread_unsubscribe_answer(self, frame: Frame) -> None:
        """Note that the request to leave was answered."""
        request = self.scene.request_of(frame)
        thread = text(obj(request.params).get("threadId")) if request is not None else ""
        if thread in self._steps and frame.kind is Kind.RESPONSE:
            self._steps[thread].append("the reply")
            self._last = frame

    @on("thread/status/changed", "turn/completed")
    def on_status_or_end(self, frame: Frame) -> None:
        """Note the status notLoaded, or the end of the turn."""
        params = obj(frame.params)
        steps = self._steps.get(text(params.get("threadId")))
        if steps is None:
            return
        if frame.method == "turn/completed":
            steps.append(f"turn/completed ({word(dig(params, 'turn', 'status'))})")
        elif dig(params, "status", "type") == "notLoaded":
            steps.append("notLoaded")

    @on("thread/closed")
    def on_thread_closed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the order of reply, status and thread/closed, and the fate of the active turn."""
        thread = text(obj(frame.params).get("threadId"))
        steps = self._steps.pop(thread, None)
        if steps is None:
            return
        if self._active.pop(thread, ""):
            ended = [step for step in steps if step.startswith("turn/completed")]
            value = ended[0] if ended else "no turn/completed"
            yield Choice("loading.active-turn", f"{value} before thread/closed", frame)
        # Notifications after leaving are random; the reply always comes.
        order = [step for step in steps if not step.startswith("turn/")]
        yield Choice("loading.order", ", ".join([*order, "thread/closed"]), frame)

    def finish(self) -> Iterator[Choice]:
        """Yield the threads that were left and never unloaded."""
        if str(self.scene.trace.end) != "quiescent" or self._last is None:
            return
        for thread, steps in self._steps.items():
            if "the reply" in steps:
                yield Choice("loading.order", "no thread/closed", self._last)
                if thread in self._active:
                    ended = [step for step in steps if step.startswith("turn/completed")]
                    value = ended[0] if ended else "it goes on unobserved"
                    yield Choice("loading.active-turn", f"{value}, no thread/closed", self._last)

    @listen(("mark", Closed.kind), ("mark", ClientLeft.kind))
    def on_client_left(self, mark: Mark[ClientLeft | Closed]) -> None:
        """Note the threads whose only subscriber disconnects while other connections stay."""
        # Over pipes the server ends with its only connection.
        somebody_stays = self.scene.facts.open_connections - {mark.body.connection}
        for facts in self.scene.facts.threads.values():
            if somebody_stays and facts.subscribers == {mark.body.connection} and facts.is_loaded:
                self._lost.add(facts.id)

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """Forget the threads: another process does not know them."""
        self._lost.clear()

    @on_answer("thread/loaded/list", "thread/read")
    def on_state_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a thread stays loaded whose only subscriber was disconnected."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        for thread in [
            thread_id
            for thread_id in self._lost
            if not self.scene.facts.thread(thread_id).subscribers
        ]:
            if request.method == "thread/loaded/list":
                loaded = thread in arr(dig(frame.result, "data"))
            elif dig(frame.result, "thread", "id") == thread:
                loaded = dig(frame.result, "thread", "status", "type") != "notLoaded"
            else:
                continue
            value = "the thread stays loaded" if loaded else "the thread is unloaded"
            yield Choice("subscription.lost-connection", value, frame)


@observes("rpc.concurrent-requests", "rpc.duplicate-id")
class Pending(Observer):
    """Answers to requests that are open at the same time."""

    def begin(self) -> None:
        """Set up the state."""
        self._open: dict[str, list[Frame]] = {}
        self._duplicates: dict[tuple[str, object], list[str]] = {}
        self._frames: dict[tuple[str, object], Frame] = {}

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note the open request, and whether its id is in use."""
        if frame.kind is not Kind.REQUEST:
            return
        open_requests = self._open.setdefault(frame.connection, [])
        if any(as_id(request.id) == as_id(frame.id) is not None for request in open_requests):
            self._duplicates[frame.connection, as_id(frame.id)] = []
            self._frames[frame.connection, as_id(frame.id)] = frame
        open_requests.append(frame)

    @listen(("kind", "response"), ("kind", "error"))
    def on_response(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether answers come in the order of the requests."""
        open_requests = self._open.get(frame.connection, [])
        matching = [request for request in open_requests if as_id(request.id) == as_id(frame.id)]
        if not matching:
            return
        twice = self._duplicates.get((frame.connection, as_id(frame.id)))
        if twice is not None:
            twice.append(outcome(frame))
        elif len(open_requests) > 1:
            value = "in order" if open_requests[0] is matching[0] else "out of order"
            yield Choice("rpc.concurrent-requests", value, frame)
        open_requests.remove(matching[0])

    def finish(self) -> Iterator[Choice]:
        """Yield the outcomes of concurrent requests with the same id."""
        for key, answers in self._duplicates.items():
            yield Choice(
                "rpc.duplicate-id", ", ".join(sorted(answers)) or UNANSWERED, self._frames[key]
            )


# The situation of bytes that are not UTF-8, which end a WebSocket connection (RFC 6455, 8.1).
NOT_UTF8: Final = "not UTF-8"
_CLOSE_CODE: Final = re.compile(r"\b\d{4}\b")


@observes("rpc.malformed-lines")
class Malformed(Observer):
    """Answers to a line that is not a request."""

    def begin(self) -> None:
        """Set up the state."""
        self._sent: dict[str, list[Frame]] = {}

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Note a malformed line."""
        if frame.kind is Kind.MALFORMED:
            self._sent.setdefault(frame.connection, []).append(frame)

    @listen(("kind", "error"), ("kind", "malformed"))
    def on_error(self, frame: Frame) -> Iterator[Choice]:
        """Yield an error answer without an id, or the end of the connection."""
        sent = self._sent.get(frame.connection, [])
        if sent and frame.damage is not None and frame.damage.kind is DamageKind.CLOSED:
            code = _CLOSE_CODE.search(frame.damage.words)
            value = f"the connection is closed, {code.group() if code else 'without a code'}"
            yield self._choice(sent.pop(0), value, frame)
            sent.clear()
        elif sent and obj(frame.json).get("id", 0) is None:
            code = obj(frame.error).get("code")
            yield self._choice(sent.pop(0), f"an error with a null id, {code}", frame)

    def finish(self) -> Iterator[Choice]:
        """Yield the malformed lines that got no answer."""
        if str(self.scene.trace.end) != "quiescent":
            return
        last = {
            frame.connection: frame.seq for frame in self.scene.trace.frames if _is_whole(frame)
        }
        for connection, sent in self._sent.items():
            for frame in sent:
                lives = last.get(connection, 0) > frame.seq
                value = "no answer, and the connection lives on" if lives else UNANSWERED
                yield self._choice(frame, value, frame)

    def _choice(self, sent: Frame, value: str, frame: Frame) -> Choice:
        situation = NOT_UTF8 if json_error(sent.raw).startswith("no UTF-8") else ""
        return Choice("rpc.malformed-lines", value, frame, situation)


def _is_whole(frame: Frame) -> bool:
    return frame.from_target and frame.damage is None


@observes("turn-start.override-life", "thread-compact.history", "turn-steer.when-applied")
class ModelHears(Observer):
    """Contents of model calls: earlier turns' settings, compacted texts, steered input."""

    def begin(self) -> None:
        """Set up the state."""
        self._set: dict[str, tuple[str, int]] = {}
        self._reached: set[str] = set()
        self._turns = 0
        self._before: list[str] = []
        self._compacted: list[str] = []
        self._steered: dict[str, int] = {}
        self._calls = 0

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> None:
        """Note the settings and the input of a turn."""
        params = obj(frame.params)
        texts = [text(dig(entry, "text")) for entry in arr(params.get("input"))]
        self._before += [user_text for user_text in texts if user_text]
        self._turns += 1
        if len(self.scene.facts.threads) > 1:
            self._set.clear()
            return
        settings = {
            name: text(params.get(name)) for name in ("effort", "summary") if params.get(name)
        }
        for name in list(self._set):
            if name in settings:
                del self._set[name]
        self._set |= {name: (value, self._turns) for name, value in settings.items()}
        self._reached -= settings.keys()

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> None:
        """Note the steered input."""
        request = self.scene.request_of(frame)
        if request is not None and frame.kind is Kind.RESPONSE:
            for entry in arr(obj(request.params).get("input")):
                if words := text(dig(entry, "text")):
                    self._steered[words] = self._calls

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> None:
        """Note the user's texts before a compaction."""
        if dig(frame.params, "item", "type") == "contextCompaction":
            self._compacted = list(dict.fromkeys(self._before))

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> Iterator[Choice]:
        """Yield whether a call has steered input, settings of earlier turns, compacted texts."""
        self._calls += 1
        frames = self.scene.trace.frames
        texts = mark.body.user_texts
        if not 0 <= mark.after < len(frames) or texts is None:
            return
        last = frames[mark.after]
        for words in [
            steered for steered in self._steered if any(steered in choice for choice in texts)
        ]:
            calls = self._calls - self._steered.pop(words)
            choice = "in the next call" if calls == 1 else f"in call {calls} after it"
            yield Choice("turn-steer.when-applied", choice, last)
        for name, (value, turn) in list(self._set.items()):
            setting = mark.body.effort if name == "effort" else mark.body.summary
            if turn == self._turns:
                # A setting that never reaches the model shows nothing about its lifetime.
                self._reached |= {name} if setting == value else set()
            elif name in self._reached:
                choice = "for later turns too" if setting == value else "for the turn alone"
                yield Choice("turn-start.override-life", choice, last, name)
                del self._set[name]
        if self._compacted:
            is_there = any(former in choice for former in self._compacted[:-1] for choice in texts)
            if len(self._compacted) > 1:
                choice = (
                    "the user's words are there" if is_there else "the user's words are not there"
                )
                yield Choice("thread-compact.history", choice, last)
            self._compacted = []
