"""Rules on skills and apps in the input of a turn: `$name` in a text, and an item beside it.

The specification does not say how a skill reaches the model, so its words, or the path of its file
for the model to read, may be anywhere in the call.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before, section_lines
from harness.judge.rules.shared.skill_listings import LIST, Listing, parse_listing
from harness.judge.rules.shared.skill_settings import settings_before
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, is_completed
from harness.judge.rules.shared.view_queries import (
    has_other_clients,
    is_failure,
    plain_folder,
    request_subject,
    same_folder,
    was_completed_before,
)
from harness.judge.rules.shared.violations import absent, member, refusal_member, unexpected_member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.views import Conversation

_NAMED: Final = re.compile(r"\$([A-Za-z0-9][A-Za-z0-9_:-]*)")
# A turn may be rejected for any other param.
_PLAIN: Final = frozenset({"threadId", "input", "model"})
# After any other request, the thread may be busy.
_QUIET: Final = frozenset({"turn/start", "thread/read"})


@dataclass(frozen=True, slots=True)
class _Input:
    """The input of a turn/start: the names after a dollar sign, and the items beside the texts."""

    skill_names: frozenset[str]
    joined_text: str
    items: tuple[tuple[int, dict[str, Any]], ...]

    @classmethod
    def of(cls, request: Frame) -> "_Input":
        parts = [obj(part) for part in arr(obj(request.params).get("input"))]
        joined = "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")
        items = [(index, part) for index, part in enumerate(parts) if part.get("type") != "text"]
        return cls(frozenset(_NAMED.findall(joined)), joined, tuple(items))

    def item(self, kind: str, path: str = "") -> int | None:
        """Return the index of an item with a type and, if given, a path; None if there is none."""
        for index, part in self.items:
            matches = not path or plain_folder(text(part.get("path"))) == plain_folder(path)
            if part.get("type") == kind and matches:
                return index
        return None


@dataclass(frozen=True, slots=True)
class _KnownSkill:
    """A named skill that is on disk and listed as enabled for the folder of a turn."""

    file: SkillFile
    disk: Disk

    def lines(self) -> set[str]:
        """Return the lines of its file that no other skill has."""
        other_lines = {
            line for file in self.disk.skills() if file != self.file for line in _lines(file)
        }
        return _lines(self.file) - other_lines

    def instructions(self) -> set[str]:
        """Return the lines of its instructions that no other skill has."""
        return self.lines() & set(section_lines(self.file.text or "", "Instructions"))


def _lines(file: SkillFile) -> set[str]:
    return {line.strip() for line in (file.text or "").splitlines()}


class _Listings:
    """Listings that a client received so far."""

    def __init__(self, trace: Trace, conversation: Conversation) -> None:
        self._trace = trace
        self._conversation = conversation
        self._former: list[Listing] = []

    def add(self, answer: Frame) -> None:
        """Add an answer to skills/list."""
        listing = parse_listing(self._conversation.request_of(answer), answer)
        if listing is not None:
            self._former.append(listing)

    def known_skills(self, request: Frame, turn_input: _Input) -> Iterator[_KnownSkill]:
        """Yield the skills that the input of a turn/start names and that the server certainly has.

        Each is in the project of the thread, or is the user's, and the last listing of that project
        showed it as enabled. Nothing is certain after a turn in another folder.
        """
        if not self._former or not turn_input.skill_names:
            return
        cwd, disk = self._folder(request), disk_before(self._trace, request)
        listings = [earlier for earlier in self._former if cwd and earlier.entries_of(cwd)]
        entry = listings[-1].entry(cwd) if listings else None
        if disk is None or entry is None:
            return
        written = settings_before(self._trace, request)
        off = {path for path, setting in written.items() if setting.enabled is not True}
        roots = [disk.project_root(cwd), *disk.user_roots()]
        for file in disk.skills():
            scoped = any(same_folder(file.root, root) for root in roots if root)
            enabled = [skill.get("enabled") for _, skill in entry.skills_named(file.name)] == [True]
            is_unique = [skill for skill in disk.skills() if skill.name in (file.name, "")] == [
                file
            ]
            certain = file.is_complete and scoped and enabled and is_unique
            if (
                certain
                and file.name in turn_input.skill_names
                and plain_folder(file.path) not in off
            ):
                yield _KnownSkill(file, disk)

    def _folder(self, request: Frame) -> str:
        """Return the folder of a request's thread, "" if it is unknown or may have changed."""
        thread = self._conversation.threads.get(text(obj(request.params).get("threadId")))
        if thread is None or thread.reply is None:
            return ""
        moved = any(
            frame.method == "turn/start" and "cwd" in obj(frame.params)
            for frame in self._conversation.requests
        )
        folder = text(dig(thread.reply.result, "thread", "cwd"))
        return folder if posixpath.isabs(folder) and not moved else ""


class _SkillCalls(Calls):
    """Base of rules on the parts of a skill in the model calls of a turn."""

    by_input = True

    def begin(self) -> None:
        super().begin()
        self._listings = _Listings(self.trace, self.conversation)

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        self._listings.add(frame)
        return None

    def judge_calls(
        self,
        turn_calls: TurnCalls,
        end: Frame,
        skill: _KnownSkill,
        texts: set[str],
        description: str,
    ) -> Iterator[Outcome]:
        """Judge that a call contains one of the texts that are not in the user's input."""
        turn_input = _Input.of(turn_calls.request)
        texts = {line for line in texts if line not in turn_input.joined_text}
        subject = f"{turn_calls.subject}, skill {skill.file.name}"
        if any(texts & {*call.held} for call in turn_calls.calls):
            yield Witness(subject, (turn_calls.request, end))
        elif texts and is_completed(end):
            expected = f"a model call with {description} of {skill.file.path}"
            actual = f"{len(turn_calls.calls)} call(s), and none holds any of that"
            field = member(turn_calls.request, "input")
            yield absent(subject, (turn_calls.request, end), expected, actual, field)


@rule(
    "skills.invoked",
    title="An invoked skill reaches the model",
    level=Level.SHOULD,
    needs=("skills",),
)
class Invoked(_SkillCalls):
    """Judges that a model call of a turn has the instructions of a skill, or the path of its file.

    Judged for a skill whose name stands after a dollar sign in an input text, with a skill item
    beside it. The specification does not say what a call contains: SHOULD. Left open: skills that
    the harness did not write, that the last listing of the thread's directory did not show as
    enabled, or whose name is not unique; turns without a call, that were cut off, or that
    overlapped with others of the same input.
    """

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn_input = _Input.of(turn_calls.request)
        for skill in self._listings.known_skills(turn_calls.request, turn_input):
            if turn_input.item("skill", skill.file.path) is not None:
                texts = {skill.file.path, *skill.instructions()}
                yield from self.judge_calls(
                    turn_calls, end, skill, texts, "the instructions, or the path,"
                )


@rule(
    "skills.found-by-name",
    title="The model can tell a skill by its name alone",
    level=Level.INFO,
    needs=("skills",),
)
class FoundByName(_SkillCalls):
    """Records whether a model call of a turn has any line of a skill's file, or the file's path.

    Recorded for a skill whose name stands after a dollar sign in an input text, without a skill
    item: then the model tries to find it. The specification does not say how, and a tool to find
    skills by name may do: INFO. Left open: as for `skills.invoked`.
    """

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn_input = _Input.of(turn_calls.request)
        for skill in self._listings.known_skills(turn_calls.request, turn_input):
            if turn_input.item("skill") is None:
                texts = {skill.file.path, *skill.lines()}
                yield from self.judge_calls(turn_calls, end, skill, texts, "any line, or the path,")


class _PlainStart(Monitor):
    """Base of rules on a turn/start on an idle thread, with nothing unusual but its input."""

    def is_plain(self, request: Frame | None) -> bool:
        """Return whether a request can be rejected for nothing but its input."""
        if request is None or request.deliberate:
            return False
        params = obj(request.params)
        thread_id = text(params.get("threadId"))
        thread = self.conversation.threads.get(thread_id)
        if thread is None or thread.reply is None or not set(params) <= _PLAIN:
            return False
        if has_other_clients(self.trace, request):
            return False
        methods = [
            request_sent.method
            for request_sent in self.conversation.requests
            if text(obj(request_sent.params).get("threadId")) == thread_id
        ]
        turns = [turn for turn in thread.turns.values() if turn.request is not request]
        rests = all(was_completed_before(self.trace, turn, request) for turn in turns)
        return rests and set(methods) <= _QUIET

    def judge_accepted(
        self, request: Frame, frame: Frame, index: int, reason: str
    ) -> Iterator[Outcome]:
        """Judge that the request was not rejected; a finding shows the input item at `index`."""
        subject, frames = request_subject(request), (request, frame)
        if not is_failure(frame):
            yield Witness(subject, frames)
        else:
            item_shown = literal(member(request, "input", index).value)
            expected = f"a result, since {reason}: {item_shown}"
            yield unexpected_member(subject, frames, refusal_member(frame), expected)


@rule(
    "skills.invocation-taken",
    title="A turn that invokes a skill is accepted",
    level=Level.MUST,
    needs=("skills",),
)
class InvocationTaken(_PlainStart):
    """Judges the answer to a turn/start whose input has a skill's name and a skill item.

    The name stands after a dollar sign in an input text, and the item has the path of a skill that
    the harness wrote, and that the last listing of the thread's directory showed as enabled. Left
    open: threads with a turn in progress, with requests other than turns, or with several clients,
    and requests with further params.
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
        turn_input = _Input.of(request) if request is not None else None
        if (
            request is None
            or turn_input is None
            or not turn_input.items
            or not self.is_plain(request)
        ):
            return
        kinds = {text(part.get("type")) for _, part in turn_input.items}
        items = [
            turn_input.item("skill", skill.file.path)
            for skill in self._listings.known_skills(request, turn_input)
        ]
        if kinds == {"skill"} and len(turn_input.items) == len(
            [index for index in items if index is not None]
        ):
            yield from self.judge_accepted(request, frame, items[0] or 0, "the skill is listed")


@rule(
    "turn.mention-taken",
    title="A turn that mentions an app is accepted",
    level=Level.SHOULD,
)
class MentionTaken(_PlainStart):
    """Judges the answer to a turn/start whose input has an app's slug and a mention item.

    The slug stands after a dollar sign in an input text, and the path of the item is `app://` and
    an id. The existing apps are not shown, and an unknown one may be rejected: SHOULD. Left open:
    input with other items, and threads as for `skills.invocation-taken`.
    """

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        turn_input = _Input.of(request) if request is not None else None
        if (
            request is None
            or turn_input is None
            or not turn_input.items
            or not self.is_plain(request)
        ):
            return
        index = turn_input.item("mention")
        apps = all(
            part.get("type") == "mention" and text(part.get("path")).startswith("app://")
            for _, part in turn_input.items
        )
        if index is not None and apps and turn_input.skill_names:
            yield from self.judge_accepted(request, frame, index, "an input may mention an app")
