"""Requests and successful answers of skills/list."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.rules.shared.view_queries import (
    may_be_same_folder,
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
    """An entry of a listing, as a member, and its working directory."""

    field: Member
    cwd: str

    def skills(self) -> Iterator[tuple[Member, dict[str, Any]]]:
        """Yield its skills with their members."""
        for index, skill in enumerate(arr(obj(self.field.value).get("skills"))):
            yield self.field.part("skills", index), obj(skill)

    def skills_named(self, name: str) -> list[tuple[Member, dict[str, Any]]]:
        """Return the skills with a name; several scopes may have one."""
        return [(field, skill) for field, skill in self.skills() if skill.get("name") == name]


@dataclass(frozen=True, slots=True)
class Listing:
    """A skills/list request and its successful answer."""

    request: Frame
    answer: Frame
    entries: tuple[Entry, ...]

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return request_subject(self.request)

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """Return the request and its answer."""
        return self.request, self.answer

    @property
    def requested_folders(self) -> list[str]:
        """Return the requested working directories; [] means the session's own."""
        return [text(path) for path in arr(obj(self.request.params).get("cwds"))]

    @property
    def is_forced(self) -> bool:
        """Return whether a new scan of the disk was requested."""
        return obj(self.request.params).get("forceReload") is True

    @property
    def all_absolute(self) -> bool:
        """Return whether each requested directory is an absolute path."""
        return all(posixpath.isabs(path) for path in self.requested_folders)

    def extra_roots(self, cwd: str) -> list[str]:
        """Return the extra folders to be scanned for a working directory."""
        entries = [
            obj(entry) for entry in arr(obj(self.request.params).get("perCwdExtraUserRoots"))
        ]
        own_entries = [entry for entry in entries if same_folder(text(entry.get("cwd")), cwd)]
        return [text(root) for entry in own_entries for root in arr(entry.get("extraUserRoots"))]

    def entries_of(self, cwd: str) -> list[Entry]:
        """Return the entries of a working directory, compared by path."""
        return [entry for entry in self.entries if same_folder(entry.cwd, cwd)]

    def entry(self, cwd: str) -> Entry | None:
        """Return the only entry that can be about a working directory; None for no or several."""
        entries = self.entries_of(cwd) or [
            entry for entry in self.entries if may_be_same_folder(cwd, entry.cwd)
        ]
        return entries[0] if len(entries) == 1 else None


def parse_listing(request: Frame | None, answer: Frame) -> Listing | None:
    """Return the listing in an answer; None for an error or a request that was wrong on purpose."""
    if request is None or request.deliberate or answer.kind is not Kind.RESPONSE:
        return None
    elements = [obj(element) for element in arr(obj(answer.result).get("data"))]
    entries = [
        Entry(member(answer, "data", index), text(element.get("cwd")))
        for index, element in enumerate(elements)
    ]
    return Listing(request, answer, tuple(entries))
