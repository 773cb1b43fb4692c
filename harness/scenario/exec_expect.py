"""Expectations of a scenario, asked of the events of `agent exec`.

A scenario has the session protocol's words. A type that the second does not have, and a member
whose values it does not list, is not asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.protocol.values import Path, dig, text
from harness.scenario.exec_told import Told
from harness.scenario.expect import Item, Problem
from harness.scenario.model import DiffText, ItemPattern
from harness.scenario.steps.context import Cast
from harness.scenario.surfaces import ITEMS as OWN_ITEMS
from harness.trace.excerpt import Spot
from harness.trace.marks import Told as ToldItem
from harness.trace.marks import ToldBySession
from harness.trace.views import Conversation, ItemView

MESSAGE: Final = "agentMessage"
# Item type of the session -> the type in these events, and its members that say the same.
ITEMS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "agentMessage": ("agent_message", {"text": "text"}),
    "reasoning": ("reasoning", {}),
    "commandExecution": (
        "command_execution",
        {"aggregatedOutput": "aggregated_output", "exitCode": "exit_code"},
    ),
    "fileChange": ("file_change", {}),
    "mcpToolCall": (
        "mcp_tool_call",
        {"server": "server", "tool": "tool", "arguments": "arguments"},
    ),
    "webSearch": ("web_search", {"query": "query"}),
}


def told_by_session(cast: Cast, conversation: Conversation) -> list[ToldBySession]:
    """Return what a session told of each turn, in the words of these events."""
    found: list[ToldBySession] = []
    for alias, turn_id in cast.turns.items():
        turn = conversation.turn_at(cast.thread_of.get(alias, ""), turn_id)
        if turn is None or not turn.completed:
            continue
        done = [item for item in turn.items.values() if item.completed and item.type in ITEMS]
        items = [
            ToldItem(ITEMS[item.type][0], _text_of(item) if item.type == MESSAGE else "")
            for item in sorted(done, key=lambda one: one.completed[0].seq)
        ]
        found.append(ToldBySession(alias, turn.status, tuple(items)))
    return found


def _text_of(item: ItemView) -> str:
    return text(dig(item.completed[-1].params, "item", "text"))


class OfExec:
    """Results of a run in the words of these events, by the aliases of its turns."""

    def __init__(self, told: Mapping[str, Told]) -> None:
        self._told = told

    def ended(self, alias: str, statuses: Sequence[str], where: Path) -> Problem | None:
        """That a turn has none of these ends."""
        told = self._told.get(alias)
        if told is not None and told.status in statuses:
            return None
        found = "no process of it was started" if told is None else told.words
        why = f", with the error {told.error!r}" if told is not None and told.error else ""
        message = f"turn {alias}: expected {' or '.join(statuses)}; found {found}{why}"
        seen = ((told.end.seq, Spot(told.end_path)),) if told is not None and told.end else ()
        return Problem(message, where, seen)

    def items(self) -> list[Item]:
        """Each completed item of the turns, in order."""
        return [
            Item(item.shows, item.frame, item.path)
            for told in self._told.values()
            for item in told.items or ()
        ]

    def patterns(self, wanted: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """The patterns that these events have words for; none where some items were not told."""
        if any(told.items is None for told in self._told.values()):
            return []
        found = [(number, _translated(pattern)) for number, pattern in enumerate(wanted)]
        return [(number, pattern) for number, pattern in found if pattern is not None]

    def diff(self, alias: str, wanted: DiffText, where: Path) -> list[Problem]:
        """No event shows a diff."""
        return []


def _translated(pattern: ItemPattern) -> ItemPattern | None:
    kind = pattern if isinstance(pattern, str) else next(iter(pattern))
    if kind in OWN_ITEMS:
        return pattern
    if kind not in ITEMS:
        return None
    name, members = ITEMS[kind]
    if isinstance(pattern, str):
        return name
    want: dict[str, Any] = {
        members[key]: value for key, value in pattern[kind].items() if key in members
    }
    return {name: want} if want else name
