"""Expectations of a scenario, compared with the events of `agent exec`.

A scenario uses the session protocol's words. Item types that these events lack, and members whose
values they do not list, are not compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.protocol.values import Path, dig, text
from harness.scenario.exec_results import ExecResult
from harness.scenario.expect import Item, Problem
from harness.scenario.model import DiffText, ItemPattern
from harness.scenario.steps.context import Cast
from harness.scenario.surfaces import EXEC_ONLY_ITEMS as OWN_ITEMS
from harness.trace.excerpt import Spot
from harness.trace.marks import SessionItem as ToldItem
from harness.trace.marks import SessionReport
from harness.trace.views import Conversation, ItemView

MESSAGE_TYPE: Final = "agentMessage"
# Session item type -> event item type, and each session member -> the event's member for it.
EXEC_ITEMS: Final[dict[str, tuple[str, dict[str, str]]]] = {
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


def session_results(cast: Cast, conversation: Conversation) -> list[SessionReport]:
    """Return each completed turn of a session as `agent exec` would report it."""
    results: list[SessionReport] = []
    for alias, turn_id in cast.turns.items():
        turn = conversation.turn_at(cast.thread_of.get(alias, ""), turn_id)
        if turn is None or not turn.completions:
            continue
        completed = [
            item for item in turn.items.values() if item.completions and item.type in EXEC_ITEMS
        ]
        items = [
            ToldItem(EXEC_ITEMS[item.type][0], _text_of(item) if item.type == MESSAGE_TYPE else "")
            for item in sorted(completed, key=lambda item: item.completions[0].seq)
        ]
        results.append(SessionReport(alias, turn.status, tuple(items)))
    return results


def _text_of(item: ItemView) -> str:
    return text(dig(item.completions[-1].params, "item", "text"))


class ExecReading:
    """The turns and items of a run of `agent exec`, by the aliases of its turns."""

    def __init__(self, results: Mapping[str, ExecResult]) -> None:
        self._results = results

    def check_end(self, alias: str, statuses: Sequence[str], place: Path) -> Problem | None:
        """Return the problem if a turn did not end, or with none of `statuses`; else None."""
        result = self._results.get(alias)
        if result is not None and result.status in statuses:
            return None
        end = "no process of it was started" if result is None else result.end_words
        with_error = (
            f", with the error {result.error!r}" if result is not None and result.error else ""
        )
        message = f"turn {alias}: expected {' or '.join(statuses)}; found {end}{with_error}"
        spots = (
            ((result.end.seq, Spot(result.end_path)),) if result is not None and result.end else ()
        )
        return Problem(message, place, spots)

    def items(self) -> list[Item]:
        """Return each completed item of the turns, in order."""
        return [
            Item(item.members, item.frame, item.path)
            for result in self._results.values()
            for item in result.items or ()
        ]

    def translate_patterns(self, patterns: list[ItemPattern]) -> list[tuple[int, ItemPattern]]:
        """Return the patterns that these events can express; none if items were not reported."""
        if any(result.items is None for result in self._results.values()):
            return []
        translations = [
            (number, _translate_pattern(pattern)) for number, pattern in enumerate(patterns)
        ]
        return [(number, pattern) for number, pattern in translations if pattern is not None]

    def check_diff(self, alias: str, expected: DiffText, place: Path) -> list[Problem]:
        """Return no problem: no event shows a diff."""
        return []


def _translate_pattern(pattern: ItemPattern) -> ItemPattern | None:
    kind = pattern if isinstance(pattern, str) else next(iter(pattern))
    if kind in OWN_ITEMS:
        return pattern
    if kind not in EXEC_ITEMS:
        return None
    name, members = EXEC_ITEMS[kind]
    if isinstance(pattern, str):
        return name
    want: dict[str, Any] = {
        members[key]: value for key, value in pattern[kind].items() if key in members
    }
    return {name: want} if want else name
