"""Facts of threads and turns that the edge remembers, for values that a release repeats elsewhere.

Placeholders of rows name them: `{thread.model}` is the model of the thread that an object is or
names, `{turn.messages}` the last agent message of its turn, `{list.readStates}` a map for the
threads of a list. All connections of a server share them. A restart empties them, but for the items
that the release does not store (`unstored`).
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from reference_server.dialect.steps import item_id_of
from reference_server.dialect.unstored import UnstoredItems

MAX_TURNS: Final = 1000
"""Turns that are remembered at once; the oldest are forgotten first."""
MAX_QUESTIONS: Final = 1000
MAX_BROADCASTS: Final = 1000
NOTED_AT_ONCE: Final = ("turn/started", "item/completed")
"""Notifications of which later messages of the same batch repeat something."""
KINDS: Final = ("thread", "turn", "list", "question")
"""First words of the placeholders whose values are here."""
_SETTINGS: Final = ("model", "approvalPolicy", "sandbox", "cwd", "modelProvider")
_OVERRIDES: Final = ("model", "approvalPolicy", "cwd", "effort", "summary")
# A thread that this server neither started nor resumed, such as the source of a fork.
_UNKNOWN: Final = {
    "model": "unknown",
    "approvalPolicy": "on-request",
    "sandbox": {"type": "readOnly", "networkAccess": False},
    "filled": 0,
}
_NEW_TURN: Final[dict[str, Any]] = {"messages": [], "view": "notLoaded"}
"""Facts of a turn of which nothing was told."""
# What a policy of a turn has where the client leaves it out.
_POLICIES: Final[dict[str, dict[str, Any]]] = {
    "readOnly": {"networkAccess": False},
    "workspaceWrite": {
        "writableRoots": [],
        "networkAccess": False,
        "excludeTmpdirEnvVar": False,
        "excludeSlashTmp": False,
    },
}
_NO_TOKENS: Final = {
    "totalTokens": 0,
    "inputTokens": 0,
    "cachedInputTokens": 0,
    "cacheWriteInputTokens": 0,
    "outputTokens": 0,
    "reasoningOutputTokens": 0,
}
# The release knows its own models alone, and warns of others.
_LISTED: Final = "gpt-"


def _note_message(turn: dict[str, Any], body: dict[str, Any]) -> None:
    message = cast("dict[str, Any]", body.get("item") or {})
    # A message of which all was a plan is none.
    if message.get("text") != "":
        turn.update(messages=[message], view="summary")


_NOTES: Final[dict[str, Callable[[dict[str, Any], dict[str, Any]], None]]] = {
    "item/completed agentMessage": _note_message,
    "item/started userMessage": lambda turn, _body: turn.update(user=True),
    "item/started fileChange": lambda turn, body: turn.update(patching=item_id_of(body)),
    "item/completed fileChange completed": lambda turn, _body: turn.update(patching=None),
    "item/completed fileChange declined": lambda turn, _body: turn.update(patching=None),
    "item/completed fileChange failed": lambda turn, _body: turn.update(
        patching=None, failedPatch=True
    ),
    "turn/diff/updated": lambda turn, body: turn.update(diff=body.get("diff")),
}
"""Changes of the facts of a turn by the messages of a step; those of an unknown turn are lost."""

Object = Mapping[str, Any]
FactOf = Callable[[str, Object, Object], Any]
"""Returns a fact, by its name, about an object or about what the message around it names.

The last argument are the values of placeholders, of which one is the `message`.
"""

Note = Callable[[dict[str, Any]], None]
"""Remembers what the body of a message says."""


class Memory:
    """Facts by id, as the release spells ids; of `home` those that outlive the process."""

    def __init__(self, home: Path | None = None) -> None:
        self._threads: dict[str, dict[str, Any]] = defaultdict(dict)
        self._turns: dict[str, dict[str, Any]] = {}
        self._questions: dict[Any, tuple[str, Any]] = {}
        """Requests of the server by id: the method, and the params."""
        self._broadcasts: deque[tuple[object, dict[str, Any]]] = deque(maxlen=MAX_BROADCASTS)
        self.broadcast_count = 0
        """Notifications that were broadcast so far."""
        self._unstored_items = UnstoredItems(home)
        self._asked: Object | None = None
        """The object whose turn was looked up last; None if that may have changed since."""
        self._asked_turn: dict[str, Any] = {}
        self._notes = {
            **_NOTES,
            "thread/tokenUsage/updated": self._note_usage,
            "item/completed enteredReviewMode": self._note_entered,
            "item/completed contextCompaction": self._note_compacted,
        }

    def facts_of(self, kind: str) -> FactOf:
        """Return the function for facts of one of KINDS."""
        return {
            "thread": self._thread_fact,
            "turn": self._turn_fact,
            "list": self._list_fact,
            "question": self._question_fact,
        }[kind]

    def broadcast(self, sender: object, message: dict[str, Any]) -> None:
        """Keep a notification for every connection but `sender`, which has it already."""
        self._broadcasts.append((sender, message))
        self.broadcast_count += 1

    def broadcasts_since(self, count: int, receiver: object) -> list[dict[str, Any]]:
        """Return the notifications of others after the first `count`; very old ones are lost."""
        pending = min(self.broadcast_count - count, len(self._broadcasts))
        newest = list(self._broadcasts)[len(self._broadcasts) - pending :]
        return [message for sender, message in newest if sender is not receiver]

    def note_settings(self, thread_id: str, result: dict[str, Any]) -> None:
        """Remember the settings with which a thread was started or resumed."""
        turns = result["thread"].get("turns") or ()
        has_usage = any(turn["status"] == "completed" for turn in turns)
        if thread_id not in self._threads and has_usage:
            # What its turns used was told before this server started.
            none = {"total": _NO_TOKENS, "last": _NO_TOKENS, "modelContextWindow": 258400}
            self._threads[thread_id]["usage"] = none
        known = self._threads[thread_id]
        known.update((name, result[name]) for name in _SETTINGS if name in result)
        known["ephemeral"] = result["thread"].get("ephemeral")

    def note_blank(self, thread_id: str) -> None:
        """Remember that a thread was started here and has no turn yet."""
        self._threads[thread_id]["isBlank"] = True

    def note_fork(self, source: str, thread_id: str, model: str | None = None) -> None:
        """Remember that a thread has the settings of the one that it was forked from.

        Its model is that of the home's settings, if they name one.
        """
        self._threads[thread_id].update(self._threads.get(source, _UNKNOWN))
        if model:
            self._threads[thread_id]["model"] = model
        self._threads[thread_id]["forkedFromId"] = source
        self._asked = None

    def note_request(self, method: str, params: dict[str, Any]) -> Callable[[], None] | None:
        """Remember what a request of the client changes; return how to undo it if it is refused."""
        thread_id = params.get("threadId")
        if method not in ("thread/compact/start", "turn/start") or not isinstance(thread_id, str):
            return None
        known = self._threads[thread_id]
        new: dict[str, Any] = {"compacting": True}
        if method == "turn/start":
            new = {name: params[name] for name in _OVERRIDES if params.get(name)}
            mode = params.get("collaborationMode")
            if isinstance(mode, dict):
                new["plans"] = cast("dict[str, Any]", mode).get("mode") == "plan"
            policy = params.get("sandboxPolicy")
            if isinstance(policy, dict):
                members = cast("dict[str, Any]", policy)
                sandbox = {**_POLICIES.get(str(members.get("type")), {}), **members}
                sandbox.pop("access", None)
                new["sandbox"] = sandbox
        before = {name: known[name] for name in new if name in known}
        changed = [name for name, value in new.items() if value is not before.get(name)]
        known.update(new)
        known["isChanged"] = bool(params.get("collaborationMode")) or any(
            known[name] != before.get(name) for name in changed
        )

        def undo() -> None:
            for name in changed:
                known.pop(name, None)
                known.update({name: before[name]} if name in before else {})

        return undo

    def note_review(self, thread_id: str, target: str) -> None:
        """Remember that a review begins in a thread, until its turn ends."""
        self._threads[thread_id].update(reviewing=target, enteringReview=True)

    def note_interrupt(self, body: dict[str, Any]) -> None:
        """Remember a turn whose interrupt was granted."""
        self._turn(body)["interrupted"] = True

    def note_unstored(self, item_id: Any) -> None:
        """Remember an item that the release does not store."""
        self._unstored_items.add(item_id)

    def is_unstored(self, item: Any) -> bool:
        """Return whether the release does not store an item."""
        return isinstance(item, dict) and cast("Any", item).get("id") in self._unstored_items

    def note_question(self, identifier: Any, method: str, params: dict[str, Any]) -> None:
        """Remember a request of the server."""
        self._questions[identifier] = method, params
        while len(self._questions) > MAX_QUESTIONS:
            del self._questions[next(iter(self._questions))]

    def note_decision(self, identifier: Any, result: Any) -> None:
        """Remember that a client cancelled a turn by its answer."""
        is_cancel = isinstance(result, dict) and cast("Any", result).get("decision") == "cancel"
        params = self._questions.get(identifier, ("", None))[1]
        if is_cancel and isinstance(params, dict):
            self._turn(cast("dict[str, Any]", params))["cancelled"] = True

    def note_at_once(self, step: str, body: dict[str, Any]) -> None:
        """Remember what later messages of the same batch repeat: the last message of a turn.

        The other facts are noted when a message is written, since rows ask about their order.
        """
        if step == "turn/started":
            self._begin(body["turn"]["id"])
        elif step == "item/completed agentMessage":
            _note_message(self._turn(body), body)

    def note_of(self, step: str) -> Note | None:
        """Return how to remember what the messages of a step say; None if nothing of them is."""
        if step == "turn/started":
            return self._note_started
        is_end = step.startswith("turn/completed")
        change = self._note_completed if is_end else self._notes.get(step)
        if change is None:
            return None
        return lambda body: change(self._turn(body), body)

    def _note_started(self, body: dict[str, Any]) -> None:
        thread_id = body.get("threadId")
        if isinstance(thread_id, str):
            turn_id = body["turn"]["id"]
            self._threads[thread_id].update(turn=turn_id, isBlank=False)
            self._asked = None
            self._begin(turn_id)

    def _note_usage(self, _turn: dict[str, Any], body: dict[str, Any]) -> None:
        thread_id = body.get("threadId")
        if isinstance(thread_id, str):
            usage = cast("dict[str, Any]", body.get("tokenUsage") or {})
            filled = usage.get("last", {}).get("totalTokens", 0)
            self._threads[thread_id].update(usage=usage, filled=filled)

    def _note_entered(self, _turn: dict[str, Any], body: dict[str, Any]) -> None:
        self._threads[_thread_id(body)].pop("enteringReview", None)

    def _note_compacted(self, _turn: dict[str, Any], body: dict[str, Any]) -> None:
        self._threads[_thread_id(body)]["filled"] = 0

    def _note_completed(self, turn: dict[str, Any], body: dict[str, Any]) -> None:
        thread_id = body.get("threadId")
        if not isinstance(thread_id, str):
            return
        for fact in ("compacting", "reviewing", "enteringReview"):
            self._threads[thread_id].pop(fact, None)
        if not turn:
            return
        turn["ended"] = True
        if turn.get("interrupted") or turn.get("cancelled") or not turn.get("user"):
            return
        if not turn.get("messages") and body["turn"].get("status") == "completed":
            return
        unread = {"type": "turn", "turnId": turn["id"]}
        state = {"firstUnread": unread, "revision": turn["id"]}
        self._threads[thread_id].setdefault("readState", state)

    def _begin(self, turn_id: str) -> None:
        if turn_id not in self._turns:
            self._asked = None
            self._turns[turn_id] = dict(_NEW_TURN, id=turn_id, startedAt=int(time.time()))
        while len(self._turns) > MAX_TURNS:
            del self._turns[next(iter(self._turns))]

    def _thread_fact(self, fact: str, around: Object, facts: Object) -> Any:
        thread_id = _thread_id(around)
        if thread_id not in self._threads:
            thread_id = _thread_id(_message(facts)) or thread_id
        if fact == "isFull":
            limit = _limit_of(facts.get("settings", {}))
            return limit is not None and self.thread_fact("filled", thread_id) >= limit
        return self.thread_fact(fact, thread_id)

    def _turn_fact(self, fact: str, around: Object, facts: Object) -> Any:
        turn = self._turn(around) or self._turn(_message(facts))
        # A message may be translated before the beginning of its turn is written and noted.
        return turn.get(fact, _NEW_TURN.get(fact))

    def _question_fact(self, fact: str, around: Object, _facts: Object) -> Any:
        return self._questions.get(around.get("requestId"), ("", None))[0] == fact

    def thread_fact(self, fact: str, thread_id: str) -> Any:
        """Return a fact of a thread, None if it is unknown."""
        known = self._threads.get(thread_id, {})
        if fact == "runningTurn":
            turn = self._turns.get(known.get("turn", ""), {"ended": True})
            return None if turn.get("ended") else turn["id"]
        if fact == "readState":
            initial = {"firstUnread": None, "revision": f"initial:{thread_id}"}
            return known.get("readState", initial)
        if fact == "asksOnFailure":
            return known.get("approvalPolicy") == "on-failure"
        if fact in ("runsUnasked", "asks"):
            return (known.get("approvalPolicy") == "never") == (fact == "runsUnasked")
        if fact == "hasUnlistedModel":
            return not str(known.get("model", _LISTED)).startswith(_LISTED)
        return known.get(fact, _UNKNOWN.get(fact))

    def _list_fact(self, fact: str, around: Object, _facts: Object) -> Any:
        threads = cast("list[dict[str, Any]]", around.get("data") or [])
        if fact == "readStates":
            return {one["id"]: self.thread_fact("readState", one["id"]) for one in threads}
        if not threads:
            return None
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(threads[0]["updatedAt"]))

    def _turn(self, value: Object) -> dict[str, Any]:
        """Return the facts of the turn that an object is or names, or of its thread's last turn."""
        # Several rows ask about one message in turn.
        if value is not self._asked:
            self._asked, self._asked_turn = value, self._find_turn(value)
        return self._asked_turn

    def _find_turn(self, value: Object) -> dict[str, Any]:
        inner = value.get("turn")
        named = cast("dict[str, Any]", inner) if isinstance(inner, dict) else value
        identifier = named.get("turnId") or named.get("id")
        if not isinstance(identifier, str):
            identifier = self._threads.get(_thread_id(value), {}).get("turn")
        return self._turns.get(identifier, {}) if isinstance(identifier, str) else {}


def _limit_of(settings: Object) -> int | None:
    """Return the tokens of a call from which on the server compacts, as the settings say."""
    limit, size = (
        settings.get("model_auto_compact_token_limit"),
        settings.get("model_context_window"),
    )
    if isinstance(limit, int):
        return limit
    return size * 9 // 10 if isinstance(size, int) else None


def _message(facts: Object) -> Object:
    message = facts.get("message")
    return cast("Object", message) if isinstance(message, dict) else {}


def _thread_id(value: Object) -> str:
    """Return the id of the thread that an object is or names, "" if none."""
    inner = value.get("thread")
    named = cast("dict[str, Any]", inner) if isinstance(inner, dict) else value
    identifier = named.get("threadId") or named.get("id")
    return identifier if isinstance(identifier, str) else ""
