"""Rules on skills that cannot be loaded: their errors, and the rest of the listing.

The specification does not say when a skill cannot be loaded. It is certain for a SKILL.md without a
name: it has no heading and no front matter, or is not text.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import posixpath
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.forced_listings import ForcedListings, are_related, roots_of
from harness.judge.rules.shared.skill_files import Disk, disk_before
from harness.judge.rules.shared.skill_listings import LIST, WRITE, Entry, Listing, parse_listing
from harness.judge.rules.shared.view_queries import is_failure, request_subject, same_folder
from harness.judge.rules.shared.violations import refusal_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.skill_paths import skill_paths
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import FileWritten
from harness.trace.order import came_before, marked_before

_HANDSHAKE = ("initialize", "initialized")


@rule(
    "skills.listed-despite-errors",
    title="A skill that cannot be loaded does not make the listing fail",
    level=Level.MUST,
    needs=("skills",),
)
class ListedDespiteErrors(Monitor):
    """Judges the answer to a skills/list for a project that has a SKILL.md without a name.

    An error in loading a skill is in the entry, and not an error of the request. Left open:
    requests with relative paths, which may be rejected for those, and files that the model's
    commands or file changes may have written.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        disk = disk_before(self.trace, request) if request is not None else None
        if request is None or disk is None or request.deliberate:
            return None
        folders = [text(path) for path in arr(obj(request.params).get("cwds"))]
        right = [right for _, right in skill_paths(LIST, request.params)]
        if not all([*right, *map(posixpath.isabs, folders)]):
            return None
        roots = {disk.project_root(cwd) for cwd in folders} - {""}
        broken = [
            file for file in disk.nameless_skills() if any(same_folder(file.root, r) for r in roots)
        ]
        if not broken:
            return None
        subject, frames = request_subject(request), (request, frame)
        if not is_failure(frame):
            return [Witness(subject, frames)]
        expected = f"a result, with an error in the entry where {broken[0].path} is not loaded"
        return [unexpected_member(subject, frames, refusal_member(frame), expected)]


@rule(
    "skills.error-told",
    title="A skill that cannot be loaded has an error in its entry",
    level=Level.SHOULD,
    needs=("skills",),
)
class ErrorTold(ForcedListings):
    """Judges the errors of an entry whose project has a SKILL.md without a name.

    Judged in listings with forceReload: if the entry has no skill that is named like the folder of
    that file, there should be an error. The specification does not say what counts as one: SHOULD
    for an empty file; INFO for any other, which a server may read as a skill with some other name.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        broken = [
            skill for skill in disk.nameless_skills() if root and same_folder(skill.root, root)
        ]
        errors = arr(obj(entry.field.value).get("errors"))
        for file in broken:
            name = file.folder.rpartition("/")[2]
            subject = f"{listing.subject}, {name} in {entry.cwd}"
            if errors:
                yield Witness(subject, listing.frames)
            elif not entry.skills_named(name):
                expected = f"an error, since {file.path} has no name"
                field, level = entry.field.part("errors"), None if file.text == "" else Level.INFO
                yield wrong(subject, listing.frames, field, expected, level=level)


@rule(
    "skills.errors-of-own-entry",
    title="The errors of an entry are those of its own skills",
    level=Level.MUST,
    needs=("skills",),
)
class ErrorsOfOwnEntry(ForcedListings):
    """Judges that no entry has an error with the path of a file of another project.

    Judged for each SKILL.md without a name, in projects that are neither above nor below each
    other. Also, an entry without skills, of an existing folder without files of the harness, should
    have no errors: SHOULD, since the server may have broken skills of its own.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        own_roots, errors = roots_of(listing, disk, cwd), entry.field.part("errors")
        error_text = json.dumps(errors.value, ensure_ascii=False) if arr(errors.value) else ""
        for file in disk.nameless_skills():
            project = disk.project_of(file.root)
            if are_related(project, cwd) or any(are_related(file.root, root) for root in own_roots):
                continue
            subject = f"{listing.subject}, {file.path} in {entry.cwd}"
            if file.path not in error_text:
                yield Witness(subject, listing.frames)
                continue
            expected = f"errors of this entry only; {literal(file.path)} is of another project"
            yield wrong(subject, listing.frames, errors, expected)
        own = [
            skill
            for skill in disk.skills()
            if any(are_related(skill.root, root) for root in own_roots)
        ]
        if disk.is_there(cwd) and not own and not [*entry.skills()]:
            yield _judge_empty_entry(listing, entry, errors.value)


def _judge_empty_entry(listing: Listing, entry: Entry, errors: Any) -> Outcome:
    """Judge that an entry without skills has no errors either."""
    subject, field = f"{listing.subject}, entry {entry.cwd}", entry.field.part("errors")
    if errors == []:
        return Witness(subject, listing.frames)
    level = Level.SHOULD
    expected = "[], since there is no skill here"
    return wrong(subject, listing.frames, field, expected, level=level)


@rule(
    "skills.errors-told-again",
    title="An error in loading a skill is told in each listing",
    level=Level.MUST,
    needs=("skills",),
)
class ErrorsToldAgain(Monitor):
    """Judges that an entry has errors if an earlier one of its folder had some.

    A listing that a server remembers has the errors of its skills as well. Judged for listings with
    the same extra roots, with forceReload or without, if nothing was written since the first
    request: without forceReload the answer may be as old as that. Left open: what the errors say;
    disabled skills, which need not be loaded; relative paths; files that commands or file changes
    of the model may have written.
    """

    def begin(self) -> None:
        self._former: list[Listing] = []

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        listing = parse_listing(self.conversation.request_of(frame), frame)
        if listing is None or not listing.all_absolute:
            return
        is_known = disk_before(self.trace, listing.request) is not None
        for entry in listing.entries if is_known else ():
            earlier = self._entry_with_errors(listing, entry.cwd)
            if earlier is None:
                continue
            former, told = earlier
            subject, errors = f"{listing.subject}, entry {entry.cwd}", entry.field.part("errors")
            frames = (*former.frames, *listing.frames)
            if arr(errors.value):
                yield Witness(subject, frames)
            else:
                expected = "an error, as nothing was written since one was told"
                yield wrong(subject, frames, errors, expected, also=(told.field.part("errors"),))
        self._former.append(listing)

    def _first_request(self, listing: Listing) -> Frame:
        """Return the first request after the handshake: a server may remember what it saw then."""
        own = (frame for frame in self.trace.frames if not frame.from_target)
        return next((frame for frame in own if frame.method not in _HANDSHAKE), listing.request)

    def _entry_with_errors(self, listing: Listing, cwd: str) -> tuple[Listing, Entry] | None:
        """Return the last entry of a folder that had errors, if nothing has changed since."""
        for former in reversed(self._former):
            entry = former.entry(cwd)
            if entry is None or not arr(obj(entry.field.value).get("errors")):
                continue
            is_same = former.extra_roots(cwd) == listing.extra_roots(cwd)
            began = self._first_request(listing)
            written = any(
                marked_before(mark, listing.answer) and not marked_before(mark, began)
                for mark in self.trace.marks_of(FileWritten)
            )
            disabled = any(
                request.method == WRITE and not came_before(request, former.request)
                for request in self.conversation.requests
            )
            return (former, entry) if is_same and not written and not disabled else None
        return None
