"""Selectors of listings of skills, and changes of their entries."""

from collections.abc import Callable
from typing import Any

from harness.faults.operators import Value
from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame

LIST = "skills/list"
WRITE = "skills/config/write"


def listing(least: int = 1) -> Selector:
    """A listing of at least so many directories that were named."""
    return answer_to(LIST).where(
        lambda site, f: len(arr(site.asked(f).get("cwds"))) >= least, f"of {least} or more"
    )


def entries(frame: Frame) -> list[Any]:
    """The entries of a listing."""
    return arr(dig(frame.result, "data"))


def without_the_last(site: FaultSite, frame: Frame) -> list[Any]:
    """All entries but the last."""
    return entries(frame)[:-1]


def with_the_first_twice(site: FaultSite, frame: Frame) -> list[Any]:
    """All entries, and the first once more."""
    return [*entries(frame), *entries(frame)[:1]]


def forced(least: int = 1) -> Selector:
    """A listing of at least so many directories that had to scan the disk."""
    return listing(least).where(
        lambda site, f: site.asked(f).get("forceReload") is True, "with forceReload"
    )


def names(entry: Any) -> set[str]:
    """The names of the skills in an entry."""
    return {text(dig(one, "name")) for one in arr(dig(entry, "skills"))}


def common(frame: Frame) -> set[str]:
    """The names of the skills that every entry has."""
    return set[str].intersection(*map(names, entries(frame)))


def only_first(frame: Frame) -> set[str]:
    """The names of the skills that the first entry has and no other."""
    return names(entries(frame)[0]).difference(*map(names, entries(frame)[1:]))


def extra(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first directory has extra roots, and skills that the others do not
    have.
    """
    asked = site.asked(frame)
    cwds, roots = arr(asked.get("cwds")), arr(asked.get("perCwdExtraUserRoots"))
    return bool(cwds and roots) and dig(roots[0], "cwd") == cwds[0] and bool(only_first(frame))


def without(which: Callable[[Frame], set[str]]) -> Value:
    """The entries without the skills of some names."""

    def entries_without(_: FaultSite, frame: Frame) -> list[Any]:
        gone = which(frame)
        return [
            {**entry, "skills": [one for one in entry["skills"] if one["name"] not in gone]}
            for entry in entries(frame)
        ]

    return entries_without


def shared_out(_: FaultSite, frame: Frame) -> list[Any]:
    """The entries, each with the skills of all."""
    everything = [skill for entry in entries(frame) for skill in entry["skills"]]
    return [{**entry, "skills": everything} for entry in entries(frame)]


def former(site: FaultSite, frame: Frame) -> Any:
    """The result of the listing of the same directories before this one, None for none."""
    mine = [
        other
        for other in site.frames
        if other.seq < frame.seq
        and answer_to(LIST).fits(site, other)
        and site.asked(other).get("cwds") == site.asked(frame).get("cwds")
    ]
    return mine[-1].result if mine else None


def changed(site: FaultSite, frame: Frame) -> bool:
    """Return whether names or descriptions are others than in the listing before."""
    return former(site, frame) is not None and any(
        _told(one) != _told(other)
        for one, other in zip(entries(frame), arr(dig(former(site, frame), "data")), strict=False)
    )


def lacks_one(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry lacks a name that it had in the listing before."""
    before = arr(dig(former(site, frame), "data"))
    return bool(before and entries(frame) and names(before[0]) - names(entries(frame)[0]))


def _told(entry: Any) -> set[tuple[Any, Any]]:
    return {(dig(one, "name"), dig(one, "description")) for one in arr(dig(entry, "skills"))}


def turn_with(kind: str) -> Selector:
    """The answer to a turn/start whose input has an item of a type."""

    def has(site: FaultSite, frame: Frame) -> bool:
        return any(dig(one, "type") == kind for one in arr(site.asked(frame).get("input")))

    return answer_to("turn/start").where(has, f"with a {kind}")


def of_the_session() -> Selector:
    """A listing that named no directory, once there was a thread."""

    def after_a_thread(site: FaultSite, frame: Frame) -> bool:
        asked = site.request_of(frame)
        threads = [one for one in site.conversation.threads.values() if one.reply is not None]
        return any(asked is not None and one.reply and one.reply.seq < asked.seq for one in threads)

    return (
        answer_to(LIST)
        .where(lambda site, f: not site.asked(f).get("cwds"), "of no directory")
        .where(after_a_thread, "after a thread")
    )


def written(site: FaultSite, frame: Frame, path: str = "") -> list[Frame]:
    """The accepted writes of the configuration before a message, of a path if one is given."""
    return [
        one
        for one in site.frames
        if one.seq < frame.seq
        and answer_to(WRITE).fits(site, one)
        and path in ("", text(site.asked(one).get("path")))
    ]


def _configured(site: FaultSite, frame: Frame) -> set[str]:
    """The names of the skills that were configured, by the folders of their files."""
    paths = [text(site.asked(one).get("path")).split("/") for one in written(site, frame)]
    return {path[-2] for path in paths if len(path) > 1}


def shows_configured(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry has a skill that was configured."""
    return bool(_configured(site, frame) & names(entries(frame)[0]))


def shows_another(site: FaultSite, frame: Frame) -> bool:
    """Return whether it has another one, which a listing before the last request had, too."""
    writes = written(site, frame)
    others = names(entries(frame)[0]) - _configured(site, frame)
    before = [one for one in site.frames if writes and one.seq < writes[-1].seq]
    return bool(others) and any(forced().fits(site, one) for one in before)


def shows_disabled(site: FaultSite, frame: Frame) -> bool:
    """Return whether a skill is disabled that this client has not configured."""
    skills = [one for entry in entries(frame) for one in arr(dig(entry, "skills"))]
    return not written(site, frame) and any(dig(one, "enabled") is False for one in skills)


def turned(which: Callable[[FaultSite, Frame, Any], bool]) -> Value:
    """The entries, with some skills enabled that were disabled, and the other way round."""

    def turn(site: FaultSite, frame: Frame, skill: Any) -> Any:
        other = {**skill, "enabled": not skill["enabled"]}
        return other if which(site, frame, skill) else skill

    def all_turned(site: FaultSite, frame: Frame) -> list[Any]:
        return [
            {**entry, "skills": [turn(site, frame, one) for one in entry["skills"]]}
            for entry in entries(frame)
        ]

    return all_turned


def is_configured(site: FaultSite, frame: Frame, skill: Any) -> bool:
    """Return whether a skill was configured."""
    return skill["name"] in _configured(site, frame)


def is_another(site: FaultSite, frame: Frame, skill: Any) -> bool:
    """Return whether it was not."""
    return not is_configured(site, frame, skill)


def is_disabled(_site: FaultSite, _frame: Frame, skill: Any) -> bool:
    """Return whether it is shown as disabled."""
    return skill["enabled"] is False


def with_icons(_: FaultSite, frame: Frame) -> bool:
    """Return whether the first skill has a small icon of its own files."""
    return _face(frame).get("iconSmall") == "icon.svg"


def with_colour(_: FaultSite, frame: Frame) -> bool:
    """Return whether the first skill has a colour."""
    return isinstance(_face(frame).get("brandColor"), str)


def with_errors(_: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry has errors."""
    return bool(entries(frame)) and bool(arr(dig(entries(frame)[0], "errors")))


def errors_shared_out(_: FaultSite, frame: Frame) -> list[Any]:
    """The entries, each with the errors of all."""
    everything = [error for entry in entries(frame) for error in arr(entry["errors"])]
    return [{**entry, "errors": everything} for entry in entries(frame)]


def _face(frame: Frame) -> dict[str, Any]:
    """The interface of the first skill of the first entry."""
    skills = [skill for entry in entries(frame)[:1] for skill in arr(dig(entry, "skills"))]
    return obj(dig(skills[0], "interface")) if skills else {}
