"""Threads as they are shown later: in reads, resumes, forks, rollbacks and lists."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on, on_answer, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import outcome, word
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall, ModelEnd, ServerEnded
from harness.trace.trace import Mark
from harness.trace.views import ItemView

_SHOWING_METHODS: Final = ("thread/read", "thread/resume", "thread/fork", "thread/rollback")
_SETTINGS: Final = ("model", "cwd", "approvalPolicy")


def _turns(frame: Frame) -> list[dict[str, Any]]:
    return [obj(turn) for turn in arr(dig(frame.result, "thread", "turns"))]


def _items(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [obj(item) for item in arr(turn.get("items"))]


@observes("thread-read.items", "thread-rollback.items", "thread-fork.turns-shown")
class ShownItems(Observer):
    """Items in the turns of thread objects."""

    @on_answer("thread/read", "thread/rollback", "thread/fork")
    def on_shown_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the turns in a result have their items."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        turns = [t for t in _turns(frame) if t.get("status") == "completed"]
        filled = "with their items" if any(_items(turn) for turn in turns) else "without items"
        if request.method == "thread/fork":
            of_origin = self.scene.facts.thread_of(request.params).turns
            if of_origin:
                shown = filled if turns else "no turns"
                yield Choice("thread-fork.turns-shown", shown, frame, "the reply")
        elif turns:
            point = (
                "thread-read.items" if request.method == "thread/read" else "thread-rollback.items"
            )
            yield Choice(point, filled, frame)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the announcement of a fork shows turns, with or without items."""
        thread = obj(dig(frame.params, "thread"))
        facts = self.scene.facts.threads.get(text(thread.get("id")))
        if facts is None or not facts.is_fork or not facts.turns:
            return
        turns = arr(thread.get("turns"))
        value = "no turns"
        if turns:
            filled = any(_items(obj(turn)) for turn in turns)
            value = "turns with their items" if filled else "turns without items"
        yield Choice("thread-fork.turns-shown", value, frame, "thread/started")


@observes("thread-read.active", "thread-fork.active", "turn.after-crash", "rpc.connection-end")
class UnfinishedTurns(Observer):
    """Turns in results that are in progress, or whose server ended meanwhile."""

    def begin(self) -> None:
        """Set up the state."""
        self._sent: dict[int, str] = {}

    @on_sent("thread/read", "thread/fork", "thread/resume")
    def on_request_sent(self, frame: Frame) -> None:
        """Note the turn that is active when the request is sent."""
        thread = self.scene.facts.thread_of(frame.params)
        if thread.running_turn:
            self._sent[frame.seq] = thread.running_turn

    @on_answer("thread/read", "thread/fork", "thread/resume")
    def on_shown_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the status of the active turn, and of turns that were cut, in a result."""
        request = self.scene.request_of(frame)
        running = self._sent.pop(request.seq, "") if request is not None else ""
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        facts = self.scene.facts.thread_of(request.params)
        turns = _turns(frame)
        if running and facts.running_turn == running:
            yield from self._active_turn(request, frame, running, turns)
        for turn in turns:
            if text(turn.get("id")) in facts.cut_turns:
                yield Choice("turn.after-crash", word(turn.get("status")), frame, request.method)

    @staticmethod
    def _active_turn(
        request: Frame, frame: Frame, running: str, turns: list[dict[str, Any]]
    ) -> Iterator[Choice]:
        if request.method == "thread/fork":
            value = word(turns[-1].get("status")) if turns else "no turn"
            yield Choice("thread-fork.active", f"the last turn is {value}", frame)
        elif request.method == "thread/read" and obj(request.params).get("includeTurns") is True:
            matching = [turn for turn in turns if turn.get("id") == running]
            value = word(matching[0].get("status")) if matching else "not shown"
            yield Choice("thread-read.active", value, frame)
        elif request.method == "thread/resume":
            matching = [turn for turn in turns if turn.get("id") == running]
            value = (
                f"the turn is {word(matching[0].get('status'))}" if matching else "it is not shown"
            )
            yield Choice("rpc.connection-end", value, frame, "to whoever comes back")


@observes("item.id-stable", "turn.interrupted-history", "thread-fork.ids")
class StoredTurns(Observer):
    """Streamed turns as they are stored: their ids, and messages that were cut."""

    @on_answer(*_SHOWING_METHODS)
    def on_shown_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a result has the ids that were streamed, and a message that was cut."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        turns = _turns(frame)
        if request.method == "thread/fork":
            yield from self._fork_ids(request, frame, turns)
            return
        for shown in turns:
            live_items = self._live_items(
                text(obj(request.params).get("threadId")), text(shown.get("id"))
            )
            if not live_items:
                continue
            ids = {text(item_object.get("id")) for item_object in _items(shown)}
            kinds = {text(item.get("type")) for item in _items(shown)}
            live = {item.id for item in live_items if item.type in kinds}
            if shown.get("status") == "completed" and ids and live:
                same = "the same" if ids <= live else "other ids in the history"
                yield Choice("item.id-stable", same, frame, request.method)
            partial = any(
                item.type == "agentMessage" and item.last_delta is not None for item in live_items
            )
            if shown.get("status") == "interrupted" and partial:
                value = "kept" if "agentMessage" in kinds else "dropped"
                yield Choice("turn.interrupted-history", value, frame, "a message that was cut")

    def _live_items(self, thread_id: str, turn_id: str) -> list[ItemView]:
        """Return the items of a turn as all clients got them, [] if none saw its start and end."""
        turns = [view.turn_at(thread_id, turn_id) for view in self.scene.views.values()]
        if not any(turn is not None and turn.starts and turn.completions for turn in turns):
            return []
        return [item for turn in turns if turn is not None for item in turn.items.values()]

    def _fork_ids(
        self, request: Frame, frame: Frame, turns: list[dict[str, Any]]
    ) -> Iterator[Choice]:
        facts = self.scene.facts.thread_of(request.params)
        of_origin, ids = facts.turns, [text(t.get("id")) for t in turns]
        if not of_origin or not ids or facts.is_fork:
            return
        value = "kept" if set(ids) <= set(of_origin) else "new"
        yield Choice("thread-fork.ids", value, frame, "of turns")
        origin = text(obj(request.params).get("threadId"))
        live = {
            item
            for conversation in self.scene.views.values()
            for turn in of_origin
            if (view := conversation.turn_at(origin, turn)) is not None
            for item in view.items
        }
        items = {text(item_object.get("id")) for turn in turns for item_object in _items(turn)}
        if live and items:
            yield Choice("thread-fork.ids", "kept" if items <= live else "new", frame, "of items")


@observes("thread-fork.keeps")
class ForkKeeps(Observer):
    """Properties of a thread, besides its history, that its fork keeps."""

    @on_answer("thread/fork")
    def on_thread_fork_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield, for each property of the origin, whether the fork has the same value."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        origin = self.scene.facts.thread_of(request.params)
        fork = obj(dig(frame.result, "thread"))
        if origin.is_ephemeral:
            value = "yes" if fork.get("ephemeral") is True else "no"
            yield Choice("thread-fork.keeps", value, frame, "that it is ephemeral")
        for name in _SETTINGS:
            setting = dig(frame.result, name)
            if name in origin.settings and setting is not MISSING:
                value = "yes" if setting == origin.settings[name] else "no"
                yield Choice("thread-fork.keeps", value, frame, name)
        if origin.name is not None and "name" in fork:
            value = "yes" if fork["name"] == origin.name else "no"
            yield Choice("thread-fork.keeps", value, frame, "the name")


@observes("thread-resume.settings")
class ResumedSettings(Observer):
    """Settings of a resumed thread after a turn changed them."""

    def begin(self) -> None:
        """Set up the state."""
        self._first: dict[str, dict[str, Any]] = {}

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> None:
        """Note the settings with which the thread started."""
        self._first[text(dig(frame.result, "thread", "id"))] = obj(frame.result)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a setting is the first one, that of the last turn, or another."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        facts = self.scene.facts.thread_of(request.params)
        for name in _SETTINGS:
            first = self._first.get(facts.id, {}).get(name)
            last, current = facts.settings.get(name), dig(frame.result, name)
            if first is None or last is None or first == last or current is MISSING:
                continue
            whose = (
                "the last turn's"
                if current == last
                else "the first"
                if current == first
                else "others"
            )
            yield Choice("thread-resume.settings", whose, frame, name)


@observes("thread-status.loaded-shown", "thread.preview-length")
class ShownThreads(Observer):
    """The form in which a list or a read shows a loaded thread."""

    def begin(self) -> None:
        """Set up the state."""
        self._words: dict[str, str] = {}

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> None:
        """Note the first text of the user in a thread."""
        params = obj(frame.params)
        texts = [text(dig(entry, "text")) for entry in arr(params.get("input"))]
        if texts and texts[0]:
            self._words.setdefault(text(params.get("threadId")), texts[0])

    @on_answer("thread/list", "thread/read")
    def on_shown_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether loaded threads have their live status, and long previews all their text."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        listed = request.method == "thread/list"
        shown = arr(dig(frame.result, "data")) if listed else [dig(frame.result, "thread")]
        for thread in shown:
            facts = self.scene.facts.threads.get(text(dig(thread, "id")))
            if facts is None:
                continue
            if facts.is_loaded and facts.subscribers and not facts.is_archived:
                status = dig(thread, "status", "type")
                value = "notLoaded" if status == "notLoaded" else "the live status"
                yield Choice("thread-status.loaded-shown", value, frame, request.method)
            words = self._words.get(facts.id, "")
            preview = dig(thread, "preview")
            if len(words) > 200 and isinstance(preview, str) and preview:
                value = "whole" if preview == words else "cut"
                yield Choice("thread.preview-length", value, frame)


@observes("thread-list.direction", "thread-list.title", "thread-list.cursor-life")
class Lists(Observer):
    """Listing, searching and paging of threads."""

    def begin(self) -> None:
        """Set up the state."""
        self._cursors: dict[str, dict[str, Any]] = {}

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the fate of an odd cursor, the order of the page, and the matches of a search."""
        request = self.scene.request_of(frame)
        if request is None:
            return
        params = {name: item for name, item in obj(request.params).items() if item is not None}
        cursor = text(params.pop("cursor", ""))
        params.pop("limit", None)
        if "cursor" in obj(request.params) and (cursor not in self._cursors):
            if isinstance(obj(request.params)["cursor"], str):
                situation = "of no earlier reply" if cursor else "an empty text"
                yield Choice("thread-list.cursor-life", outcome(frame), frame, situation)
        elif cursor and self._cursors[cursor] != params:
            situation = f"of another {', '.join(_differing_names(self._cursors[cursor], params))}"
            yield Choice("thread-list.cursor-life", outcome(frame), frame, situation)
        if frame.kind is not Kind.RESPONSE:
            return
        following = text(dig(frame.result, "nextCursor"))
        if following:
            self._cursors.setdefault(following, params)
        yield from self._order(params, frame)
        yield from self._search(text(params.get("searchTerm")), frame)

    @staticmethod
    def _order(params: dict[str, Any], frame: Frame) -> Iterator[Choice]:
        key = "updatedAt" if params.get("sortKey") == "updated_at" else "createdAt"
        times = [dig(thread, key) for thread in arr(dig(frame.result, "data"))]
        numbers = [thread for thread in times if isinstance(thread, int | float)]
        if len(numbers) != len(times) or len(set(numbers)) < 2:
            return
        if numbers == sorted(numbers):
            yield Choice("thread-list.direction", "the oldest first", frame, key)
        elif numbers == sorted(numbers, reverse=True):
            yield Choice("thread-list.direction", "the newest first", frame, key)

    def _search(self, term: str, frame: Frame) -> Iterator[Choice]:
        if not term:
            return
        listed = {text(dig(entry, "id")) for entry in arr(dig(frame.result, "data"))}
        for thread in self.scene.facts.threads.values():
            if thread.name is None or thread.is_archived:
                continue
            if term in thread.name:
                value = "found" if thread.id in listed else "not found"
                yield Choice("thread-list.title", value, frame, "by its name")
            elif thread.id in listed:
                yield Choice("thread-list.title", "found", frame, "by its preview, with a name")


def _differing_names(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


@observes("thread-list.ephemeral")
class Unlisted(Observer):
    """Ephemeral threads, and those without a turn yet, in lists."""

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether such threads are listed, if the list is complete and has no filter."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        filters = obj(request.params).keys() - {"limit", "sortKey"}
        if any(obj(request.params)[name] for name in filters) or dig(frame.result, "nextCursor"):
            return
        listed = {text(dig(entry, "id")) for entry in arr(dig(frame.result, "data"))}
        for thread in self.scene.facts.threads.values():
            if not thread.is_known or thread.is_archived:
                continue
            value = "listed" if thread.id in listed else "not listed"
            if thread.is_ephemeral:
                yield Choice("thread-list.ephemeral", value, frame, "an ephemeral one")
            elif not thread.turns and not thread.is_fork:
                yield Choice("thread-list.ephemeral", value, frame, "one without a turn")


@observes("errors.rejected-content")
class RejectedImages(Observer):
    """Images that the model rejected, in the calls of later turns."""

    def begin(self) -> None:
        """Set up the state."""
        self._images: dict[int, frozenset[str]] = {}
        self._now: frozenset[str] = frozenset()
        self._rejected: frozenset[str] = frozenset()

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> Iterator[Choice]:
        """Yield whether the call has an image that was rejected in an earlier turn."""
        images = self._images[mark.body.call] = frozenset(mark.body.images)
        if self._rejected and mark.body.is_scripted:
            value = "sends it again" if images & self._rejected else "leaves it out"
            last = self.scene.trace.frames[min(mark.after, len(self.scene.trace.frames) - 1)]
            yield Choice("errors.rejected-content", value, last, "an image that the model rejected")

    @listen(("mark", ModelEnd.kind))
    def on_model_end(self, mark: Mark[ModelEnd]) -> None:
        """Note the images of a call whose content the model rejected."""
        if mark.body.rejects_content:
            self._now |= self._images.get(mark.body.call, frozenset())

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> None:
        """Expect that later turns leave out the images rejected so far."""
        self._rejected |= self._now
        self._now = frozenset()


@observes("turn-steer.stored", "turn-steer.cut-turn")
class StoredSteers(Observer):
    """Steered input that the model had not seen when its turn was cut or its server killed."""

    def begin(self) -> None:
        """Set up the state."""
        self._granted: dict[str, tuple[str, str]] = {}
        self._killed: dict[str, str] = {}
        self._cut: dict[str, str] = {}

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> None:
        """Note input whose steering was granted."""
        request = self.scene.request_of(frame)
        if request is not None and frame.kind is Kind.RESPONSE:
            thread = text(obj(request.params).get("threadId"))
            for entry in arr(obj(request.params).get("input")):
                if words := text(dig(entry, "text")):
                    self._granted[words] = thread, text(dig(frame.result, "turnId"))

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> Iterator[Choice]:
        """Yield "yes" if the model sees input of a cut turn; forget input that it has seen."""
        texts = mark.body.user_texts or ()
        for words in [
            steered for steered in self._cut if any(steered in user_text for user_text in texts)
        ]:
            last = self.scene.trace.frames[min(mark.after, len(self.scene.trace.frames) - 1)]
            yield Choice("turn-steer.cut-turn", "yes", last, "the model hears of it later")
            del self._cut[words]
        for words in [
            steered for steered in self._granted if any(steered in user_text for user_text in texts)
        ]:
            del self._granted[words]

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """Note the input that the model had not seen, if the server was killed."""
        if mark.body.killed:
            self._killed |= {words: thread for words, (thread, _) in self._granted.items()}
        self._granted.clear()

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a cut turn streamed an item for the input that the model has not seen."""
        turn = self.scene.conversation.turn_of(frame)
        status = dig(frame.params, "turn", "status")
        if turn is None or status not in ("interrupted", "failed"):
            return
        shown_texts = {
            text(dig(entry, "text"))
            for item in turn.items.values()
            for start in item.starts[:1]
            for entry in arr(dig(start.params, "item", "content"))
        }
        for words in [
            steered for steered, (_, turn_id) in self._granted.items() if turn_id == turn.id
        ]:
            value = "yes" if words in shown_texts else "no"
            yield Choice("turn-steer.cut-turn", value, frame, f"shown in the turn, {status}")
            self._cut[words] = self._granted.pop(words)[0]

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the thread still has the input after the server was killed."""
        request = self.scene.request_of(frame)
        thread = text(obj(request.params).get("threadId")) if request is not None else ""
        waiting = [
            words for words, killed_thread in self._killed.items() if killed_thread == thread
        ]
        turns = _turns(frame)
        if not waiting or not turns:
            return
        shown_texts = {
            text(dig(entry, "text"))
            for turn in turns
            for item in _items(turn)
            for entry in arr(item.get("content"))
        }
        for words in waiting:
            value = "kept" if words in shown_texts else "lost"
            yield Choice("turn-steer.stored", value, frame, "the server was killed at once")
            del self._killed[words]
