"""Rules on the members of an item that identify its operation and its process."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.printed_output import script_of
from harness.judge.rules.shared.view_queries import item_in, same_folder
from harness.judge.rules.shared.violations import differs, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import members_about
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.views import ItemView

# What an item of a type is about, from its beginning on.
_ABOUT = members_about()


@rule("item.same-work", title="An item is about the same work to its end", level=Level.SHOULD)
class SameWork(Monitor):
    """Judges that item/completed has the command, folder, tool, arguments or image of its start.

    item/started carries the full item and item/completed the final one: that what it is about stays
    the same is derived, so SHOULD. A shell or a sandbox may be named around a command on one side,
    and a folder may be another path to one of the same name. Left open: members that are empty on
    one side, folders that are relative, other types, items whose start was not seen.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return
        began, shows = item.started[-1], item_in(frame)
        compared = 0
        for key in _ABOUT.get(item.type, ()):
            before, now = _told(item_in(began), key), _told(shows, key)
            if not before or not now or (key == "cwd" and not _absolute(text(before), text(now))):
                continue
            compared += 1
            if not _same(key, before, now):
                where, also = member(frame, "item", key), (member(began, "item", key),)
                yield differs(item.subject, (began, frame), where, before, also=also)
                return
        if compared:
            yield Witness(item.subject, (began, frame))


def _told(item: dict[str, Any], key: str) -> str | dict[str, Any]:
    """A text or an object that an item has, empty for none."""
    return text(item.get(key)) or obj(item.get(key))


def _absolute(*folders: str) -> bool:
    return all(map(posixpath.isabs, folders))


def _same(key: str, before: str | dict[str, Any], now: str | dict[str, Any]) -> bool:
    if not isinstance(before, str) or not isinstance(now, str):
        return before == now
    if key == "cwd" or key == "path":
        alike = posixpath.basename(posixpath.normpath(before)) == posixpath.basename(
            posixpath.normpath(now)
        )
        return same_folder(before, now) or alike
    if key == "command":
        one, other = (" ".join(script_of(words).split()) for words in (before, now))
        return one == other or one.endswith(f" {other}") or other.endswith(f" {one}")
    return before == now


@dataclass(frozen=True, slots=True)
class _Ran:
    """A command with the process that ran it."""

    item: ItemView
    process: str
    began: Frame
    ended: Frame


@rule(
    "item.process-apart",
    title="Commands that run at the same time have a process each",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class ProcessApart(Monitor):
    """Judges the processId of commands of one thread that were running at the same time.

    Each names the terminal process of its command, when there is one. That two commands at once
    are in two of them is derived, so SHOULD. Left open: commands after one another, which may share
    a terminal, those without a processId, those of different threads.
    """

    def begin(self) -> None:
        self._ran: list[_Ran] = []

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return
        process = text(item_in(frame).get("processId"))
        if not process or not item.started:
            return
        this = _Ran(item, process, item.started[-1], frame)
        same_time = [one for one in self._ran if self._beside(one, this)]
        self._ran.append(this)
        for other in same_time:
            frames = (this.began, other.ended, frame)
            if other.process != process:
                yield Witness(item.subject, frames)
                continue
            where = member(frame, "item", "processId")
            also = (member(other.ended, "item", "processId"),)
            expected = f"another process than {other.item.subject} had, which ran at the same time"
            yield wrong(item.subject, frames, where, expected, also=also)
            return

    def _beside(self, one: _Ran, this: _Ran) -> bool:
        together = came_before(one.began, this.ended) and came_before(this.began, one.ended)
        return together and one.item.turn.thread_id == this.item.turn.thread_id
