"""Rules on the members of an item that identify its operation and its process."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.predicted_output import script_of
from harness.judge.rules.shared.view_queries import item_in, same_folder
from harness.judge.rules.shared.violations import different, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import members_about
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import ItemView

# The members that identify the work of an item, by item type.
_WORK_MEMBERS = members_about()


@rule("item.same-work", title="An item shows the same work from start to end", level=Level.SHOULD)
class SameWork(Monitor):
    """Judges that item/completed has the command, folder, tool, arguments or image of its start.

    item/started carries the full item and item/completed the final one: that the work stays the
    same is derived, so SHOULD. One side may name a shell or a sandbox around a command, and a
    folder may be another path with the same last name. Left open: members that are empty on one
    side, relative folders, other types, items whose start was not seen.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completions) > 1 or not item.starts:
            return
        start, shows = item.starts[-1], item_in(frame)
        compared = 0
        for key in _WORK_MEMBERS.get(item.type, ()):
            start_value, end_value = _member_value(item_in(start), key), _member_value(shows, key)
            if (
                not start_value
                or not end_value
                or (key == "cwd" and not _are_absolute(text(start_value), text(end_value)))
            ):
                continue
            compared += 1
            if not _is_same_work(key, start_value, end_value):
                field, also = member(frame, "item", key), (member(start, "item", key),)
                yield different(item.subject, (start, frame), field, start_value, also=also)
                return
        if compared:
            yield Witness(item.subject, (start, frame))


def _member_value(item: dict[str, Any], key: str) -> str | dict[str, Any]:
    """Return a member of an item that is a string or an object, empty for anything else."""
    return text(item.get(key)) or obj(item.get(key))


def _are_absolute(*folders: str) -> bool:
    return all(map(posixpath.isabs, folders))


def _is_same_work(
    key: str, start_value: str | dict[str, Any], end_value: str | dict[str, Any]
) -> bool:
    if not isinstance(start_value, str) or not isinstance(end_value, str):
        return start_value == end_value
    if key == "cwd" or key == "path":
        alike = posixpath.basename(posixpath.normpath(start_value)) == posixpath.basename(
            posixpath.normpath(end_value)
        )
        return same_folder(start_value, end_value) or alike
    if key == "command":
        one, other = (" ".join(script_of(words).split()) for words in (start_value, end_value))
        return one == other or one.endswith(f" {other}") or other.endswith(f" {one}")
    return start_value == end_value


@dataclass(frozen=True, slots=True)
class _CommandRun:
    """A command, the process that ran it, and the frames of its start and end."""

    item: ItemView
    process: str
    start: Frame
    end: Frame


@rule(
    "item.process-apart",
    title="Commands that run at the same time have a process each",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class ProcessApart(Monitor):
    """Judges that commands of one thread that ran at the same time have different processIds.

    Each names the terminal process of its command, if there is one. That simultaneous commands have
    different processes is derived, so SHOULD. Left open: sequential commands, which may share a
    terminal, those without a processId, those of different threads.
    """

    def begin(self) -> None:
        self._runs: list[_CommandRun] = []

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completions) > 1:
            return
        process = text(item_in(frame).get("processId"))
        if not process or not item.starts:
            return
        run = _CommandRun(item, process, item.starts[-1], frame)
        same_time = [earlier for earlier in self._runs if self._overlap(earlier, run)]
        self._runs.append(run)
        for other in same_time:
            frames = (run.start, other.end, frame)
            if other.process != process:
                yield Witness(item.subject, frames)
                continue
            field = member(frame, "item", "processId")
            also = (member(other.end, "item", "processId"),)
            expected = f"another process than {other.item.subject} had, which ran at the same time"
            yield wrong(item.subject, frames, field, expected, also=also)
            return

    def _overlap(self, first: _CommandRun, second: _CommandRun) -> bool:
        together = came_before(first.start, second.end) and came_before(second.start, first.end)
        return together and first.item.turn.thread_id == second.item.turn.thread_id
