"""Evidence in messages that an operation was carried out, whatever the status of its item says.

What really happened can only be seen on disk; scenarios check that.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final

from harness.judge.rules.items.outputs import printed_by
from harness.judge.rules.shared.view_queries import item_in
from harness.protocol.spec.item_types import types_with
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before, came_between
from harness.trace.views import Conversation, ItemView

DIFF: Final = "turn/diff/updated"
# Item types whose work may write any file.
_WRITERS: Final = frozenset(types_with("runs-elsewhere"))


def shows_change(frame: Frame, item: dict[str, Any]) -> bool:
    """Return whether a turn/diff/updated names a file of a fileChange item and adds the same lines.

    The text does not show the form of a change: it may be a unified diff or the whole new
    content. False where it has no line to look for.
    """
    diff = text(obj(frame.params).get("diff"))
    added = set(_added(diff.splitlines()))
    for change in map(obj, arr(item.get("changes"))):
        lines = text(change.get("diff")).splitlines()
        marked = any(line.startswith(("@@", "+", "-")) for line in lines)
        wanted = {line for line in (_added(lines) if marked else lines) if line.strip()}
        name = PurePosixPath(text(change.get("path"))).name
        if name and name in diff and wanted and wanted <= added:
            return True
    return False


def only_writer(conversation: Conversation, item: ItemView, before: Frame) -> bool:
    """Return whether nothing else in the trace can have written the files of a fileChange item.

    Commands and tools may write any file, and another fileChange item may name the same file.
    Items that ended as declined wrote nothing.
    """
    names = set(_names(item))
    for turn in conversation.turns.values():
        for other in turn.items.values():
            if other is item or not other.started or came_before(before, other.started[0]):
                continue
            if any(item_in(done).get("status") == "declined" for done in other.completed):
                continue
            if other.type in _WRITERS or (
                other.type == "fileChange" and names & set(_names(other))
            ):
                return False
    return True


def prints(shows: dict[str, Any]) -> bool:
    """Return whether an item's output contains every line that its command certainly prints."""
    printed = printed_by(text(shows.get("command")))
    output = text(shows.get("aggregatedOutput"))
    if printed is None or not printed.lines:
        return False
    return not printed.lines.keys() - {line.strip() for line in output.splitlines()}


def exit_code(shows: dict[str, Any]) -> int | float | None:
    """The exit code in an item, None where it has none."""
    code = shows.get("exitCode")
    return code if isinstance(code, int | float) and not isinstance(code, bool) else None


def printed_before(item: ItemView, frame: Frame) -> bool:
    """Return whether an item had output after it began and before a message.

    Then a first attempt ran.
    """
    first = item.first_delta
    if first is None or not item.started:
        return False
    return came_between(item.started[-1], first, frame)


def _added(lines: Iterable[str]) -> list[str]:
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def _names(item: ItemView) -> list[str]:
    shown = (*item.started, *item.completed)
    changes = [change for frame in shown for change in arr(item_in(frame).get("changes"))]
    return [PurePosixPath(text(obj(change).get("path"))).name for change in changes]
