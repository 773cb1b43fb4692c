"""Skills on disk, as far as the harness wrote them, and where a server looks for them.

The text has front matter nowhere and the shipping server wants it, so scenarios write both. What is
certain of a file is what all of its parts agree on.
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
# Items of these types may have written files of which no mark tells.
_WORK: Final = ("commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md that was written, and is still there.

    `name` and `description` are "" where the parts of the file do not agree on one. `whole` says
    that it has all that the text lists, `nameless` that it has no title heading and no other name.
    """

    path: str
    text: str | None
    name: str = ""
    description: str = ""
    whole: bool = False
    nameless: bool = False

    @property
    def folder(self) -> str:
        """The skill's own folder."""
        return posixpath.dirname(self.path)

    @property
    def root(self) -> str:
        """The folder of skills in which its own folder lies."""
        return posixpath.dirname(self.folder)


@dataclass(frozen=True, slots=True)
class Disk:
    """The files that the harness wrote, by path, and the folders of the run."""

    files: dict[str, Mark[FileWritten]]
    place: Place

    def broken(self) -> list[SkillFile]:
        """Every SKILL.md that has no name in any form, and so cannot be loaded by it."""
        return [one for one in self.skills() if one.nameless]

    def skills(self) -> list[SkillFile]:
        """Every SKILL.md; one with a broken file beside it is not whole."""
        found = [read(path, mark.body.text) for path, mark in self.files.items() if is_skill(path)]
        return [replace(one, whole=one.whole and self._sound_beside(one)) for one in found]

    def _sound_beside(self, file: SkillFile) -> bool:
        """Return whether the config.toml of a skill is TOML, if it has one."""
        config = self.files.get(f"{file.folder}/{CONFIG}")
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads("" if config is None else config.body.text or "=")
            return True
        return False

    def project_of(self, root: str) -> str:
        """The project of which this is the folder of skills, or the folder itself."""
        return root.removesuffix(f"/{self.place.agent}/skills") if self.place.agent else root

    def is_there(self, folder: str) -> bool:
        """Return whether a folder is certainly there: the workspace, or one above a file."""
        above = f"{plain_folder(folder)}/"
        return same_folder(folder, self.place.cwd) or any(
            plain_folder(path).startswith(above) for path in self.files
        )

    def project_root(self, cwd: str) -> str:
        """The folder of the skills of a project, "" where nobody noted its name."""
        return f"{plain_folder(cwd)}/{self.place.agent}/skills" if self.place.agent else ""

    def user_roots(self) -> tuple[str, ...]:
        """The folders that may be that of the user's skills, empty where the home is not known.

        The text has `~/.agent/skills`. The harness's home stands for `~` and, by a variable that
        the text does not have, for `~/.agent`: what lies in both is certainly there.
        """
        home = self.place.home
        return (f"{home}/skills", f"{home}/.agent/skills") if home else ()


def disk_before(trace: Trace, frame: Frame) -> Disk | None:
    """Return the files on disk when a message was sent; None if others may have written too."""
    places = [mark for mark in trace.marks_of(Place) if marked_before(mark, frame)]
    if not places or any(_worked(other) for other in trace.frames if came_before(other, frame)):
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
    """Return whether this is the path of a skill's own file."""
    return posixpath.basename(path) == SKILL_FILE


def read(path: str, text: str | None) -> SkillFile:
    """Return what is certain of a SKILL.md."""
    if text is None:
        return SkillFile(path, None, nameless=True)
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
        nameless=not title and not front.get("name"),
        whole=len(names) == len(briefs) == 1 and all((title, brief, set(SECTIONS) <= {*headings})),
    )


def section(text: str, name: str) -> Iterator[str]:
    """The lines of a section of a SKILL.md that are not empty."""
    within = False
    for line in _parts(text)[1].splitlines():
        found = _HEADING.fullmatch(line)
        if found:
            within = found[1] == name
        elif within and line.strip():
            yield line.strip()


def _parts(text: str) -> tuple[dict[str, str], str]:
    """The members of the front matter, none where there is none, and what follows it."""
    found = _FRONT.match(text)
    if found is None:
        return {}, text
    keys = [key for line in found[1].splitlines() if (key := _KEY.fullmatch(line))]
    return {key[1]: key[2].strip() for key in keys}, found[2]


def _brief(body: str) -> str:
    """The paragraph below the title, as one line."""
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


def _worked(frame: Frame) -> bool:
    told = frame.from_target and frame.method in ("item/started", "item/completed")
    return told and item_in(frame).get("type") in _WORK
