"""Rules on the sources of skills: the project, the user, further folders, and a cache.

Any other skill in a listing is the server's own. Nothing is judged after commands or file changes
of the model; the specification does not say that a disabled skill is listed.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Witness, rule
from harness.judge.rules.shared.forced_listings import (
    ForcedListings,
    are_related,
    roots_of,
    skills_in_root,
    user_skills,
)
from harness.judge.rules.shared.skill_files import Disk, SkillFile, disk_before
from harness.judge.rules.shared.skill_listings import Entry, Listing
from harness.judge.rules.shared.view_queries import same_folder
from harness.judge.rules.shared.violations import unexpected_member
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

    The skill has a folder of its own name with a SKILL.md that has everything that the
    specification lists. Judged in listings with forceReload. The name of `.agent` is that of the
    target's profile.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        for file in skills_in_root(disk, root) if root else ():
            yield from self.judge_skill_listed(
                listing, entry, disk, file, "of the file", clauses=("skill.scope-project",)
            )


@rule(
    "skills.user-listed",
    title="The skills of the user are listed for every directory",
    level=Level.MUST,
    needs=("skills",),
)
class UserListed(ForcedListings):
    """Judges that a skill in the user's folder of skills is in every entry.

    That folder is `skills` in the home, and the harness sets its home in two ways: judged are
    skills that lie both in `skills` and in `.agent/skills` of it. That they apply to every
    directory is derived: SHOULD if another entry has the skill. Otherwise as for
    skills.project-listed.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        for file in user_skills(disk):
            elsewhere = any(other.skills_named(file.name) for other in listing.entries)
            level = Level.SHOULD if elsewhere else None
            yield from self.judge_skill_listed(
                listing, entry, disk, file, "of the user's file", level
            )


@rule(
    "skills.extra-roots-scanned",
    title="Skills in extra roots are listed for their own directory",
    level=Level.MUST,
    needs=("skills",),
)
class ExtraRoots(ForcedListings):
    """Judges that a skill in one of the extraUserRoots of a directory is in that directory's entry.

    Such a root is scanned as the user's scope. Otherwise as for skills.project-listed.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        for root in listing.extra_roots(cwd):
            for file in skills_in_root(disk, root):
                yield from self.judge_skill_listed(
                    listing, entry, disk, file, "of the extra root's file"
                )


@rule(
    "skills.own-directory",
    title="Skills of one directory are not listed for another",
    level=Level.MUST,
    needs=("skills",),
)
class OwnDirectory(ForcedListings):
    """Judges that the skills of a project, and of extra roots, are in no other entry.

    Judged for skills whose name the harness wrote nowhere else, in entries of directories that are
    neither above nor below the skill's own, since related directories may list each other's skills.
    Otherwise as for skills.project-listed.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        own_roots = roots_of(listing, disk, cwd)
        for other in dict.fromkeys(listing.requested_folders):
            if are_related(other, cwd):
                continue
            roots = {disk.project_root(other), *listing.extra_roots(other)} - {""}
            for file in (skill for root in sorted(roots) for skill in skills_in_root(disk, root)):
                same_name = [skill for skill in disk.skills() if skill.name in (file.name, "")]
                is_known = any(
                    same_folder(skill.root, root) for skill in same_name for root in own_roots
                )
                if (
                    len(same_name) > 1
                    or is_known
                    or any(are_related(file.root, root) for root in own_roots)
                ):
                    continue
                subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
                skills = entry.skills_named(file.name)
                if not skills:
                    yield Witness(subject, listing.frames)
                    continue
                expected = f"no skill {literal(file.name)} here: it belongs to {other} alone"
                yield unexpected_member(
                    subject, listing.frames, skills[0][0].part("name"), expected
                )


@rule(
    "skills.reload-rescans",
    title="A forced reload shows what lies on disk now",
    level=Level.MUST,
    needs=("skills",),
)
class ReloadRescans(ForcedListings):
    """Judges a listing with forceReload for skills that changed since an earlier listing.

    A new one is listed, a removed one is not, and a changed one has its new description. Judged for
    the skills of a project whose name the harness wrote nowhere else, and whose file an earlier
    listing of the same directory could have seen otherwise.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        root = disk.project_root(cwd)
        before = [
            earlier
            for earlier in self.former
            if earlier.entries_of(cwd) and came_before(earlier.answer, listing.request)
        ]
        former = disk_before(self.trace, before[-1].request) if before and root else None
        if former is None:
            return
        now, then = skills_in_root(disk, root), skills_in_root(former, root)
        names = {skill.name: skill for skill in now}
        elsewhere = {skill.name for skill in disk.skills() if not same_folder(skill.root, root)}
        for file in now:
            older = next((skill for skill in then if skill.path == file.path), None)
            if older is None:
                yield from self.judge_skill_listed(
                    listing, entry, disk, file, "which was written since the last listing:"
                )
            elif older.description != file.description and entry.skills_named(file.name):
                yield self._judge_description(listing, entry, file, older)
        for file in then:
            if (
                file.name not in names
                and file.path not in disk.files
                and not elsewhere & {file.name, ""}
            ):
                yield self._judge_removed(listing, entry, file)

    def _judge_removed(self, listing: Listing, entry: Entry, file: SkillFile) -> Outcome:
        subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
        skills = entry.skills_named(file.name)
        if not skills:
            return Witness(subject, listing.frames)
        expected = f"no skill {literal(file.name)}: {file.path} was removed"
        return unexpected_member(subject, listing.frames, skills[0][0].part("name"), expected)

    def _judge_description(
        self, listing: Listing, entry: Entry, file: SkillFile, older: SkillFile
    ) -> Outcome:
        subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
        skills = entry.skills_named(file.name)
        stale = [field for field, skill in skills if skill.get("description") == older.description]
        if not stale or len(skills) > 1:
            return Witness(subject, listing.frames)
        expected = f"not the description that {file.path} had before it was written anew"
        return unexpected_member(subject, listing.frames, stale[0].part("description"), expected)
