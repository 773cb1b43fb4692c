"""Answers to skills/list, and what was asked for."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.rules.shared.view_queries import (
    perhaps_same_folder,
    request_subject,
    same_folder,
)
from harness.judge.rules.shared.violations import Member, member
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame, Kind

LIST: Final = "skills/list"
WRITE: Final = "skills/config/write"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a listing: where it stands, and its working directory."""

    where: Member
    cwd: str

    def skills(self) -> Iterator[tuple[Member, dict[str, Any]]]:
        """The skills in it, and where each stands."""
        for index, skill in enumerate(arr(obj(self.where.value).get("skills"))):
            yield self.where.part("skills", index), obj(skill)

    def named(self, name: str) -> list[tuple[Member, dict[str, Any]]]:
        """The skills of a name: several scopes may have one."""
        return [(where, skill) for where, skill in self.skills() if skill.get("name") == name]


@dataclass(frozen=True, slots=True)
class Listing:
    """A skills/list that was answered by a result."""

    request: Frame
    answer: Frame
    entries: tuple[Entry, ...]

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return request_subject(self.request)

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """The request and its answer."""
        return self.request, self.answer

    @property
    def asked(self) -> list[str]:
        """The working directories that were asked for, none for that of the session."""
        return [text(one) for one in arr(obj(self.request.params).get("cwds"))]

    @property
    def forced(self) -> bool:
        """Return whether the disk had to be scanned again."""
        return obj(self.request.params).get("forceReload") is True

    @property
    def all_absolute(self) -> bool:
        """Return whether each directory that was asked for is an absolute path."""
        return all(posixpath.isabs(one) for one in self.asked)

    def extra_roots(self, cwd: str) -> list[str]:
        """The further folders that were to be scanned for a working directory."""
        given = [obj(one) for one in arr(obj(self.request.params).get("perCwdExtraUserRoots"))]
        mine = [one for one in given if same_folder(text(one.get("cwd")), cwd)]
        return [text(root) for one in mine for root in arr(one.get("extraUserRoots"))]

    def of(self, cwd: str) -> list[Entry]:
        """The entries of a working directory, by the text of their paths."""
        return [one for one in self.entries if same_folder(one.cwd, cwd)]

    def entry(self, cwd: str) -> Entry | None:
        """The entry that is certainly about a working directory, None where there is no such."""
        found = self.of(cwd) or [one for one in self.entries if perhaps_same_folder(cwd, one.cwd)]
        return found[0] if len(found) == 1 else None


def listing(request: Frame | None, answer: Frame) -> Listing | None:
    """The listing that an answer gives, None for anything else."""
    if request is None or request.deliberate or answer.kind is not Kind.RESPONSE:
        return None
    shown = [obj(one) for one in arr(obj(answer.result).get("data"))]
    entries = [
        Entry(member(answer, "data", index), text(one.get("cwd")))
        for index, one in enumerate(shown)
    ]
    return Listing(request, answer, tuple(entries))
