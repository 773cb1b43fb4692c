"""Rules on skills/config/write: its answer, and its effect on the listing."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.forced_listings import ForcedListings, known_skills
from harness.judge.rules.shared.skill_files import Disk, SkillFile
from harness.judge.rules.shared.skill_listings import WRITE, Entry, Listing
from harness.judge.rules.shared.skill_settings import Setting, settings_at, settings_before
from harness.judge.rules.shared.view_queries import plain_folder
from harness.judge.rules.shared.violations import Member, different
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.marks import ServerEnded
from harness.trace.order import came_before, marked_before


@rule(
    "skills.config-reply-empty",
    title="skills/config/write is answered with {}",
    level=Level.MUST,
    needs=("skills",),
)
class ConfigReply(Monitor):
    """Judges that a successful skills/config/write is answered with an empty object.

    The specification does not forbid extra members: they are recorded as INFO.
    """

    @on_answer(WRITE)
    def on_write_answer(self, frame: Frame) -> Outcomes:
        return empty_reply(self.conversation.request_of(frame), frame)


class _Enabled(ForcedListings):
    """Base of rules on `enabled` of the skills that clients enabled and disabled."""

    # Whether the server was restarted between the request and the listing.
    after_restart = False

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        written = settings_at(self.trace, listing.request, listing.answer)
        for file in known_skills(listing, disk, cwd) if written else ():
            setting = written.get(plain_folder(file.path))
            if setting is None or setting.enabled is None:
                continue
            if self._was_restarted(setting.request, listing.request) is self.after_restart:
                yield from _judge_enabled(listing, entry, file, setting, enabled=setting.enabled)

    def _was_restarted(self, first: Frame, last: Frame) -> bool:
        ends = self.trace.marks_of(ServerEnded)
        return any(marked_before(mark, last) and not marked_before(mark, first) for mark in ends)


def _judge_enabled(
    listing: Listing, entry: Entry, file: SkillFile, setting: Setting, *, enabled: bool
) -> Iterator[Outcome]:
    """Judge that a listed skill has the configured value; whether it is listed is not judged."""
    skills = entry.skills_named(file.name)
    subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
    frames = (setting.request, *listing.frames)
    if any(skill.get("enabled") is enabled for _, skill in skills):
        yield Witness(subject, frames)
    elif skills:
        setting_field = (Member(setting.request, ("params", "enabled")),)
        yield different(subject, frames, skills[0][0].part("enabled"), enabled, also=setting_field)


@rule(
    "skills.config-applies",
    title="A skill is listed as enabled or disabled as it was configured",
    level=Level.MUST,
    needs=("skills",),
)
class ConfigApplies(_Enabled):
    """Judges `enabled` of a skill that a skills/config/write named, in the next forced listing.

    That is a skills/list with forceReload, requested after the write was accepted. Left open:
    whether a disabled skill is listed, skills that the harness did not write or whose name is not
    unique for the directory, overlapping requests, and the state after a restart.
    """


@rule(
    "skills.config-lasts",
    title="The configuration of a skill survives a restart",
    level=Level.SHOULD,
    needs=("skills",),
)
class ConfigLasts(_Enabled):
    """Judges `enabled` of a skill that a skills/config/write named before the server was restarted.

    The new server has the same home. `enabled` is part of the configuration, which is not limited
    to one process; the specification does not say how it is stored: SHOULD.
    """

    after_restart = True


@rule(
    "skills.config-one-skill",
    title="Configuring one skill leaves the others as they were",
    level=Level.SHOULD,
    needs=("skills",),
)
class OneSkill(ForcedListings):
    """Judges `enabled` of the skills that no skills/config/write named between two listings.

    Compared are two listings of the same directory with forceReload, with a request between them
    that named another path, perhaps of a skill with the same name. That nothing else changes
    follows from the path: SHOULD. Left open: the effect of other files that were written meanwhile.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        before = [
            earlier
            for earlier in self.former
            if earlier.is_forced
            and earlier.entries_of(cwd)
            and came_before(earlier.answer, listing.request)
        ]
        older = before[-1] if before else None
        then = older.entry(cwd) if older is not None else None
        if older is None or then is None:
            return
        written = settings_before(self.trace, listing.answer)
        since = {
            path: setting
            for path, setting in written.items()
            if came_before(older.request, setting.request)
        }
        if not since or self.written_between(older.request, listing.request):
            return
        for file in known_skills(listing, disk, cwd):
            now, former = entry.skills_named(file.name), then.skills_named(file.name)
            if plain_folder(file.path) in since or len(now) != 1 or len(former) != 1:
                continue
            subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
            requests = tuple(setting.request for setting in since.values())
            frames = (older.answer, *requests, *listing.frames)
            enabled = former[0][1].get("enabled")
            if now[0][1].get("enabled") is enabled:
                yield Witness(subject, frames)
            else:
                also = (former[0][0].part("enabled"),)
                field = now[0][0].part("enabled")
                yield different(subject, frames, field, enabled, also=also)
