"""Rules on skills that cannot be loaded: where their errors are told, and what else is listed.

What makes a skill one that cannot be loaded the text does not say. Certain is a SKILL.md without a
name: without a heading and without front matter, or not even a text.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import posixpath
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.forced_listings import ForcedListings, related, roots_of
from harness.judge.rules.shared.skill_files import Disk, disk_before
from harness.judge.rules.shared.skill_listings import LIST, Entry, Listing
from harness.judge.rules.shared.view_queries import failed, request_subject, same_folder
from harness.judge.rules.shared.violations import instead, refusal, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.skill_paths import skill_paths
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame


@rule(
    "skills.listed-despite-errors",
    title="A skill that cannot be loaded does not make the listing fail",
    level=Level.MUST,
    needs=("skills",),
)
class ListedDespiteErrors(Monitor):
    """Judges the answer to a skills/list for a project that has a SKILL.md without a name.

    An error in loading a skill is in the entry, and not an error of the request. Left open:
    requests with relative paths, which may be refused for those, and what the model's commands or
    file changes may have written.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        disk = disk_before(self.trace, request) if request is not None else None
        if request is None or disk is None or request.deliberate:
            return None
        asked = [text(one) for one in arr(obj(request.params).get("cwds"))]
        right = [right for _, right in skill_paths(LIST, request.params)]
        if not all([*right, *map(posixpath.isabs, asked)]):
            return None
        roots = {disk.project_root(cwd) for cwd in asked} - {""}
        broken = [one for one in disk.broken() if any(same_folder(one.root, r) for r in roots)]
        if not broken:
            return None
        subject, frames = request_subject(request), (request, frame)
        if not failed(frame):
            return [Witness(subject, frames)]
        expected = f"a result, with an error in the entry where {broken[0].path} is not loaded"
        return [instead(subject, frames, refusal(frame), expected)]


@rule(
    "skills.error-told",
    title="A skill that cannot be loaded is told in its entry",
    level=Level.SHOULD,
    needs=("skills",),
)
class ErrorTold(ForcedListings):
    """Judges the errors of a forced listing's entry whose project has a SKILL.md without a name.

    Where the entry has no skill that is named as the folder of that file is, there should be an
    error. What counts as one is not said: SHOULD of an empty file; of any other, which a server may
    read as a skill with some other name, INFO.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        broken = [one for one in disk.broken() if root and same_folder(one.root, root)]
        errors = arr(obj(entry.where.value).get("errors"))
        for file in broken:
            name = file.folder.rpartition("/")[2]
            subject = f"{shown.subject}, {name} in {entry.cwd}"
            if errors:
                yield Witness(subject, shown.frames)
            elif not entry.named(name):
                expected = f"an error, since {file.path} has no name"
                where, level = entry.where.part("errors"), None if file.text == "" else Level.INFO
                yield wrong(subject, shown.frames, where, expected, level=level)


@rule(
    "skills.errors-of-own-entry",
    title="The errors of an entry are those of its own skills",
    level=Level.MUST,
    needs=("skills",),
)
class ErrorsOfOwnEntry(ForcedListings):
    """Judges that no entry has an error with the path of a file of another project.

    Judged are files without a name in projects that are neither above nor below each other. And an
    entry without skills, of a folder that is there and for which the harness wrote no file, should
    have no errors: SHOULD, since the server may have skills of its own that are broken.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        mine, errors = roots_of(shown, disk, cwd), entry.where.part("errors")
        held = json.dumps(errors.value, ensure_ascii=False) if arr(errors.value) else ""
        for file in disk.broken():
            project = disk.project_of(file.root)
            if related(project, cwd) or any(related(file.root, root) for root in mine):
                continue
            subject = f"{shown.subject}, {file.path} in {entry.cwd}"
            if file.path not in held:
                yield Witness(subject, shown.frames)
                continue
            expected = f"errors of this entry only; {literal(file.path)} is of another project"
            yield wrong(subject, shown.frames, errors, expected)
        own = [one for one in disk.skills() if any(related(one.root, root) for root in mine)]
        if disk.is_there(cwd) and not own and not [*entry.skills()]:
            yield _empty(shown, entry, errors.value)


def _empty(shown: Listing, entry: Entry, errors: Any) -> Outcome:
    """That an entry without skills has no errors either."""
    subject, where = f"{shown.subject}, entry {entry.cwd}", entry.where.part("errors")
    if errors == []:
        return Witness(subject, shown.frames)
    level = Level.SHOULD
    expected = "[], since there is no skill here"
    return wrong(subject, shown.frames, where, expected, level=level)
