"""Broken: the reference server, a second late, with many messages missing and others wrong.

A judge must report the missing and the wrong messages, and must not wait for the missing ones in
each of the dozens of scenarios that need them: the suite may take at most three times as long as on
a correct server. The arguments are those of `agent`.
"""

import json
import sys
import threading
from typing import Any

from reference_server.cli import main
from reference_server.outbox import Outbox

START_SECONDS = 1.0
NEVER_TOLD = frozenset(
    {
        "thread/archived",
        "thread/closed",
        "thread/compacted",
        "thread/name/updated",
        "thread/tokenUsage/updated",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/plan/updated",
        "item/commandExecution/outputDelta",
        "item/fileChange/outputDelta",
        "item/mcpToolCall/progress",
        "item/reasoning/summaryTextDelta",
        "model/rerouted",
        "serverRequest/resolved",
        "skills/changed",
    }
)
NEVER_STARTED = frozenset({"contextCompaction", "enteredReviewMode", "exitedReviewMode"})

Json = dict[str, Any]


def changed(line: bytes) -> bytes | None:
    """Return the line to send to the client instead of the server's, None to send nothing."""
    message: Json = json.loads(line)
    if "method" not in message:
        garble_result(message.get("result") or {})
        return json.dumps(message).encode()
    params: Json = message.get("params") or {}
    item: Json = params.get("item") or {}
    if "id" not in message:
        if message["method"] in NEVER_TOLD or item.get("type") in NEVER_STARTED:
            return None
        garble_item(item, is_whole=message["method"] == "item/completed")
    return json.dumps(message).encode()


def garble_result(result: Json) -> None:
    """Change a result in place: times, previews, histories and the order of lists."""
    if isinstance(result.get("data"), list):
        result["data"].reverse()
    thread = result.get("thread")
    for one in [thread] if isinstance(thread, dict) else []:
        one["createdAt"] *= 1000
        one["preview"] = "none"
        one["turns"] = one["turns"][1:]


def garble_item(item: Json, *, is_whole: bool) -> None:
    """Change a started item in place, or a completed one with `is_whole`."""
    match item.get("type"):
        case "userMessage":
            item["content"] = []
        case "commandExecution" if is_whole:
            item["aggregatedOutput"] = ""
        case "mcpToolCall" if is_whole:
            item["status"] = "inProgress"
        case _:
            pass


def break_outboxes() -> None:
    put, put_delta = Outbox.put, Outbox.put_delta

    def put_changed(self: Outbox, message: bytes) -> None:
        line = changed(message)
        if line is not None:
            put(self, line)

    def put_told_delta(self: Outbox, prefix: bytes, line: bytes) -> None:
        if changed(line) is not None:
            put_delta(self, prefix, line)

    Outbox.put, Outbox.put_delta = put_changed, put_told_delta


if __name__ == "__main__":
    threading.Event().wait(START_SECONDS)
    break_outboxes()
    sys.exit(main(sys.argv[1:]))
