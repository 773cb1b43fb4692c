"""Rules on where skills come from: the project, the user, further folders, and a cache.

Any other skill in a listing is the server's own. Nothing is judged of what the model's commands or
file changes may have written, and that a disabled skill is listed the text does not say.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Witness, rule
from harness.judge.rules.shared.forced_listings import (
    ForcedListings,
    in_root,
    of_user,
    related,
    roots_of,
)
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before
from harness.judge.rules.shared.skill_listings import Entry, Listing
from harness.judge.rules.shared.view_queries import same_folder
from harness.judge.rules.shared.violations import instead
from harness.judge.verdict import Level
from harness.trace.difference import literal
from harness.trace.order import came_before


@rule(
    "skills.project-listed",
    title="The skills of a project are listed",
    level=Level.MUST,
    needs=("skills",),
)
class ProjectListed(ForcedListings):
    """Judges that a skill in `{cwd}/.agent/skills` is in the entry of that directory.

    The skill has a folder of its own name, and in it a SKILL.md that has all that the text lists.
    Judged in listings with forceReload. The name of `.agent` is that of the target's profile.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        for file in in_root(disk, root) if root else ():
            yield from self.expected(shown, entry, disk, file, "of the file")


@rule(
    "skills.user-listed",
    title="The skills of the user are listed for every directory",
    level=Level.MUST,
    needs=("skills",),
)
class UserListed(ForcedListings):
    """Judges that a skill in the user's folder of skills is in every entry.

    That folder is `skills` in the home, and the harness tells its home in two ways: judged are
    skills that lie both in `skills` and in `.agent/skills` of it. That they are the user's wherever
    he works is derived: where another entry has the skill, SHOULD. As for a project's skills.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        for file in of_user(disk):
            elsewhere = any(one.named(file.name) for one in shown.entries)
            level = Level.SHOULD if elsewhere else None
            yield from self.expected(shown, entry, disk, file, "of the user's file", level)


@rule(
    "skills.extra-roots-scanned",
    title="Skills in extra roots are listed for their own directory",
    level=Level.MUST,
    needs=("skills",),
)
class ExtraRoots(ForcedListings):
    """Judges that a skill in one of the extraUserRoots of a directory is in the entry of that one.

    Such a root is scanned as the user's scope. As for a project's skills.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        for root in shown.extra_roots(cwd):
            for file in in_root(disk, root):
                yield from self.expected(shown, entry, disk, file, "of the extra root's file")


@rule(
    "skills.own-directory",
    title="What belongs to one directory is not listed for another",
    level=Level.MUST,
    needs=("skills",),
)
class OwnDirectory(ForcedListings):
    """Judges that the skills of a project, and of extra roots, are in no other entry.

    Judged are skills of a name that the harness wrote nowhere else, in entries of directories that
    are neither above nor below the one that the skill belongs to: which of their skills those have
    is open. As for a project's skills.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        mine = roots_of(shown, disk, cwd)
        for other in dict.fromkeys(shown.asked):
            if related(other, cwd):
                continue
            roots = {disk.project_root(other), *shown.extra_roots(other)} - {""}
            for file in (one for root in sorted(roots) for one in in_root(disk, root)):
                alike = [one for one in disk.skills() if one.name in (file.name, "")]
                known = any(same_folder(one.root, root) for one in alike for root in mine)
                if len(alike) > 1 or known or any(related(file.root, root) for root in mine):
                    continue
                subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
                found = entry.named(file.name)
                if not found:
                    yield Witness(subject, shown.frames)
                    continue
                expected = f"no skill {literal(file.name)} here: it belongs to {other} alone"
                yield instead(subject, shown.frames, found[0][0].part("name"), expected)


@rule(
    "skills.reload-rescans",
    title="A forced reload shows what lies on disk now",
    level=Level.MUST,
    needs=("skills",),
)
class ReloadRescans(ForcedListings):
    """Judges what a listing with forceReload shows of skills that changed since an earlier listing.

    One that was written since is listed, one that was removed since is not, and one that is listed
    has its new description. Judged are the skills of a project, of a name that the harness wrote
    nowhere else, whose file an earlier listing of the same directory could have seen otherwise.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        before = [
            one for one in self.former if one.of(cwd) and came_before(one.answer, shown.request)
        ]
        former = disk_before(self.trace, before[-1].request) if before and root else None
        if former is None:
            return
        now, then = in_root(disk, root), in_root(former, root)
        names = {one.name: one for one in now}
        elsewhere = {one.name for one in disk.skills() if not same_folder(one.root, root)}
        for file in now:
            older = next((one for one in then if one.path == file.path), None)
            if older is None:
                yield from self.expected(
                    shown, entry, disk, file, "which was written since the last listing:"
                )
            elif older.description != file.description and entry.named(file.name):
                yield self._described(shown, entry, file, older)
        for file in then:
            if (
                file.name not in names
                and file.path not in disk.files
                and not elsewhere & {file.name, ""}
            ):
                yield self._gone(shown, entry, file)

    def _gone(self, shown: Listing, entry: Entry, file: SkillFile) -> Outcome:
        subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
        found = entry.named(file.name)
        if not found:
            return Witness(subject, shown.frames)
        expected = f"no skill {literal(file.name)}: {file.path} was removed"
        return instead(subject, shown.frames, found[0][0].part("name"), expected)

    def _described(
        self, shown: Listing, entry: Entry, file: SkillFile, older: SkillFile
    ) -> Outcome:
        subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
        found = entry.named(file.name)
        stale = [where for where, skill in found if skill.get("description") == older.description]
        if not stale or len(found) > 1:
            return Witness(subject, shown.frames)
        expected = f"not the description that {file.path} had before it was written anew"
        return instead(subject, shown.frames, stale[0].part("description"), expected)
