"""Releases in profiles: ranges of rows, the question for a server's release, and the answer."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from harness.client.target.tables import Table, Words
from harness.protocol.releases import is_before, numbers_of, short_release


def _check_release(value: str) -> str:
    if numbers_of(value) is None:
        raise ValueError(f"{value!r} is not a release; expected numbers such as 0.169.0")
    return value


def _check_pattern(value: str) -> str:
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise ValueError(f"{value!r} is not a valid regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"{value!r} has {groups} groups; expected one, around the release")
    return value


Release = Annotated[str, AfterValidator(_check_release)]


class Ranged(Table):
    """A row that holds from the release `since` on, up to and without `until`; None for no end."""

    since: Release | None = None
    until: Release | None = None

    @model_validator(mode="after")
    def _check_order(self) -> "Ranged":
        if self.since and self.until and not is_before(self.since, self.until):
            raise ValueError(f"until {self.until} is not later than since {self.since}")
        return self


class ReleaseBlock(Ranged):
    """Keys of a profile that hold for some releases."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class RangedCapability(Ranged):
    """A capability that some releases offer."""

    name: str


class Version(Table):
    """The way in which a server says its release, and the releases that a profile knows.

    `command` prints it, `{program}` being the first word of the server's command; else it is in
    the answer to `initialize`. `pattern` finds it, its group is the release. The profile knows the
    releases from `oldest` to `newest`.
    """

    command: Words = Field(default_factory=list[str])
    pattern: Annotated[str, AfterValidator(_check_pattern)] = r"(\d+(?:\.\d+)+[-+.0-9A-Za-z]*)"
    oldest: Release | None = None
    newest: Release | None = None

    def find_release(self, text: str) -> str:
        """Return the release that a text names, "" if none or not a number."""
        match = re.search(self.pattern, text, re.MULTILINE)
        release = (match[1] or "") if match else ""
        return release if numbers_of(release) else ""


@dataclass(frozen=True, slots=True)
class Edition:
    """The release for which a profile was read: `release`, "" if the server did not say it.

    `judged_as` is the nearest release of `oldest` to `newest`. With `is_named` the profile's name
    has the release, so that no server is asked.
    """

    release: str
    judged_as: str
    oldest: str
    newest: str
    is_named: bool = False

    @property
    def rows_of(self) -> str:
        """The release whose rows are taken."""
        return self.release or self.newest

    @property
    def is_newer(self) -> bool:
        """Return whether the release is newer than all that the profile knows."""
        return is_before(self.newest, self.release)

    @property
    def is_outside(self) -> bool:
        """Return whether the release is newer or older than all that the profile knows."""
        return self.is_newer or is_before(self.release, self.oldest)

    @property
    def news(self) -> str:
        """Return `new since 0.169` if what has no deviation can be new, else ""."""
        return f"new since {short_release(self.newest)}" if self.is_newer else ""

    def note(self, profile: str) -> str:
        """Return one line about a release that the profile does not know, else ""."""
        if not self.release:
            return (
                f"the server did not say its release: judged as {self.judged_as}, the newest that "
                f"the profile {profile} knows"
            )
        if self.is_newer:
            return (
                f"{self.release} is newer than the newest known release {self.newest}: judged as "
                "that; a finding can be new since then"
            )
        if is_before(self.release, self.oldest):
            return (
                f"{self.release} is older than the oldest known release {self.oldest}: judged as "
                "that"
            )
        return ""


def edition_of(version: Version, release: str, *, is_named: bool = False) -> Edition:
    """Return the edition for a release, "" for one that is not known: the newest."""
    oldest, newest = version.oldest or "", version.newest or ""
    parts, wanted = release.count("."), newest.count(".")
    if release and re.fullmatch(r"[\d.]+", release) and parts < wanted:
        release += ".0" * (wanted - parts)
    judged_as = release or newest
    if is_before(newest, judged_as):
        judged_as = newest
    if is_before(judged_as, oldest):
        judged_as = oldest
    return Edition(release, judged_as, oldest, newest, is_named)
