"""Rules on skills/config/write: its answer, and what the listing shows of it afterwards."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.forced_listings import ForcedListings, known_alone
from harness.judge.rules.shared.skill_files import Disk, SkillFile
from harness.judge.rules.shared.skill_listings import WRITE, Entry, Listing
from harness.judge.rules.shared.skill_settings import Setting, settings_at, settings_before
from harness.judge.rules.shared.view_queries import plain_folder
from harness.judge.rules.shared.violations import Member, differs
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

    Members beyond that are extra members, which nothing forbids: recorded as INFO.
    """

    @on_answer(WRITE)
    def on_write_answer(self, frame: Frame) -> Outcomes:
        return empty_reply(self.conversation.request_of(frame), frame)


class _Enabled(ForcedListings):
    """Judges `enabled` of the skills that clients enabled and disabled."""

    # Whether the server was started again between the request and the listing.
    after_restart = False

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        written = settings_at(self.trace, shown.request, shown.answer)
        for file in known_alone(shown, disk, cwd) if written else ():
            setting = written.get(plain_folder(file.path))
            if setting is None or setting.enabled is None:
                continue
            if self._restarted(setting.request, shown.request) is self.after_restart:
                yield from _follows(shown, entry, file, setting, enabled=setting.enabled)

    def _restarted(self, first: Frame, last: Frame) -> bool:
        ends = self.trace.marks_of(ServerEnded)
        return any(marked_before(one, last) and not marked_before(one, first) for one in ends)


def _follows(
    shown: Listing, entry: Entry, file: SkillFile, setting: Setting, *, enabled: bool
) -> Iterator[Outcome]:
    """That a skill is listed with what was written; whether it is listed is for other rules."""
    found = entry.named(file.name)
    subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
    frames = (setting.request, *shown.frames)
    if any(skill.get("enabled") is enabled for _, skill in found):
        yield Witness(subject, frames)
    elif found:
        given = (Member(setting.request, ("params", "enabled")),)
        yield differs(subject, frames, found[0][0].part("enabled"), enabled, also=given)


@rule(
    "skills.config-applies",
    title="A skill is listed as enabled or disabled as it was configured",
    level=Level.MUST,
    needs=("skills",),
)
class ConfigApplies(_Enabled):
    """Judges `enabled` of a skill that a skills/config/write named, in the next forced listing.

    The request was accepted before the listing was asked for. Left open: whether a disabled skill
    is listed, skills that the harness did not write or of whose name there are several files for
    the directory, requests under way at once, and what holds after a restart.
    """


@rule(
    "skills.config-lasts",
    title="What was configured of a skill holds after a restart",
    level=Level.SHOULD,
    needs=("skills",),
)
class ConfigLasts(_Enabled):
    """Judges the same where the server was started again since, over the same home.

    Enabled is what the configuration says, and a configuration is not that of one process; how it
    is kept the text does not say: SHOULD.
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

    Two forced listings of the same directory, with a request between them that named another path,
    perhaps of a skill of the same name. That nothing else changes follows from the path: SHOULD.
    Left open: what other files that were written meanwhile may have configured.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        before = [
            one
            for one in self.former
            if one.forced and one.of(cwd) and came_before(one.answer, shown.request)
        ]
        older = before[-1] if before else None
        then = older.entry(cwd) if older is not None else None
        if older is None or then is None:
            return
        written = settings_before(self.trace, shown.answer)
        since = {
            path: one for path, one in written.items() if came_before(older.request, one.request)
        }
        if not since or self.written_between(older.request, shown.request):
            return
        for file in known_alone(shown, disk, cwd):
            now, former = entry.named(file.name), then.named(file.name)
            if plain_folder(file.path) in since or len(now) != 1 or len(former) != 1:
                continue
            subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
            requests = tuple(one.request for one in since.values())
            frames = (older.answer, *requests, *shown.frames)
            enabled = former[0][1].get("enabled")
            if now[0][1].get("enabled") is enabled:
                yield Witness(subject, frames)
            else:
                also = (former[0][0].part("enabled"),)
                where = now[0][0].part("enabled")
                yield differs(subject, frames, where, enabled, also=also)
