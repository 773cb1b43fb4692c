"""Facts of threads and turns that the edge remembers, for values that a release repeats elsewhere.

`{thread.model}` in a row is the model of the thread that an object is or names, `{turn.messages}`
the last agent message of its turn. All connections of a server share it; a restart empties it.
"""

from collections import defaultdict
from typing import Any, Final, cast

MAX_TURNS: Final = 1000
"""Turns that are remembered at once; the oldest are forgotten first."""
_SETTINGS: Final = ("model", "approvalPolicy", "sandbox", "cwd", "modelProvider")
_NEW_TURN: Final[dict[str, Any]] = {"messages": [], "view": "notLoaded"}
"""What is known of a turn of which nothing was told."""


class Memory:
    """Facts of threads and turns by id, as the release spells ids."""

    def __init__(self) -> None:
        self.threads: dict[str, dict[str, Any]] = defaultdict(dict)
        self.turns: dict[str, dict[str, Any]] = {}

    def thread_of(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of the thread that an object is or names."""
        thread = value.get("thread")
        if isinstance(thread, dict):
            value = cast("dict[str, Any]", thread)
        identifier = value.get("threadId") or value.get("id")
        return self.threads.get(identifier, {}) if isinstance(identifier, str) else {}

    def turn_of(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of the turn that an object names, or of its thread's active one."""
        turn = value.get("turn")
        if isinstance(turn, dict):
            value = cast("dict[str, Any]", turn)
        identifier = value.get("turnId") or value.get("id")
        if not isinstance(identifier, str) or identifier not in self.turns:
            identifier = self.thread_of(value).get("turn")
        # A message may be translated before the beginning of its turn is written and noted.
        return self.turns.get(str(identifier), _NEW_TURN)

    def note_settings(self, thread_id: str, result: dict[str, Any]) -> None:
        """Remember the settings with which a thread was started or resumed."""
        known = self.threads[thread_id]
        known.update((name, result[name]) for name in _SETTINGS if name in result)

    def copy_settings(self, source: str, thread_id: str) -> None:
        """Remember that a thread has the settings of another one."""
        self.threads[thread_id].update(self.threads.get(source, {}))

    def note_interrupt(self, turn_id: Any) -> None:
        """Remember that a client interrupts a turn."""
        if isinstance(turn_id, str) and turn_id in self.turns:
            self.turns[turn_id]["interrupted"] = True

    def note(self, step: str, body: dict[str, Any]) -> None:
        """Remember what a message to a client says of a turn."""
        thread_id, turn_id = body.get("threadId"), body.get("turnId")
        if step.startswith("turn/started"):
            turn_id = cast("dict[str, Any]", body.get("turn", {})).get("id")
            if isinstance(thread_id, str) and isinstance(turn_id, str):
                self.threads[thread_id]["turn"] = turn_id
                self._begin(turn_id)
        elif step.startswith("turn/completed") and isinstance(thread_id, str):
            self.threads[thread_id].pop("turn", None)
        elif isinstance(turn_id, str) and turn_id in self.turns:
            known = self.turns[turn_id]
            if step == "item/completed agentMessage":
                known["messages"] = [body.get("item")]
                known["view"] = "summary"
            elif step == "turn/diff/updated":
                known["diff"] = body.get("diff")
            elif step == "thread/tokenUsage/updated" and isinstance(thread_id, str):
                self.threads[thread_id]["usage"] = body.get("tokenUsage")

    def _begin(self, turn_id: str) -> None:
        if turn_id not in self.turns:
            self.turns[turn_id] = {"id": turn_id, **_NEW_TURN}
        while len(self.turns) > MAX_TURNS:
            del self.turns[next(iter(self.turns))]
