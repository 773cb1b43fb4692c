"""Rules on the metadata of a listed skill: its description, its icons and its colour."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.forced_listings import ForcedListings, known_skills
from harness.judge.rules.shared.skill_files import CONFIG, Disk
from harness.judge.rules.shared.skill_listings import LIST, Entry, Listing, parse_listing
from harness.judge.rules.shared.violations import Member, different, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

# The icon members of an interface, each with its companion file.
ICONS: Final = {"iconSmall": "icon.svg", "iconLarge": "icon-large.svg"}
_COLOUR: Final = re.compile(r"#[0-9A-Fa-f]{6}")


@rule(
    "skills.icon-names",
    title="The icons of a skill are named as files",
    level=Level.SHOULD,
    needs=("skills",),
)
class IconNames(Monitor):
    """Judges iconSmall and iconLarge of every listed skill, including the server's own.

    Each is the name of a file, not an absolute path or an address: SHOULD, since the specification
    says "file name" without excluding a path. INFO for a relative path, which may count as the name
    of a file in a folder.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        listing = parse_listing(self.conversation.request_of(frame), frame)
        for entry in listing.entries if listing is not None else ():
            for field, skill in entry.skills():
                face = obj(skill.get("interface"))
                for name in (key for key in ICONS if isinstance(face.get(key), str)):
                    subject = f"skill {skill.get('name')} {name}"
                    icon = field.part("interface", name)
                    yield _judge_icon_name(subject, (frame,), icon, face[name])


def _judge_icon_name(subject: str, frames: tuple[Frame, ...], field: Member, icon: str) -> Outcome:
    if not re.search(r"[/\\]", icon):
        return Witness(subject, frames)
    elsewhere = posixpath.isabs(icon) or ":" in icon
    level = None if elsewhere else Level.INFO
    return wrong(subject, frames, field, "the name of a file, not a path", level=level)


@rule(
    "skills.description-from-file",
    title="A skill is described as its file describes it",
    level=Level.SHOULD,
    needs=("skills",),
)
class Description(ForcedListings):
    """Judges the description of a skill in a listing with forceReload.

    It should be that of its SKILL.md, or its beginning: the specification calls both a brief
    description and does not say that they are the same. Judged for files whose front matter agrees
    with the paragraph below the heading, and whose name is unique for the directory.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        for file in known_skills(listing, disk, cwd):
            subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
            skills = entry.skills_named(file.name)
            if not skills:
                continue
            descriptions = [" ".join(text(skill.get("description")).split()) for _, skill in skills]
            if any(
                file.description in description
                or (description and _is_beginning(file.description, description))
                for description in descriptions
            ):
                yield Witness(subject, listing.frames)
            else:
                field = skills[0][0].part("description")
                reason = f"as in {file.path}"
                yield different(subject, listing.frames, field, file.description, reason=reason)


def _is_beginning(description: str, part: str) -> bool:
    return description.startswith(part.removesuffix("…").removesuffix("...").rstrip())


@rule(
    "skills.companions-shown",
    title="The files beside a skill give its icons and its colour",
    level=Level.SHOULD,
    needs=("skills",),
)
class Companions(ForcedListings):
    """Judges the interface of a skill that has `icon.svg`, `icon-large.svg` or a config.toml.

    An existing icon is named. A shown colour is one of config.toml, if that has any; its keys are
    not specified, so that none need be shown. The specification does not say outright that the
    files define the interface: SHOULD. Otherwise as for skills.description-from-file.
    """

    def judge_entry(
        self, listing: Listing, entry: Entry, cwd: str, disk: Disk
    ) -> Iterator[Outcome]:
        for file in known_skills(listing, disk, cwd):
            skills = entry.skills_named(file.name)
            if not skills:
                continue
            field, skill = skills[0]
            face = obj(skill.get("interface"))
            beside = {
                posixpath.basename(path): mark.body.text
                for path, mark in disk.files.items()
                if posixpath.dirname(path) == file.folder
            }
            subject = f"{listing.subject}, skill {file.name} in {entry.cwd}"
            yield from _judge_icons(subject, listing, field, face, {*beside})
            yield from _judge_colour(subject, listing, field, face, beside.get(CONFIG) or "")


def _judge_icons(
    subject: str, listing: Listing, field: Member, face: dict[str, Any], beside: set[str]
) -> Iterator[Outcome]:
    for name, icon in ICONS.items():
        if icon not in beside:
            continue
        if posixpath.basename(text(face.get(name))) == icon:
            yield Witness(f"{subject} {name}", listing.frames)
        else:
            place = field.part("interface", name) if face else field.part("interface")
            expected = f"{icon}, which lies beside SKILL.md"
            yield wrong(f"{subject} {name}", listing.frames, place, expected)


def _judge_colour(
    subject: str, listing: Listing, field: Member, face: dict[str, Any], config: str
) -> Iterator[Outcome]:
    colours, colour = (
        [found_colour.lower() for found_colour in _COLOUR.findall(config)],
        face.get("brandColor"),
    )
    if not colours or not isinstance(colour, str):
        return
    if colour.lower() in colours:
        yield Witness(f"{subject} brandColor", listing.frames)
    else:
        expected = f"a colour of config.toml: {', '.join(colours)}"
        place = field.part("interface", "brandColor")
        yield wrong(f"{subject} brandColor", listing.frames, place, expected)
