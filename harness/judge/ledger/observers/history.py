"""Threads as they are shown later: in reads, resumes, forks, rollbacks and lists."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on, on_answer, on_sent
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import outcome, word
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall, ServerEnded
from harness.trace.trace import Mark
from harness.trace.views import ItemView

_SHOWN: Final = ("thread/read", "thread/resume", "thread/fork", "thread/rollback")
_SETTINGS: Final = ("model", "cwd", "approvalPolicy")


def _turns(frame: Frame) -> list[dict[str, Any]]:
    return [obj(one) for one in arr(dig(frame.result, "thread", "turns"))]


def _items(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [obj(one) for one in arr(turn.get("items"))]


@observes("thread-read.items", "thread-rollback.items", "thread-fork.turns-shown")
class ShownItems(Observer):
    """Items in the turns that are shown."""

    @on_answer("thread/read", "thread/rollback", "thread/fork")
    def answered(self, frame: Frame) -> Iterator[Choice]:
        """A thread that is shown."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        turns = [one for one in _turns(frame) if one.get("status") == "completed"]
        filled = "with their items" if any(_items(one) for one in turns) else "without items"
        if asked.method == "thread/fork":
            of_origin = self.scene.facts.named(asked.params).turns
            if of_origin:
                shown = filled if turns else "no turns"
                yield Choice("thread-fork.turns-shown", shown, frame, "the reply")
        elif turns:
            point = (
                "thread-read.items" if asked.method == "thread/read" else "thread-rollback.items"
            )
            yield Choice(point, filled, frame)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Iterator[Choice]:
        """A thread that is announced, and was forked if it shows turns."""
        thread = obj(dig(frame.params, "thread"))
        facts = self.scene.facts.threads.get(text(thread.get("id")))
        if facts is None or not facts.forked or not facts.turns:
            return
        turns = arr(thread.get("turns"))
        shown = "no turns"
        if turns:
            filled = any(_items(obj(one)) for one in turns)
            shown = "turns with their items" if filled else "turns without items"
        yield Choice("thread-fork.turns-shown", shown, frame, "thread/started")


@observes("thread-read.active", "thread-fork.active", "turn.after-crash", "rpc.connection-end")
class UnfinishedTurns(Observer):
    """The shown form of a turn that is in progress, or whose server ended meanwhile."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._sent: dict[int, str] = {}

    @on_sent("thread/read", "thread/fork", "thread/resume")
    def sent(self, frame: Frame) -> None:
        """Note the turn that is active."""
        thread = self.scene.facts.named(frame.params)
        if thread.running:
            self._sent[frame.seq] = thread.running

    @on_answer("thread/read", "thread/fork", "thread/resume")
    def answered(self, frame: Frame) -> Iterator[Choice]:
        """A thread that is shown."""
        asked = self.scene.asked(frame)
        running = self._sent.pop(asked.seq, "") if asked is not None else ""
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        facts = self.scene.facts.named(asked.params)
        turns = _turns(frame)
        if running and facts.running == running:
            yield from self._active(asked, frame, running, turns)
        for turn in turns:
            if text(turn.get("id")) in facts.cut:
                yield Choice("turn.after-crash", word(turn.get("status")), frame, asked.method)

    @staticmethod
    def _active(
        asked: Frame, frame: Frame, running: str, turns: list[dict[str, Any]]
    ) -> Iterator[Choice]:
        if asked.method == "thread/fork":
            shown = word(turns[-1].get("status")) if turns else "no turn"
            yield Choice("thread-fork.active", f"the last turn is {shown}", frame)
        elif asked.method == "thread/read" and obj(asked.params).get("includeTurns") is True:
            found = [one for one in turns if one.get("id") == running]
            shown = word(found[0].get("status")) if found else "not shown"
            yield Choice("thread-read.active", shown, frame)
        elif asked.method == "thread/resume":
            found = [one for one in turns if one.get("id") == running]
            shown = f"the turn is {word(found[0].get('status'))}" if found else "it is not shown"
            yield Choice("rpc.connection-end", shown, frame, "to whoever comes back")


@observes("item.id-stable", "turn.interrupted-history", "thread-fork.ids")
class StoredTurns(Observer):
    """The part of a streamed turn that is shown later."""

    @on_answer(*_SHOWN)
    def on_shown_answer(self, frame: Frame) -> Iterator[Choice]:
        """A thread that is shown."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        turns = _turns(frame)
        if asked.method == "thread/fork":
            yield from self._forked(asked, frame, turns)
            return
        for shown in turns:
            told = self._told(text(obj(asked.params).get("threadId")), text(shown.get("id")))
            if not told:
                continue
            ids = {text(one.get("id")) for one in _items(shown)}
            kinds = {text(one.get("type")) for one in _items(shown)}
            live = {item.id for item in told if item.type in kinds}
            if shown.get("status") == "completed" and ids and live:
                same = "the same" if ids <= live else "other ids in the history"
                yield Choice("item.id-stable", same, frame, asked.method)
            partial = any(
                item.type == "agentMessage" and item.last_delta is not None for item in told
            )
            if shown.get("status") == "interrupted" and partial:
                kept = "kept" if "agentMessage" in kinds else "dropped"
                yield Choice("turn.interrupted-history", kept, frame, "a message that was cut")

    def _told(self, thread_id: str, turn_id: str) -> list[ItemView]:
        """The items that any client was told of a turn that is over."""
        turns = [one.turn_at(thread_id, turn_id) for one in self.scene.views.values()]
        if not any(turn is not None and turn.started and turn.completed for turn in turns):
            return []
        return [item for turn in turns if turn is not None for item in turn.items.values()]

    def _forked(self, asked: Frame, frame: Frame, turns: list[dict[str, Any]]) -> Iterator[Choice]:
        facts = self.scene.facts.named(asked.params)
        of_origin, ids = facts.turns, [text(one.get("id")) for one in turns]
        if not of_origin or not ids or facts.forked:
            return
        kept = "kept" if set(ids) <= set(of_origin) else "new"
        yield Choice("thread-fork.ids", kept, frame, "of turns")
        origin = text(obj(asked.params).get("threadId"))
        live = {
            item
            for conversation in self.scene.views.values()
            for turn in of_origin
            if (view := conversation.turn_at(origin, turn)) is not None
            for item in view.items
        }
        items = {text(one.get("id")) for turn in turns for one in _items(turn)}
        if live and items:
            yield Choice("thread-fork.ids", "kept" if items <= live else "new", frame, "of items")


@observes("thread-fork.keeps")
class ForkKeeps(Observer):
    """The part of a thread beside its history that a fork has."""

    @on_answer("thread/fork")
    def on_thread_fork_answer(self, frame: Frame) -> Iterator[Choice]:
        """A fork."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        origin = self.scene.facts.named(asked.params)
        fork = obj(dig(frame.result, "thread"))
        if origin.ephemeral:
            kept = "yes" if fork.get("ephemeral") is True else "no"
            yield Choice("thread-fork.keeps", kept, frame, "that it is ephemeral")
        for name in _SETTINGS:
            shown = dig(frame.result, name)
            if name in origin.settings and shown is not MISSING:
                kept = "yes" if shown == origin.settings[name] else "no"
                yield Choice("thread-fork.keeps", kept, frame, name)
        if origin.name is not None and "name" in fork:
            kept = "yes" if fork["name"] == origin.name else "no"
            yield Choice("thread-fork.keeps", kept, frame, "the name")


@observes("thread-resume.settings")
class ResumedSettings(Observer):
    """With which settings a thread comes back that had others set for a turn."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._first: dict[str, dict[str, Any]] = {}

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> None:
        """Its first settings."""
        self._first[text(dig(frame.result, "thread", "id"))] = obj(frame.result)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Iterator[Choice]:
        """Its settings as it comes back."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        facts = self.scene.facts.named(asked.params)
        for name in _SETTINGS:
            first = self._first.get(facts.id, {}).get(name)
            last, shown = facts.settings.get(name), dig(frame.result, name)
            if first is None or last is None or first == last or shown is MISSING:
                continue
            whose = (
                "the last turn's" if shown == last else "the first" if shown == first else "others"
            )
            yield Choice("thread-resume.settings", whose, frame, name)


@observes("thread-status.loaded-shown", "thread.preview-length")
class ShownThreads(Observer):
    """The form in which a list or a read shows a loaded thread."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._words: dict[str, str] = {}

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> None:
        """Note the first words of a thread."""
        params = obj(frame.params)
        said = [text(dig(one, "text")) for one in arr(params.get("input"))]
        if said and said[0]:
            self._words.setdefault(text(params.get("threadId")), said[0])

    @on_answer("thread/list", "thread/read")
    def answered(self, frame: Frame) -> Iterator[Choice]:
        """Threads that are shown."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        listed = asked.method == "thread/list"
        shown = arr(dig(frame.result, "data")) if listed else [dig(frame.result, "thread")]
        for thread in shown:
            facts = self.scene.facts.threads.get(text(dig(thread, "id")))
            if facts is None:
                continue
            if facts.loaded and facts.subscribers and not facts.archived:
                status = dig(thread, "status", "type")
                said = "notLoaded" if status == "notLoaded" else "the live status"
                yield Choice("thread-status.loaded-shown", said, frame, asked.method)
            words = self._words.get(facts.id, "")
            preview = dig(thread, "preview")
            if len(words) > 200 and isinstance(preview, str) and preview:
                said = "whole" if preview == words else "cut"
                yield Choice("thread.preview-length", said, frame)


@observes("thread-list.direction", "thread-list.title", "thread-list.cursor-life")
class Lists(Observer):
    """Listing, searching and paging of threads."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._cursors: dict[str, dict[str, Any]] = {}

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """A page."""
        asked = self.scene.asked(frame)
        if asked is None:
            return
        params = {name: one for name, one in obj(asked.params).items() if one is not None}
        cursor = text(params.pop("cursor", ""))
        params.pop("limit", None)
        if "cursor" in obj(asked.params) and (cursor not in self._cursors):
            if isinstance(obj(asked.params)["cursor"], str):
                about = "of no earlier reply" if cursor else "an empty text"
                yield Choice("thread-list.cursor-life", outcome(frame), frame, about)
        elif cursor and self._cursors[cursor] != params:
            about = f"of another {', '.join(_differing(self._cursors[cursor], params))}"
            yield Choice("thread-list.cursor-life", outcome(frame), frame, about)
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
        times = [dig(one, key) for one in arr(dig(frame.result, "data"))]
        numbers = [one for one in times if isinstance(one, int | float)]
        if len(numbers) != len(times) or len(set(numbers)) < 2:
            return
        if numbers == sorted(numbers):
            yield Choice("thread-list.direction", "the oldest first", frame, key)
        elif numbers == sorted(numbers, reverse=True):
            yield Choice("thread-list.direction", "the newest first", frame, key)

    def _search(self, term: str, frame: Frame) -> Iterator[Choice]:
        if not term:
            return
        found = {text(dig(one, "id")) for one in arr(dig(frame.result, "data"))}
        for thread in self.scene.facts.threads.values():
            if thread.name is None or thread.archived:
                continue
            if term in thread.name:
                said = "found" if thread.id in found else "not found"
                yield Choice("thread-list.title", said, frame, "by its name")
            elif thread.id in found:
                yield Choice("thread-list.title", "found", frame, "by its preview, with a name")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@observes("thread-list.ephemeral")
class Unlisted(Observer):
    """Ephemeral threads, and those without a turn yet, in lists."""

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """A list without a filter, and to its end."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        filters = obj(asked.params).keys() - {"limit", "sortKey"}
        if any(obj(asked.params)[name] for name in filters) or dig(frame.result, "nextCursor"):
            return
        found = {text(dig(one, "id")) for one in arr(dig(frame.result, "data"))}
        for thread in self.scene.facts.threads.values():
            if not thread.known or thread.archived:
                continue
            said = "listed" if thread.id in found else "not listed"
            if thread.ephemeral:
                yield Choice("thread-list.ephemeral", said, frame, "an ephemeral one")
            elif not thread.turns and not thread.forked:
                yield Choice("thread-list.ephemeral", said, frame, "one without a turn")


@observes("turn-steer.stored", "turn-steer.cut-turn")
class StoredSteers(Observer):
    """Input that was granted, that the model had not seen, and that may be kept."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._granted: dict[str, tuple[str, str]] = {}
        self._killed: dict[str, str] = {}
        self._cut: dict[str, str] = {}

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> None:
        """Input was taken."""
        asked = self.scene.asked(frame)
        if asked is not None and frame.kind is Kind.RESPONSE:
            thread = text(obj(asked.params).get("threadId"))
            for one in arr(obj(asked.params).get("input")):
                if words := text(dig(one, "text")):
                    self._granted[words] = thread, text(dig(frame.result, "turnId"))

    @listen(("mark", ModelCall.kind))
    def on_model_call(self, mark: Mark[ModelCall]) -> Iterator[Choice]:
        """Look for stored input in a model call."""
        texts = mark.body.user_texts or ()
        for words in [one for one in self._cut if any(one in said for said in texts)]:
            last = self.scene.trace.frames[min(mark.after, len(self.scene.trace.frames) - 1)]
            yield Choice("turn-steer.cut-turn", "yes", last, "the model hears of it later")
            del self._cut[words]
        for words in [one for one in self._granted if any(one in said for said in texts)]:
            del self._granted[words]

    @listen(("mark", ServerEnded.kind))
    def on_server_ended(self, mark: Mark[ServerEnded]) -> None:
        """The server ended before the model had seen it."""
        if mark.body.killed:
            self._killed |= {words: thread for words, (thread, _) in self._granted.items()}
        self._granted.clear()

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """The turn was cut before the model had seen it."""
        turn = self.scene.conversation.turn_of(frame)
        status = dig(frame.params, "turn", "status")
        if turn is None or status not in ("interrupted", "failed"):
            return
        shown = {
            text(dig(entry, "text"))
            for item in turn.items.values()
            for one in item.started[:1]
            for entry in arr(dig(one.params, "item", "content"))
        }
        for words in [one for one, (_, of) in self._granted.items() if of == turn.id]:
            said = "yes" if words in shown else "no"
            yield Choice("turn-steer.cut-turn", said, frame, f"shown in the turn, {status}")
            self._cut[words] = self._granted.pop(words)[0]

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Iterator[Choice]:
        """A thread that is shown after its server was killed."""
        asked = self.scene.asked(frame)
        thread = text(obj(asked.params).get("threadId")) if asked is not None else ""
        waiting = [words for words, of in self._killed.items() if of == thread]
        turns = _turns(frame)
        if not waiting or not turns:
            return
        shown = {
            text(dig(entry, "text"))
            for turn in turns
            for item in _items(turn)
            for entry in arr(item.get("content"))
        }
        for words in waiting:
            said = "kept" if words in shown else "lost"
            yield Choice("turn-steer.stored", said, frame, "the server was killed at once")
            del self._killed[words]
