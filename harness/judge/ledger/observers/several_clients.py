"""Open points of connections: what they hear of, leaving a thread, forms of messages."""

from collections.abc import Iterator
from typing import Final

from harness.judge.base import listen, on, on_answer, on_kind, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import UNANSWERED, outcome, word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import as_id
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, ModelCall, ServerEnded
from harness.trace.trace import Mark

_OPENING: Final = ("thread/start", "thread/resume", "thread/fork")


@observes("rpc.several-clients", "subscription.news", "subscription.begins")
class Hearing(Observer):
    """Connections that are told of something."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._by: dict[tuple[str, str], str] = {}
        self._deaf: dict[str, Frame] = {}
        self._heard: set[str] = set()

    @on_answer(*_OPENING)
    def on_opening_answer(self, frame: Frame) -> None:
        """A connection has a thread from here on."""
        asked = self.scene.asked(frame)
        thread = text(dig(frame.result, "thread", "id"))
        if asked is not None and thread:
            self._by[frame.connection, thread] = asked.method

    @on_answer("thread/unsubscribe")
    def on_thread_unsubscribe_answer(self, frame: Frame) -> None:
        """And not any more."""
        asked = self.scene.asked(frame)
        if asked is not None:
            self._by.pop((frame.connection, text(obj(asked.params).get("threadId"))), None)

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Iterator[Choice]:
        """One message of a thread."""
        params = obj(frame.params)
        thread = text(params.get("threadId")) or text(dig(params, "thread", "id"))
        method = frame.method
        if not thread or self.scene.book.event(method) is None:
            return
        by = self._by.get((frame.connection, thread))
        if by is not None:
            if method == "turn/started":
                yield Choice("subscription.begins", "told of its turns", frame, by)
            others = self.scene.facts.open_connections - {
                name for name, of in self._by if of == thread
            }
            if others:
                self._deaf.setdefault(method, frame)
        elif len(self.scene.facts.open_connections) > 1:
            self._heard.add(method)
            point = "subscription.news" if method.startswith("thread/") else "rpc.several-clients"
            yield Choice(point, "told to all", frame, method)

    def finish(self) -> Iterator[Choice]:
        """Give the choices about messages that a present client was not told of."""
        for method, frame in self._deaf.items():
            if method not in self._heard:
                mine = method.startswith("thread/")
                point = "subscription.news" if mine else "rpc.several-clients"
                yield Choice(point, "told to subscribers", frame, method)


@observes("loading.order", "loading.active-turn", "subscription.lost-connection")
class Leaving(Observer):
    """Effects of the last client's leaving of a thread."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._steps: dict[str, list[str]] = {}
        self._active: dict[str, str] = {}
        self._lost: set[str] = set()
        self._last: Frame | None = None

    @on_sent("thread/unsubscribe")
    def on_thread_unsubscribe_sent(self, frame: Frame) -> None:
        """The only subscriber leaves."""
        facts = self.scene.facts.named(frame.params)
        if facts.loaded and facts.subscribers == {frame.connection}:
            self._steps[facts.id] = []
            if facts.running:
                self._active[facts.id] = facts.running

    @on_answer("thread/unsubscribe")
    def on_thread_unsubscribe_answer(self, frame: Frame) -> None:
        """The reply."""
        asked = self.scene.asked(frame)
        thread = text(obj(asked.params).get("threadId")) if asked is not None else ""
        if thread in self._steps and frame.kind is Kind.RESPONSE:
            self._steps[thread].append("the reply")
            self._last = frame

    @on("thread/status/changed", "turn/completed")
    def changed(self, frame: Frame) -> None:
        """A status, or the end of the turn."""
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
        """It is unloaded."""
        thread = text(obj(frame.params).get("threadId"))
        steps = self._steps.pop(thread, None)
        if steps is None:
            return
        if self._active.pop(thread, ""):
            ended = [one for one in steps if one.startswith("turn/completed")]
            said = ended[0] if ended else "no turn/completed"
            yield Choice("loading.active-turn", f"{said} before thread/closed", frame)
        # Where a connection has left, what is told there is chance; the reply always comes.
        order = [one for one in steps if not one.startswith("turn/")]
        yield Choice("loading.order", ", ".join([*order, "thread/closed"]), frame)

    def finish(self) -> Iterator[Choice]:
        """A thread that was left and never unloaded."""
        if str(self.scene.trace.end) != "quiescent" or self._last is None:
            return
        for thread, steps in self._steps.items():
            if "the reply" in steps:
                yield Choice("loading.order", "no thread/closed", self._last)
                if thread in self._active:
                    ended = [one for one in steps if one.startswith("turn/completed")]
                    said = ended[0] if ended else "it goes on unobserved"
                    yield Choice("loading.active-turn", f"{said}, no thread/closed", self._last)

    @listen(("mark", Closed.kind))
    def on_closed(self, mark: Mark[Closed]) -> None:
        """The only subscriber's connection is closed."""
        # Over pipes the server ends with its only connection.
        somebody_stays = self.scene.facts.open_connections - {mark.body.connection}
        for facts in self.scene.facts.threads.values():
            if somebody_stays and facts.subscribers == {mark.body.connection} and facts.loaded:
                self._lost.add(facts.id)

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """Another process knows nothing of it."""
        self._lost.clear()

    @on_answer("thread/loaded/list", "thread/read")
    def asked(self, frame: Frame) -> Iterator[Choice]:
        """Return whether it is loaded afterwards, without having been opened."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        for thread in [one for one in self._lost if not self.scene.facts.thread(one).subscribers]:
            if asked.method == "thread/loaded/list":
                loaded = thread in arr(dig(frame.result, "data"))
            elif dig(frame.result, "thread", "id") == thread:
                loaded = dig(frame.result, "thread", "status", "type") != "notLoaded"
            else:
                continue
            said = "the thread stays loaded" if loaded else "the thread is unloaded"
            yield Choice("subscription.lost-connection", said, frame)


@observes("rpc.concurrent-requests", "rpc.duplicate-id")
class Pending(Observer):
    """Answers to requests that are open at the same time."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._open: dict[str, list[Frame]] = {}
        self._twice: dict[tuple[str, object], list[str]] = {}
        self._frames: dict[tuple[str, object], Frame] = {}

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """A request, perhaps beside others."""
        if frame.kind is not Kind.REQUEST:
            return
        mine = self._open.setdefault(frame.connection, [])
        if any(as_id(one.id) == as_id(frame.id) is not None for one in mine):
            self._twice[frame.connection, as_id(frame.id)] = []
            self._frames[frame.connection, as_id(frame.id)] = frame
        mine.append(frame)

    @listen(("kind", "response"), ("kind", "error"))
    def on_response(self, frame: Frame) -> Iterator[Choice]:
        """An answer: is it that of the first that is open?"""
        mine = self._open.get(frame.connection, [])
        found = [one for one in mine if as_id(one.id) == as_id(frame.id)]
        if not found:
            return
        twice = self._twice.get((frame.connection, as_id(frame.id)))
        if twice is not None:
            twice.append(outcome(frame))
        elif len(mine) > 1:
            said = "in order" if mine[0] is found[0] else "out of order"
            yield Choice("rpc.concurrent-requests", said, frame)
        mine.remove(found[0])

    def finish(self) -> Iterator[Choice]:
        """Give the choices about two requests with one id."""
        for key, answers in self._twice.items():
            yield Choice(
                "rpc.duplicate-id", ", ".join(sorted(answers)) or UNANSWERED, self._frames[key]
            )


@observes("rpc.malformed-lines")
class Malformed(Observer):
    """Answers to a line that is not a request."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._sent: list[Frame] = []

    @listen(("own", ""))
    def on_own_answer(self, frame: Frame) -> None:
        """Such a line."""
        if frame.kind is Kind.MALFORMED:
            self._sent.append(frame)

    @listen(("kind", "error"), ("kind", "malformed"))
    def answered(self, frame: Frame) -> Iterator[Choice]:
        """An error without an id."""
        if self._sent and obj(frame.json).get("id", 0) is None:
            self._sent.pop(0)
            code = obj(frame.error).get("code")
            yield Choice("rpc.malformed-lines", f"an error with a null id, {code}", frame)

    def finish(self) -> Iterator[Choice]:
        """Lines that nothing answered."""
        if str(self.scene.trace.end) == "quiescent":
            for frame in self._sent:
                yield Choice("rpc.malformed-lines", "no answer, and the connection lives on", frame)


@observes("turn-start.override-life", "thread-compact.history", "turn-steer.when-applied")
class ModelHears(Observer):
    """Contents of model calls: settings of an earlier turn, words before a compaction, steering."""

    def begin(self) -> None:
        """Nothing was seen yet."""
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
        said = [text(dig(one, "text")) for one in arr(params.get("input"))]
        self._before += [one for one in said if one]
        self._turns += 1
        if len(self.scene.facts.threads) > 1:
            self._set.clear()
            return
        given = {name: text(params.get(name)) for name in ("effort", "summary") if params.get(name)}
        for name in list(self._set):
            if name in given:
                del self._set[name]
        self._set |= {name: (value, self._turns) for name, value in given.items()}
        self._reached -= given.keys()

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> None:
        """Input that is taken while a turn runs."""
        asked = self.scene.asked(frame)
        if asked is not None and frame.kind is Kind.RESPONSE:
            for one in arr(obj(asked.params).get("input")):
                if words := text(dig(one, "text")):
                    self._steered[words] = self._calls

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> None:
        """A compaction."""
        if dig(frame.params, "item", "type") == "contextCompaction":
            self._compacted = list(dict.fromkeys(self._before))

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> Iterator[Choice]:
        """Compare a model call with them."""
        self._calls += 1
        frames = self.scene.trace.frames
        texts = mark.body.user_texts
        if not 0 <= mark.after < len(frames) or texts is None:
            return
        last = frames[mark.after]
        for words in [one for one in self._steered if any(one in said for said in texts)]:
            calls = self._calls - self._steered.pop(words)
            said = "in the next call" if calls == 1 else f"in call {calls} after it"
            yield Choice("turn-steer.when-applied", said, last)
        for name, (value, turn) in list(self._set.items()):
            told = mark.body.effort if name == "effort" else mark.body.summary
            if turn == self._turns:
                # One that never reaches the model says nothing of how long it holds.
                self._reached |= {name} if told == value else set()
            elif name in self._reached:
                said = "for later turns too" if told == value else "for the turn alone"
                yield Choice("turn-start.override-life", said, last, name)
                del self._set[name]
        if self._compacted:
            kept = any(one in said for one in self._compacted[:-1] for said in texts)
            if len(self._compacted) > 1:
                said = "the user's words are there" if kept else "the user's words are not there"
                yield Choice("thread-compact.history", said, last)
            self._compacted = []
