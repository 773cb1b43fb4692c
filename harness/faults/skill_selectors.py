"""Selectors of answers to skills/list ("listings"), and changes of their entries."""

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
    """Select a listing whose request names at least `least` directories."""
    return answer_to(LIST).where(
        lambda site, f: len(arr(site.params_of(f).get("cwds"))) >= least, f"of {least} or more"
    )


def entries(frame: Frame) -> list[Any]:
    """Return the entries of a listing."""
    return arr(dig(frame.result, "data"))


def without_the_last(site: FaultSite, frame: Frame) -> list[Any]:
    """Return all entries but the last."""
    return entries(frame)[:-1]


def with_the_first_twice(site: FaultSite, frame: Frame) -> list[Any]:
    """Return all entries, then the first once more."""
    return [*entries(frame), *entries(frame)[:1]]


def forced_listing(least: int = 1) -> Selector:
    """Select a listing whose request has `forceReload` and names at least `least` directories."""
    return listing(least).where(
        lambda site, f: site.params_of(f).get("forceReload") is True, "with forceReload"
    )


def unforced_listing() -> Selector:
    """Select a listing whose request does not have `forceReload`."""
    return listing().where(
        lambda site, f: site.params_of(f).get("forceReload") is not True, "without forceReload"
    )


def skill_names(entry: Any) -> set[str]:
    """Return the names of the skills in an entry."""
    return {text(dig(skill, "name")) for skill in arr(dig(entry, "skills"))}


def names_in_all(frame: Frame) -> set[str]:
    """Return the names of the skills that every entry has."""
    return set[str].intersection(*map(skill_names, entries(frame)))


def only_first(frame: Frame) -> set[str]:
    """Return the names of the skills that only the first entry has."""
    return skill_names(entries(frame)[0]).difference(*map(skill_names, entries(frame)[1:]))


def has_extra_roots(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first directory has extra roots, and skills of its own."""
    params = site.params_of(frame)
    cwds, roots = arr(params.get("cwds")), arr(params.get("perCwdExtraUserRoots"))
    return bool(cwds and roots) and dig(roots[0], "cwd") == cwds[0] and bool(only_first(frame))


def without_skills(which: Callable[[Frame], set[str]]) -> Value:
    """Return a function that gives the entries without the skills whose names `which` returns."""

    def entries_without(_: FaultSite, frame: Frame) -> list[Any]:
        dropped = which(frame)
        return [
            {
                **entry,
                "skills": [skill for skill in entry["skills"] if skill["name"] not in dropped],
            }
            for entry in entries(frame)
        ]

    return entries_without


def with_all_skills(_: FaultSite, frame: Frame) -> list[Any]:
    """Return the entries, each with the skills of all entries."""
    everything = [skill for entry in entries(frame) for skill in entry["skills"]]
    return [{**entry, "skills": everything} for entry in entries(frame)]


def previous_result(site: FaultSite, frame: Frame) -> Any:
    """Return the result of the previous listing of the same directories, None if there is none."""
    earlier = [
        other
        for other in site.frames
        if other.seq < frame.seq
        and answer_to(LIST).fits(site, other)
        and site.params_of(other).get("cwds") == site.params_of(frame).get("cwds")
    ]
    return earlier[-1].result if earlier else None


def has_changed_entries(site: FaultSite, frame: Frame) -> bool:
    """Return whether names or descriptions differ from the previous listing."""
    return previous_result(site, frame) is not None and any(
        _named_descriptions(left) != _named_descriptions(right)
        for left, right in zip(
            entries(frame), arr(dig(previous_result(site, frame), "data")), strict=False
        )
    )


def lacks_a_name(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry lacks a name that it had in the previous listing."""
    before = arr(dig(previous_result(site, frame), "data"))
    return bool(
        before and entries(frame) and skill_names(before[0]) - skill_names(entries(frame)[0])
    )


def _named_descriptions(entry: Any) -> set[tuple[Any, Any]]:
    return {(dig(skill, "name"), dig(skill, "description")) for skill in arr(dig(entry, "skills"))}


def turn_with(kind: str) -> Selector:
    """Select the answer to a turn/start whose input has an entry of a type."""

    def has(site: FaultSite, frame: Frame) -> bool:
        return any(dig(entry, "type") == kind for entry in arr(site.params_of(frame).get("input")))

    return answer_to("turn/start").where(has, f"with a {kind}")


def of_the_session() -> Selector:
    """Select a listing whose request named no directory and came after a thread was started."""

    def after_a_thread(site: FaultSite, frame: Frame) -> bool:
        request = site.request_of(frame)
        threads = [
            thread for thread in site.conversation.threads.values() if thread.reply is not None
        ]
        return any(request is not None and t.reply and t.reply.seq < request.seq for t in threads)

    return (
        answer_to(LIST)
        .where(lambda site, f: not site.params_of(f).get("cwds"), "of no directory")
        .where(after_a_thread, "after a thread")
    )


def accepted_writes(site: FaultSite, frame: Frame, path: str = "") -> list[Frame]:
    """Return the answers to accepted skills/config/write before a frame, for a path if given."""
    return [
        other
        for other in site.frames
        if other.seq < frame.seq
        and answer_to(WRITE).fits(site, other)
        and path in ("", text(site.params_of(other).get("path")))
    ]


def _configured_names(site: FaultSite, frame: Frame) -> set[str]:
    """Return the names of the configured skills, taken from the folders in their paths."""
    paths = [
        text(site.params_of(event).get("path")).split("/") for event in accepted_writes(site, frame)
    ]
    return {path[-2] for path in paths if len(path) > 1}


def shows_configured(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry has a skill that was configured."""
    return bool(_configured_names(site, frame) & skill_names(entries(frame)[0]))


def shows_another(site: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry has a skill that was not configured, and a forced listing came
    before the last write.
    """
    writes = accepted_writes(site, frame)
    other_skills = skill_names(entries(frame)[0]) - _configured_names(site, frame)
    before = [other for other in site.frames if writes and other.seq < writes[-1].seq]
    return bool(other_skills) and any(forced_listing().fits(site, earlier) for earlier in before)


def shows_disabled(site: FaultSite, frame: Frame) -> bool:
    """Return whether a listing has a disabled skill although the client configured none."""
    skills = [skill for entry in entries(frame) for skill in arr(dig(entry, "skills"))]
    return not accepted_writes(site, frame) and any(
        dig(skill, "enabled") is False for skill in skills
    )


def toggle_enabled(which: Callable[[FaultSite, Frame, Any], bool]) -> Value:
    """Return a function that gives the entries with `enabled` inverted where `which` is true."""

    def turn(site: FaultSite, frame: Frame, skill: Any) -> Any:
        other = {**skill, "enabled": not skill["enabled"]}
        return other if which(site, frame, skill) else skill

    def all_turned(site: FaultSite, frame: Frame) -> list[Any]:
        return [
            {**entry, "skills": [turn(site, frame, skill) for skill in entry["skills"]]}
            for entry in entries(frame)
        ]

    return all_turned


def is_configured(site: FaultSite, frame: Frame, skill: Any) -> bool:
    """Return whether the client has configured a skill before a frame."""
    return skill["name"] in _configured_names(site, frame)


def is_another(site: FaultSite, frame: Frame, skill: Any) -> bool:
    """Return whether the client has not configured a skill before a frame."""
    return not is_configured(site, frame, skill)


def is_disabled(_site: FaultSite, _frame: Frame, skill: Any) -> bool:
    """Return whether a skill is shown as disabled."""
    return skill["enabled"] is False


def with_icons(_: FaultSite, frame: Frame) -> bool:
    """Return whether the small icon of the first skill is `icon.svg`."""
    return _interface(frame).get("iconSmall") == "icon.svg"


def with_colour(_: FaultSite, frame: Frame) -> bool:
    """Return whether the first skill has a colour."""
    return isinstance(_interface(frame).get("brandColor"), str)


def with_errors(_: FaultSite, frame: Frame) -> bool:
    """Return whether the first entry has errors."""
    return bool(entries(frame)) and bool(arr(dig(entries(frame)[0], "errors")))


def with_all_errors(_: FaultSite, frame: Frame) -> list[Any]:
    """Return the entries, each with the errors of all entries."""
    everything = [error for entry in entries(frame) for error in arr(entry["errors"])]
    return [{**entry, "errors": everything} for entry in entries(frame)]


def _interface(frame: Frame) -> dict[str, Any]:
    """Return the interface of the first skill of the first entry, {} if there is none."""
    skills = [skill for entry in entries(frame)[:1] for skill in arr(dig(entry, "skills"))]
    return obj(dig(skills[0], "interface")) if skills else {}
