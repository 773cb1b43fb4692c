"""Evidence in messages that an operation was carried out, whatever its item's status is.

Files on disk are not examined here; scenarios check those.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final

from harness.judge.rules.items.outputs import predict_output
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

    The specification does not show the form of a change: it may be a unified diff, a plain one with
    `> ` before added lines, or the new content. False if the change has no lines to compare.
    """
    diff = text(obj(frame.params).get("diff"))
    added = set(_added_lines(diff.splitlines()))
    for change in map(obj, arr(item.get("changes"))):
        lines = text(change.get("diff")).splitlines()
        marked = any(line.startswith(("@@", "+", "-")) for line in lines)
        forms = [_added_lines(lines)] if marked else [lines, _plainly_added_lines(lines)]
        name = PurePosixPath(text(change.get("path"))).name
        for form in forms:
            expected_lines = {line for line in form if line.strip()}
            if name and name in diff and expected_lines and expected_lines <= added:
                return True
    return False


def is_only_writer(conversation: Conversation, item: ItemView, before: Frame) -> bool:
    """Return whether, before a message, only this fileChange item can have written its files.

    Commands and tools may write any file, and another fileChange item may name the same file. Items
    that were declined wrote nothing.
    """
    names = set(_file_names(item))
    for turn in conversation.turns.values():
        for other in turn.items.values():
            if other is item or not other.starts or came_before(before, other.starts[0]):
                continue
            if any(item_in(done).get("status") == "declined" for done in other.completions):
                continue
            if other.type in _WRITERS or (
                other.type == "fileChange" and names & set(_file_names(other))
            ):
                return False
    return True


def prints_expected_output(item: dict[str, Any]) -> bool:
    """Return whether an item's output has every line that its command certainly prints.

    False if the output of the command cannot be predicted, or is empty.
    """
    printed = predict_output(text(item.get("command")))
    output = text(item.get("aggregatedOutput"))
    if printed is None or not printed.lines:
        return False
    return not printed.lines.keys() - {line.strip() for line in output.splitlines()}


def exit_code(item: dict[str, Any]) -> int | float | None:
    """Return the exit code of an item, None if it has none."""
    code = item.get("exitCode")
    return code if isinstance(code, int | float) and not isinstance(code, bool) else None


def had_output_before(item: ItemView, frame: Frame) -> bool:
    """Return whether an item had output between its last start and a message.

    It then ran before the message.
    """
    first = item.first_delta
    if first is None or not item.starts:
        return False
    return came_between(item.starts[-1], first, frame)


def _added_lines(lines: Iterable[str]) -> list[str]:
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def _plainly_added_lines(lines: Iterable[str]) -> list[str]:
    return [line[2:] for line in lines if line.startswith("> ")]


def _file_names(item: ItemView) -> list[str]:
    item_frames = (*item.starts, *item.completions)
    changes = [change for frame in item_frames for change in arr(item_in(frame).get("changes"))]
    return [PurePosixPath(text(obj(change).get("path"))).name for change in changes]
