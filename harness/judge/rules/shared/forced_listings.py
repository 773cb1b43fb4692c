"""Answers to skills/list with `forceReload`, compared with the skills on disk."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before
from harness.judge.rules.shared.skill_listings import LIST, Entry, Listing, parse_listing
from harness.judge.rules.shared.skill_settings import settings_before
from harness.judge.rules.shared.view_queries import plain_folder, same_folder
from harness.judge.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import FileWritten
from harness.trace.order import marked_before
from harness.trace.trace import Trace


class ForcedListings(Monitor, ABC):
    """Base of rules that compare skills/list with `forceReload` to the files on disk."""

    def begin(self) -> None:
        """Start without earlier listings (`former`, forced or not)."""
        self.former: list[Listing] = []

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        """Judge the entries of a listing, one by one."""
        listing = parse_listing(self.conversation.request_of(frame), frame)
        if listing is None:
            return
        disk = disk_before(self.trace, listing.request) if listing.is_forced else None
        settled = disk is not None and not self.written_between(listing.request, listing.answer)
        for cwd in (
            dict.fromkeys(listing.requested_folders) if settled and listing.all_absolute else ()
        ):
            entry = listing.entry(cwd)
            if entry is not None and disk is not None:
                yield from self.judge_entry(listing, entry, cwd, disk)
        self.former.append(listing)

    def written_between(self, first: Frame, last: Frame) -> bool:
        """Return whether a file was written after a message was sent, and before another one."""
        marks = self.trace.marks_of(FileWritten)
        return any(marked_before(mark, last) and not marked_before(mark, first) for mark in marks)

    def judge_skill_listed(
        self,
        listing: Listing,
        entry: Entry,
        disk: Disk,
        file: SkillFile,
        reason: str,
        level: Level | None = None,
        clauses: tuple[str, ...] = (),
    ) -> Iterator[Outcome]:
        """Judge that an entry lists a skill; yield nothing if it does not and may be disabled."""
        subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
        if entry.skills_named(file.name):
            yield Witness(subject, listing.frames)
        elif not _may_be_disabled(self.trace, listing, disk, file):
            names = ", ".join(literal(skill.get("name")) for _, skill in entry.skills()) or "none"
            field = entry.field.part("skills")
            expected = f"{field.name}: the skill {literal(file.name)}, {reason} {file.path}"
            actual = f"skills of these names: {names}"
            places = (field.place,)
            yield Violation(
                subject, listing.frames, expected, actual, level, clauses=clauses, places=places
            )

    @abstractmethod
    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        """Judge the entry of the working directory `cwd` by the files on disk."""


def skills_in_root(disk: Disk, root: str) -> list[SkillFile]:
    """Return the complete skills in a skills folder."""
    return [file for file in disk.skills() if file.is_complete and same_folder(file.root, root)]


def _may_be_disabled(trace: Trace, listing: Listing, disk: Disk, file: SkillFile) -> bool:
    """Return whether a skill with the name of `file` may be disabled."""
    written = settings_before(trace, listing.answer)
    paths = {plain_folder(skill.path) for skill in disk.skills() if skill.name in (file.name, "")}
    return any(written[path].enabled is not True for path in paths & written.keys())


def user_skills(disk: Disk) -> list[SkillFile]:
    """Return the complete user skills that lie in every folder where a server may look for them."""
    roots = [skills_in_root(disk, root) for root in disk.user_roots()]
    first = roots[0] if roots else []
    return [file for file in first if all(file.name in {o.name for o in root} for root in roots)]


def roots_of(listing: Listing, disk: Disk, cwd: str) -> set[str]:
    """Return the skills folders that a listing had to scan for `cwd`, without the server's own."""
    roots = {*listing.extra_roots(cwd), *disk.user_roots(), disk.project_root(cwd)}
    return {plain_folder(root) for root in roots if root}


def known_skills(listing: Listing, disk: Disk, cwd: str) -> list[SkillFile]:
    """Return the complete skills that apply to `cwd` and share their name with no other one."""
    roots = roots_of(listing, disk, cwd)
    files = [file for file in disk.skills() if any(same_folder(file.root, root) for root in roots)]
    names = [file.name for file in files]
    return [file for file in files if file.is_complete and names.count(file.name) == 1]


def are_related(folder: str, other: str) -> bool:
    """Return whether two folders are the same, or one lies in the other."""
    first, second = plain_folder(folder), plain_folder(other)
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")
