"""Listings of skills that had to scan the disk, against what lies there."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before
from harness.judge.rules.shared.skill_listings import LIST, Entry, Listing, listing
from harness.judge.rules.shared.skill_settings import settings_before
from harness.judge.rules.shared.view_queries import plain_folder, same_folder
from harness.judge.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import FileWritten
from harness.trace.order import marked_before
from harness.trace.trace import Trace


class ForcedListings(Monitor, ABC):
    """Compares listings that had to scan the disk with what lies there."""

    def begin(self) -> None:
        """No listing yet."""
        self.former: list[Listing] = []

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        """Judge the entries of a listing, one by one."""
        shown = listing(self.conversation.request_of(frame), frame)
        if shown is None:
            return
        disk = disk_before(self.trace, shown.request) if shown.forced else None
        settled = disk is not None and not self.written_between(shown.request, shown.answer)
        for cwd in dict.fromkeys(shown.asked) if settled and shown.all_absolute else ():
            entry = shown.entry(cwd)
            if entry is not None and disk is not None:
                yield from self.judged(shown, entry, cwd, disk)
        self.former.append(shown)

    def written_between(self, first: Frame, last: Frame) -> bool:
        """Return whether a file was written after a message was sent, and before another one."""
        marks = self.trace.marks_of(FileWritten)
        return any(marked_before(one, last) and not marked_before(one, first) for one in marks)

    def expected(
        self,
        shown: Listing,
        entry: Entry,
        disk: Disk,
        file: SkillFile,
        why: str,
        level: Level | None = None,
    ) -> Iterator[Outcome]:
        """That a skill is in an entry; nothing where one of its name may be disabled."""
        subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
        if entry.named(file.name):
            yield Witness(subject, shown.frames)
        elif not _may_be_disabled(self.trace, shown, disk, file):
            names = ", ".join(literal(skill.get("name")) for _, skill in entry.skills()) or "none"
            where = entry.where.part("skills")
            expected = f"{where.name}: the skill {literal(file.name)}, {why} {file.path}"
            actual = f"skills of these names: {names}"
            places = (where.place,)
            yield Violation(subject, shown.frames, expected, actual, level, places=places)

    @abstractmethod
    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        """Judge the entry of a working directory."""


def in_root(disk: Disk, root: str) -> list[SkillFile]:
    """The whole skills of which the folders lie in a folder."""
    return [one for one in disk.skills() if one.whole and same_folder(one.root, root)]


def _may_be_disabled(trace: Trace, shown: Listing, disk: Disk, file: SkillFile) -> bool:
    """Return whether a skill of that name may be disabled."""
    written = settings_before(trace, shown.answer)
    named = {plain_folder(one.path) for one in disk.skills() if one.name in (file.name, "")}
    return any(written[path].enabled is not True for path in named & written.keys())


def of_user(disk: Disk) -> list[SkillFile]:
    """The user's skills that lie wherever those may be looked for."""
    roots = [in_root(disk, root) for root in disk.user_roots()]
    first = roots[0] if roots else []
    return [one for one in first if all(one.name in {o.name for o in root} for root in roots)]


def roots_of(shown: Listing, disk: Disk, cwd: str) -> set[str]:
    """The folders that a listing had to scan for a working directory, those of the server apart."""
    roots = {*shown.extra_roots(cwd), *disk.user_roots(), disk.project_root(cwd)}
    return {plain_folder(root) for root in roots if root}


def known_alone(shown: Listing, disk: Disk, cwd: str) -> list[SkillFile]:
    """The whole skills of a directory of whose name there is certainly no other file for it."""
    roots = roots_of(shown, disk, cwd)
    mine = [one for one in disk.skills() if any(same_folder(one.root, root) for root in roots)]
    names = [one.name for one in mine]
    return [one for one in mine if one.whole and names.count(one.name) == 1]


def related(one: str, other: str) -> bool:
    """Return whether two folders are the same, or one lies in the other."""
    first, second = plain_folder(one), plain_folder(other)
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")
