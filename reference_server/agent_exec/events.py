"""SDK events of one turn, made from the notifications of its thread.

Not shown in the specification, so our choices: usage is that of this turn; a failure after which
the turn continues is an error item, since the specification calls the event `error` fatal; a failed
turn has an `error` event before its `turn.failed`, as with the shipping program; a plan is one
todo_list item, which is completed when the turn ends.
"""

from collections.abc import Callable
from typing import Any, cast

from reference_server.agent_exec.items import (
    ITEMS_WITH_START,
    View,
    error_item,
    sdk_item,
    todo_list,
)

Fields = dict[str, Any]

USAGE = {
    "inputTokens": "input_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "outputTokens": "output_tokens",
}
"""The SDK's token counts by the protocol's."""


def thread_started(thread_id: str) -> Fields:
    """Return the first event of a run, for a new or a resumed thread."""
    return {"type": "thread.started", "thread_id": thread_id}


def fatal(message: str) -> Fields:
    """Return the event of a fatal error; it is the last event unless a turn failed."""
    return {"type": "error", "message": message}


def turn_failed(message: str) -> list[Fields]:
    """Return the last events of a failed turn."""
    return [fatal(message), {"type": "turn.failed", "error": {"message": message}}]


class TurnEvents:
    """Converter of one turn's notifications; `interrupt_reason` returns why it was interrupted."""

    def __init__(self, view: View, interrupt_reason: Callable[[], str]) -> None:
        self._view = view
        self._interrupt_reason = interrupt_reason
        self._turn = ""
        self._errors = 0
        self._plan: Fields | None = None
        self._usage = dict.fromkeys(USAGE.values(), 0)
        self.has_begun = False
        self.final_status: str | None = None
        """The turn's status at its end; None before."""

    def events_of(self, method: str, params: Fields) -> list[Fields]:
        """Return the events of one notification, perhaps none."""
        match method:
            case "turn/started":
                self.has_begun = True
                self._turn = str(params["turn"]["id"]).removeprefix("turn_")
                return [{"type": "turn.started"}]
            case "item/started":
                item = cast("Fields", params["item"])
                return self._item("item.started", item) if item["type"] in ITEMS_WITH_START else []
            case "item/completed":
                return self._item("item.completed", params["item"])
            case "turn/plan/updated":
                return [self._plan_event(params["plan"])]
            case "thread/tokenUsage/updated":
                self._count(params["tokenUsage"]["last"])
            case "error" if params["willRetry"]:
                return [self._error(_words(params["error"]))]
            case "model/rerouted":
                return [
                    self._error(f"The model {params['toModel']} answers, not the one asked for")
                ]
            case "turn/completed":
                return self._end(params["turn"])
            case _:
                pass
        return []

    def _item(self, kind: str, item: Fields) -> list[Fields]:
        sdk = sdk_item(item, self._view)
        return [] if sdk is None else [{"type": kind, "item": sdk}]

    def _plan_event(self, plan: list[Fields]) -> Fields:
        kind = "item.started" if self._plan is None else "item.updated"
        self._plan = todo_list(f"item_{self._turn}_plan", plan)
        return {"type": kind, "item": self._plan}

    def _error(self, words: str) -> Fields:
        self._errors += 1
        item = error_item(f"item_{self._turn}_error_{self._errors}", words)
        return {"type": "item.completed", "item": item}

    def _count(self, last: Fields) -> None:
        for name, counter in USAGE.items():
            self._usage[counter] += last.get(name, 0)

    def _end(self, turn: Fields) -> list[Fields]:
        self.final_status = cast("str", turn["status"])
        events: list[Fields] = []
        if self._plan is not None:
            events.append({"type": "item.completed", "item": self._plan})
        match self.final_status:
            case "completed":
                events.append({"type": "turn.completed", "usage": self._usage})
            case "failed":
                events += turn_failed(_words(turn.get("error") or {}))
            case _:
                # Not turn.failed: the public SDKs would report it instead of the abort for which
                # they sent the signal. They ignore a fatal error.
                events.append(fatal(self._interrupt_reason()))
        return events


def _words(error: Fields) -> str:
    """Return message and details of a TurnError as one text."""
    details = error.get("additionalDetails")
    message = str(error.get("message") or "the turn failed")
    return f"{message}: {details}" if details else message
