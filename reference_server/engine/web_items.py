"""webSearch items, for web searches by the provider.

Source: session-protocol "ThreadItem" (webSearch); the members of the actions other than `search`
are not shown there, so they are the shipping server's.
"""

from typing import Any, cast

from harness.protocol.wire.item import (
    FindInPageAction,
    OpenPageAction,
    SearchWebAction,
    WebSearchAction,
    WebSearchItem,
)
from reference_server.engine.items import ItemLog

Fields = dict[str, Any]


class GrowingSearch:
    """A webSearch item; its query is known only when it is done."""

    def __init__(self, log: ItemLog) -> None:
        self._log = log
        self._item = WebSearchItem(id=log.thread.new_item_id(), query="")
        log.start_item(self._item)

    def finish(self, call: Fields) -> None:
        """Complete the item, given the provider's item of the search."""
        action: Any = call.get("action")
        if isinstance(action, dict):
            self._item = _completed_item(self._item.id, cast("Fields", action))
        self.complete()

    def complete(self) -> None:
        """Complete the item with what is known; the query may be ""."""
        self._log.complete_item(self._item)


def _completed_item(item_id: str, action: Fields) -> WebSearchItem:
    query, wire_action = _action(action)
    if wire_action is None:
        return WebSearchItem(id=item_id, query=query)
    return WebSearchItem(id=item_id, query=query, action=wire_action)


def _action(action: Fields) -> tuple[str, WebSearchAction | None]:
    """Return the query shown for an action, and its wire object; ("", None) for an unknown one."""
    url, pattern = _text(action, "url"), _text(action, "pattern")
    match action.get("type"):
        case "search":
            query = _text(action, "query")
            return query, SearchWebAction(query=query)
        case "open_page":
            return url, OpenPageAction(url=url)
        case "find_in_page" | "find":
            return f"{pattern!r} in {url}", FindInPageAction(url=url, pattern=pattern)
        case _:
            return "", None


def _text(fields: Fields, key: str) -> str:
    value: Any = fields.get(key)
    return value if isinstance(value, str) else ""
