"""Rules on what a listing says of a skill: its description, its icons and colour."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.forced_listings import ForcedListings, known_alone
from harness.judge.rules.shared.skill_files import CONFIG, Disk
from harness.judge.rules.shared.skill_listings import LIST, Entry, Listing, listing
from harness.judge.rules.shared.violations import Member, differs, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

# The members of an interface that are icons, and the companion file of each.
ICONS: Final = {"iconSmall": "icon.svg", "iconLarge": "icon-large.svg"}
_COLOUR: Final = re.compile(r"#[0-9A-Fa-f]{6}")


@rule(
    "skills.icon-names",
    title="The icons of a skill are named as files",
    level=Level.MUST,
    needs=("skills",),
)
class IconNames(Monitor):
    """Judges iconSmall and iconLarge of every skill that is listed, the server's own too.

    Each is the name of a file. An absolute path or an address is none; of a relative path, which
    may be seen as the name of a file in a folder, SHOULD.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        shown = listing(self.conversation.request_of(frame), frame)
        for entry in shown.entries if shown is not None else ():
            for where, skill in entry.skills():
                face = obj(skill.get("interface"))
                for name in (one for one in ICONS if isinstance(face.get(one), str)):
                    subject = f"skill {skill.get('name')} {name}"
                    icon = where.part("interface", name)
                    yield _named(subject, (frame,), icon, face[name])


def _named(subject: str, frames: tuple[Frame, ...], where: Member, icon: str) -> Outcome:
    if not re.search(r"[/\\]", icon):
        return Witness(subject, frames)
    elsewhere = posixpath.isabs(icon) or ":" in icon
    level = None if elsewhere else Level.SHOULD
    return wrong(subject, frames, where, "the name of a file, not a path", level=level)


@rule(
    "skills.description-from-file",
    title="A skill is described as its file describes it",
    level=Level.SHOULD,
    needs=("skills",),
)
class Description(ForcedListings):
    """Judges the description of a skill in a forced listing.

    It should be that of its SKILL.md, or the beginning of it: the text calls both a brief
    description and does not say that they are one. Judged are files in which front matter and the
    paragraph below the heading agree, and of whose name there is no other for the directory.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        for file in known_alone(shown, disk, cwd):
            subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
            found = entry.named(file.name)
            if not found:
                continue
            told = [" ".join(text(skill.get("description")).split()) for _, skill in found]
            if any(
                file.description in one or (one and _begins(file.description, one)) for one in told
            ):
                yield Witness(subject, shown.frames)
            else:
                where = found[0][0].part("description")
                why = f"as in {file.path}"
                yield differs(subject, shown.frames, where, file.description, why=why)


def _begins(whole: str, part: str) -> bool:
    return whole.startswith(part.removesuffix("…").removesuffix("...").rstrip())


@rule(
    "skills.companions-shown",
    title="The files beside a skill give its icons and its colour",
    level=Level.SHOULD,
    needs=("skills",),
)
class Companions(ForcedListings):
    """Judges the interface of a skill that has `icon.svg`, `icon-large.svg` or a config.toml.

    An icon that is there is named. A colour that is shown is one of config.toml, where that has
    any; which keys it has is not shown, so that none need be shown. That the files give what the
    interface has the text does not say in so many words: SHOULD. As for descriptions.
    """

    def judged(self, shown: Listing, entry: Entry, cwd: str, disk: Disk) -> Iterator[Outcome]:
        for file in known_alone(shown, disk, cwd):
            found = entry.named(file.name)
            if not found:
                continue
            where, skill = found[0]
            face = obj(skill.get("interface"))
            beside = {
                posixpath.basename(path): mark.body.text
                for path, mark in disk.files.items()
                if posixpath.dirname(path) == file.folder
            }
            subject = f"{shown.subject}, skill {file.name} in {entry.cwd}"
            yield from _icons(subject, shown, where, face, {*beside})
            yield from _colour(subject, shown, where, face, beside.get(CONFIG) or "")


def _icons(
    subject: str, shown: Listing, where: Member, face: dict[str, Any], beside: set[str]
) -> Iterator[Outcome]:
    for name, icon in ICONS.items():
        if icon not in beside:
            continue
        if posixpath.basename(text(face.get(name))) == icon:
            yield Witness(f"{subject} {name}", shown.frames)
        else:
            place = where.part("interface", name) if face else where.part("interface")
            expected = f"{icon}, which lies beside SKILL.md"
            yield wrong(f"{subject} {name}", shown.frames, place, expected)


def _colour(
    subject: str, shown: Listing, where: Member, face: dict[str, Any], config: str
) -> Iterator[Outcome]:
    colours, given = [one.lower() for one in _COLOUR.findall(config)], face.get("brandColor")
    if not colours or not isinstance(given, str):
        return
    if given.lower() in colours:
        yield Witness(f"{subject} brandColor", shown.frames)
    else:
        expected = f"a colour of config.toml: {', '.join(colours)}"
        place = where.part("interface", "brandColor")
        yield wrong(f"{subject} brandColor", shown.frames, place, expected)
