"""A correct server that sends each text in one piece: `python one_piece_server.py app-server`.

It is the reference server, but it sends `item/started`, one delta and `item/completed` of a message
together when the message is complete.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from reference_server import cli
from tests.conformance.bugs.planting import Message, sent_to

DELTAS = {
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/textDelta",
    "item/reasoning/summaryTextDelta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
}


class Pieces:
    """Held-back messages of items that are not complete yet, for each client."""

    def __init__(self) -> None:
        self._held: dict[tuple[int | str, str, str, str], list[Message]] = {}

    @property
    def are_held(self) -> bool:
        """Return whether any message is held back now."""
        return any(self._held.values())

    def edit(self, client: int | str, message: Message) -> list[Message]:
        """Return the messages to send to a client instead of `message`."""
        method, params = message.get("method"), message.get("params") or {}
        item = params.get("item") or {"id": params.get("itemId", "")}
        key = client, params.get("threadId", ""), params.get("turnId", ""), item["id"]
        if method == "item/started" and item["type"] == "agentMessage":
            self._held[key] = [message]
            return []
        if method in DELTAS:
            self._hold_delta(self._held.setdefault(key, []), message)
            return []
        if method == "item/completed":
            return [*self._held.pop(key, []), message]
        return [message]

    def _hold_delta(self, held: list[Message], message: Message) -> None:
        last = held[-1] if held else message
        same = {**message["params"], "delta": ""} == {**last["params"], "delta": ""}
        if held and last["method"] == message["method"] and same:
            last["params"]["delta"] += message["params"]["delta"]
        else:
            held.append(message)


if __name__ == "__main__":
    # As the server itself does before anything heavy is imported; the edit imports it.
    cli._without_plugins()
    sent_to(Pieces().edit)
    sys.exit(cli.main(sys.argv[1:]))
