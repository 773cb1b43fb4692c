"""Skills that the harness wrote to disk, and the folders where a server looks for them.

The specification does not mention front matter, but the shipping server requires it, so scenarios
write front matter and headings. A property of a file is certain if both agree on it.
"""

import contextlib
import posixpath
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from harness.judge.rules.shared.view_queries import item_in, plain_folder, same_folder
from harness.protocol.spec.skill_paths import SKILL_FILE
from harness.trace.frame import Frame
from harness.trace.marks import FileWritten, Place
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Mark, Trace

CONFIG: Final = "config.toml"
SECTIONS: Final = ("Instructions", "Examples", "Dependencies")
_FRONT: Final = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_KEY: Final = re.compile(r"(name|description): ?(.*)")
_HEADING: Final = re.compile(r"#+[ \t]+(.*?)[ \t]*")
# Items of these types may have written files without a mark.
_WORK: Final = ("commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md that was written and still exists.

    `name` and `description` are "" if the parts of the file disagree. `is_complete` means that it
    has everything that the specification lists, `is_nameless` that it has neither a title heading
    nor another name.
    """

    path: str
    text: str | None
    name: str = ""
    description: str = ""
    is_complete: bool = False
    is_nameless: bool = False

    @property
    def folder(self) -> str:
        """Return the skill's own folder."""
        return posixpath.dirname(self.path)

    @property
    def root(self) -> str:
        """Return the folder of skills that contains its own folder."""
        return posixpath.dirname(self.folder)


@dataclass(frozen=True, slots=True)
class Disk:
    """Files that the harness wrote, by path, and the folders of the run."""

    files: dict[str, Mark[FileWritten]]
    place: Place

    def nameless_skills(self) -> list[SkillFile]:
        """Return each SKILL.md without a name in any form, which cannot be loaded."""
        return [file for file in self.skills() if file.is_nameless]

    def skills(self) -> list[SkillFile]:
        """Return each SKILL.md; one beside a broken config file is not complete."""
        files = [
            parse_skill(path, mark.body.text) for path, mark in self.files.items() if is_skill(path)
        ]
        return [
            replace(skill, is_complete=skill.is_complete and self._has_valid_config(skill))
            for skill in files
        ]

    def _has_valid_config(self, file: SkillFile) -> bool:
        """Return whether the config.toml of a skill is TOML, if it has one."""
        config = self.files.get(f"{file.folder}/{CONFIG}")
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads("" if config is None else config.body.text or "=")
            return True
        return False

    def project_of(self, root: str) -> str:
        """Return the project that a skills folder belongs to, or the folder itself."""
        return root.removesuffix(f"/{self.place.agent}/skills") if self.place.agent else root

    def is_there(self, folder: str) -> bool:
        """Return whether a folder certainly exists: the workspace, or one with a written file."""
        above = f"{plain_folder(folder)}/"
        return same_folder(folder, self.place.cwd) or any(
            plain_folder(path).startswith(above) for path in self.files
        )

    def project_root(self, cwd: str) -> str:
        """Return the skills folder of a project, "" if its name is unknown."""
        return f"{plain_folder(cwd)}/{self.place.agent}/skills" if self.place.agent else ""

    def user_roots(self) -> tuple[str, ...]:
        """Return the possible folders of the user's skills, () if the home is unknown.

        The specification has `~/.agent/skills`. The harness's home stands for `~` and, by a
        variable that the specification does not have, for `~/.agent`: a skill in both is certainly
        found.
        """
        home = self.place.home
        return (f"{home}/skills", f"{home}/.agent/skills") if home else ()


def disk_before(trace: Trace, frame: Frame) -> Disk | None:
    """Return the files on disk when a message was sent, None if commands may have written too."""
    places = [mark for mark in trace.marks_of(Place) if marked_before(mark, frame)]
    if not places or any(
        _may_write_files(other) for other in trace.frames if came_before(other, frame)
    ):
        return None
    files: dict[str, Mark[FileWritten]] = {}
    for mark in trace.marks_of(FileWritten):
        if not marked_before(mark, frame):
            break
        files.pop(mark.body.path, None)
        if mark.body.exists:
            files[mark.body.path] = mark
    return Disk(files, places[-1].body)


def is_skill(path: str) -> bool:
    """Return whether a path names a SKILL.md."""
    return posixpath.basename(path) == SKILL_FILE


def parse_skill(path: str, text: str | None) -> SkillFile:
    """Return the properties of a SKILL.md, as far as they are certain."""
    if text is None:
        return SkillFile(path, None, is_nameless=True)
    front, body = _parts(text)
    headings = [found[1] for line in body.splitlines() if (found := _HEADING.fullmatch(line))]
    title = headings[0] if headings else ""
    names = {front.get("name", title), title, posixpath.basename(posixpath.dirname(path))}
    brief = _brief(body)
    briefs = {front.get("description", brief), brief}
    return SkillFile(
        path,
        text,
        name=title if len(names) == 1 else "",
        description=brief if len(briefs) == 1 else "",
        is_nameless=not title and not front.get("name"),
        is_complete=len(names) == len(briefs) == 1
        and all((title, brief, set(SECTIONS) <= {*headings})),
    )


def section_lines(text: str, name: str) -> Iterator[str]:
    """Yield the nonempty lines of a section of a SKILL.md."""
    within = False
    for line in _parts(text)[1].splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            within = heading[1] == name
        elif within and line.strip():
            yield line.strip()


def _parts(text: str) -> tuple[dict[str, str], str]:
    """Return the members of the front matter, {} if there is none, and the text after it."""
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    keys = [key for line in match[1].splitlines() if (key := _KEY.fullmatch(line))]
    return {key[1]: key[2].strip() for key in keys}, match[2]


def _brief(body: str) -> str:
    """Return the paragraph below the title as one line, "" if there is none."""
    lines: list[str] = []
    titled = False
    for line in body.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and titled:
            break
        titled = titled or heading is not None
        if titled and not heading and line.strip():
            lines.append(line.strip())
        elif lines:
            break
    return " ".join(lines)


def _may_write_files(frame: Frame) -> bool:
    is_item_event = frame.method in ("item/started", "item/completed")
    return is_item_event and frame.from_target and item_in(frame).get("type") in _WORK
