"""Rules on skills and apps in the input of a turn: `$name` in a text, and an item beside it.

How a skill reaches the model the text does not say: its words, or the path of its file for the
model to read, wherever in the call they stand.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before, section
from harness.judge.rules.shared.skill_listings import LIST, Listing, listing
from harness.judge.rules.shared.skill_settings import settings_before
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, came_to_its_end
from harness.judge.rules.shared.view_queries import (
    completed_before,
    failed,
    plain_folder,
    request_subject,
    same_folder,
)
from harness.judge.rules.shared.violations import absent, instead, member, refusal
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.views import Conversation

_NAMED: Final = re.compile(r"\$([A-Za-z0-9][A-Za-z0-9_:-]*)")
# With other params a turn may be refused for those.
_PLAIN: Final = frozenset({"threadId", "input", "model"})
# After any other request about a thread it may have something else to do.
_QUIET: Final = frozenset({"turn/start", "thread/read"})


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of a turn/start: the names after a dollar sign, and the items beside the texts."""

    named: frozenset[str]
    said: str
    items: tuple[tuple[int, dict[str, Any]], ...]

    @classmethod
    def of(cls, request: Frame) -> "_Input":
        parts = [obj(part) for part in arr(obj(request.params).get("input"))]
        said = "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")
        items = [(at, part) for at, part in enumerate(parts) if part.get("type") != "text"]
        return cls(frozenset(_NAMED.findall(said)), said, tuple(items))

    def item(self, kind: str, path: str = "") -> int | None:
        """The index of an item of a type, with a path if one is given; None for no such item."""
        for at, part in self.items:
            mine = not path or plain_folder(text(part.get("path"))) == plain_folder(path)
            if part.get("type") == kind and mine:
                return at
        return None


@dataclass(frozen=True, slots=True)
class _Known:
    """A skill that lies on disk, is listed as enabled for the folder of a turn, and was named."""

    file: SkillFile
    disk: Disk

    def lines(self) -> set[str]:
        """Those lines of its file that no other file has."""
        others = {line for one in self.disk.skills() if one != self.file for line in _lines(one)}
        return _lines(self.file) - others

    def instructions(self) -> set[str]:
        """Those of its instructions."""
        return self.lines() & set(section(self.file.text or "", "Instructions"))


def _lines(file: SkillFile) -> set[str]:
    return {line.strip() for line in (file.text or "").splitlines()}


class _Listings:
    """The listings that a client got so far."""

    def __init__(self, trace: Trace, conversation: Conversation) -> None:
        self._trace = trace
        self._conversation = conversation
        self._former: list[Listing] = []

    def add(self, answer: Frame) -> None:
        """Take an answer to skills/list in."""
        shown = listing(self._conversation.request_of(answer), answer)
        if shown is not None:
            self._former.append(shown)

    def known(self, request: Frame, given: _Input) -> Iterator[_Known]:
        """The skills that the input of a turn/start names and that the server certainly has.

        Each lies in the project of the thread, or is of the user, and the last listing of that
        project showed it, as enabled. Nothing is known after a turn in another folder.
        """
        if not self._former or not given.named:
            return
        cwd, disk = self._folder(request), disk_before(self._trace, request)
        shown = [one for one in self._former if cwd and one.of(cwd)]
        entry = shown[-1].entry(cwd) if shown else None
        if disk is None or entry is None:
            return
        written = settings_before(self._trace, request)
        off = {path for path, setting in written.items() if setting.enabled is not True}
        roots = [disk.project_root(cwd), *disk.user_roots()]
        for file in disk.skills():
            scoped = any(same_folder(file.root, root) for root in roots if root)
            enabled = [skill.get("enabled") for _, skill in entry.named(file.name)] == [True]
            alike = [one for one in disk.skills() if one.name in (file.name, "")] == [file]
            certain = file.whole and scoped and enabled and alike
            if certain and file.name in given.named and plain_folder(file.path) not in off:
                yield _Known(file, disk)

    def _folder(self, request: Frame) -> str:
        """The working directory of a thread that was started in it and never left it."""
        thread = self._conversation.threads.get(text(obj(request.params).get("threadId")))
        if thread is None or thread.reply is None:
            return ""
        moved = any(
            one.method == "turn/start" and "cwd" in obj(one.params)
            for one in self._conversation.requests
        )
        folder = text(dig(thread.reply.result, "thread", "cwd"))
        return folder if posixpath.isabs(folder) and not moved else ""


class _Told(Calls):
    """The parts of a skill that the model calls of a turn hold."""

    def begin(self) -> None:
        super().begin()
        self._listings = _Listings(self.trace, self.conversation)

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        self._listings.add(frame)
        return None

    def judged(
        self, asked: TurnCalls, end: Frame, known: _Known, wanted: set[str], what: str
    ) -> Iterator[Outcome]:
        """That a call holds one of the texts, which the user did not say himself."""
        given = _Input.of(asked.request)
        wanted = {one for one in wanted if one not in given.said}
        subject = f"{asked.subject}, skill {known.file.name}"
        if any(wanted & {*call.held} for call in asked.calls):
            yield Witness(subject, (asked.request, end))
        elif wanted and came_to_its_end(end):
            expected = f"a model call with {what} of {known.file.path}"
            actual = f"{len(asked.calls)} call(s), and none holds any of that"
            where = member(asked.request, "input")
            yield absent(subject, (asked.request, end), expected, actual, where)


@rule(
    "skills.invoked",
    title="The model is told of a skill that is invoked",
    level=Level.SHOULD,
    needs=("skills",),
)
class Invoked(_Told):
    """Judges that a model call of a turn has the instructions of a skill, or the path of its file.

    Of a skill whose name stands after a dollar sign in the text, with a skill item beside it. What
    a call holds the text never says: SHOULD. Left open: skills that the harness did not write, that
    the last listing of the thread's directory did not show as enabled, and those that share their
    name; turns without a call, that were cut off, or run beside others.
    """

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        given = _Input.of(asked.request)
        for known in self._listings.known(asked.request, given):
            if given.item("skill", known.file.path) is not None:
                wanted = {known.file.path, *known.instructions()}
                yield from self.judged(asked, end, known, wanted, "the instructions, or the path,")


@rule(
    "skills.found-by-name",
    title="The model can tell a skill by its name alone",
    level=Level.INFO,
    needs=("skills",),
)
class FoundByName(_Told):
    """Records whether a model call of a turn has any line of a skill's file, or the file's path.

    Of a skill whose name stands after a dollar sign in the text, without a skill item: then the
    model tries to find it. How is not said, and a tool to find skills by name may do: INFO. Left
    open is what `skills.invoked` leaves open.
    """

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        given = _Input.of(asked.request)
        for known in self._listings.known(asked.request, given):
            if given.item("skill") is None:
                wanted = {known.file.path, *known.lines()}
                yield from self.judged(asked, end, known, wanted, "any line, or the path,")


class _Taken(Monitor):
    """A turn/start on a thread of ours that rests, with nothing unusual but its input."""

    def plain(self, request: Frame | None) -> bool:
        """Return whether a request can be refused for nothing but its input."""
        if request is None or request.deliberate:
            return False
        params = obj(request.params)
        thread_id = text(params.get("threadId"))
        thread = self.conversation.threads.get(thread_id)
        if thread is None or thread.reply is None or not set(params) <= _PLAIN:
            return False
        if any(frame.connection != request.connection for frame in self.trace.frames):
            return False
        asked = [
            one.method
            for one in self.conversation.requests
            if text(obj(one.params).get("threadId")) == thread_id
        ]
        turns = [one for one in thread.turns.values() if one.request is not request]
        rests = all(completed_before(self.trace, turn, request) for turn in turns)
        return rests and set(asked) <= _QUIET

    def judged(self, request: Frame, frame: Frame, at: int, what: str) -> Iterator[Outcome]:
        """That it was not refused; `at` is the index of the item."""
        subject, frames = request_subject(request), (request, frame)
        if not failed(frame):
            yield Witness(subject, frames)
        else:
            given = literal(member(request, "input", at).value)
            expected = f"a result, since {what}: {given}"
            yield instead(subject, frames, refusal(frame), expected)


@rule(
    "skills.invocation-taken",
    title="A turn that invokes a skill is taken",
    level=Level.MUST,
    needs=("skills",),
)
class InvocationTaken(_Taken):
    """Judges the answer to a turn/start whose input has a skill's name and a skill item.

    The name stands after a dollar sign in a text, and the item has the path of a skill that the
    harness wrote, and that the last listing of the thread's directory showed as enabled. Left open:
    threads with a turn in progress, of which anything but turns was asked for, or with several
    clients, and requests with further params.
    """

    def begin(self) -> None:
        self._listings = _Listings(self.trace, self.conversation)

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        self._listings.add(frame)
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        given = _Input.of(request) if request is not None else None
        if request is None or given is None or not given.items or not self.plain(request):
            return
        kinds = {text(part.get("type")) for _, part in given.items}
        items = [given.item("skill", one.file.path) for one in self._listings.known(request, given)]
        if kinds == {"skill"} and len(given.items) == len([at for at in items if at is not None]):
            yield from self.judged(request, frame, items[0] or 0, "the skill is listed")


@rule(
    "turn.mention-taken",
    title="A turn that mentions an app is taken",
    level=Level.SHOULD,
)
class MentionTaken(_Taken):
    """Judges the answer to a turn/start whose input has an app's slug and a mention item.

    The slug stands after a dollar sign in a text, and the path of the item is `app://` and an id.
    Which apps there are is not shown, and one that is not there may be refused: SHOULD. Left open:
    input with other items, and what `skills.invocation-taken` leaves open of threads.
    """

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        given = _Input.of(request) if request is not None else None
        if request is None or given is None or not given.items or not self.plain(request):
            return
        at = given.item("mention")
        apps = all(
            part.get("type") == "mention" and text(part.get("path")).startswith("app://")
            for _, part in given.items
        )
        if at is not None and apps and given.named:
            yield from self.judged(request, frame, at, "an input may mention an app")
