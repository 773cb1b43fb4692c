"""Faults of skills: how they are listed, and what becomes of their configuration."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first
from harness.faults.operators import Value, answer, answer_by, edit, edit_by, refuse
from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.faults.stored import remark
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.trace import Trace
from harness.trace.values import arr, dig, text

LIST = "skills/list"
WRITE = "skills/config/write"
DATA = ("result", "data")


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
    """Whether the first directory has extra roots, and skills that the others do not have."""
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
    """Whether names or descriptions are others than in the listing before."""
    return former(site, frame) is not None and any(
        _told(one) != _told(other)
        for one, other in zip(entries(frame), arr(dig(former(site, frame), "data")), strict=False)
    )


def _gone(site: FaultSite, frame: Frame) -> set[str]:
    """The names that the listing before had in its first entry, and this one has not."""
    before = arr(dig(former(site, frame), "data"))
    return names(before[0]) - names(entries(frame)[0]) if before and entries(frame) else set()


def _told(entry: Any) -> set[tuple[Any, Any]]:
    return {(dig(one, "name"), dig(one, "description")) for one in arr(dig(entry, "skills"))}


def turn_with(kind: str) -> Selector:
    """The answer to a turn/start whose input has an item of a type."""

    def has(site: FaultSite, frame: Frame) -> bool:
        return any(dig(one, "type") == kind for one in arr(site.asked(frame).get("input")))

    return answer_to("turn/start").where(has, f"with a {kind}")


def unheard(_: FaultSite, trace: Trace) -> Trace:
    """No model call holds anything of the files that we wrote."""
    calls = [mark for mark in trace.marks_of(ModelCall) if mark.body.held]
    if not calls:
        raise NotApplied("no model call with anything of our files")
    return remark(trace, calls, lambda call: replace(call, held=()))


UNHEARD = StoredOnly("what a model call holds is no message", unheard)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "skills-of-a-cwd-left-out",
        rule="skills.entry-per-cwd",
        on="skills",
        reason="A directory that was asked for has an entry, also one without skills.",
        change=first(listing(2), edit_by(*DATA, value=without_the_last)),
    ),
    Fault(
        "skills-of-a-cwd-in-two-entries",
        rule="skills.entry-per-cwd",
        on="skills",
        reason="Skills are grouped by working directory.",
        change=first(listing(), edit_by(*DATA, value=with_the_first_twice)),
    ),
    Fault(
        "skills-of-a-project-not-listed",
        rule="skills.project-listed",
        on="skills",
        reason="The skills of a project lie in its folder .agent/skills.",
        change=first(
            forced().where(lambda _, f: bool(names(entries(f)[0])), "with skills"),
            edit(*DATA, 0, "skills", to=[]),
        ),
    ),
    Fault(
        "skills-of-the-user-not-listed",
        rule="skills.user-listed",
        on="skill-scopes",
        reason="The skills of the user lie in the folder of skills of the home.",
        change=first(
            forced(2).where(lambda _, f: bool(common(f)), "with a skill in every entry"),
            edit_by(*DATA, value=without(common)),
        ),
    ),
    Fault(
        "extra-roots-not-scanned",
        rule="skills.extra-roots-scanned",
        on="skill-scopes",
        reason="Extra roots are scanned as the user's scope for their directory.",
        change=first(
            forced(2).where(extra, "with extra roots"), edit_by(*DATA, value=without(only_first))
        ),
    ),
    Fault(
        "extra-roots-for-every-cwd",
        rule="skills.own-directory",
        on="skill-scopes",
        reason="Extra roots count for their own directory only, and a project's skills too.",
        change=first(
            forced(2).where(lambda _, f: bool(only_first(f)), "with skills in one entry only"),
            edit_by(*DATA, value=shared_out),
        ),
    ),
    Fault(
        "skills-from-the-cache",
        rule="skills.reload-rescans",
        on="skill-reload",
        reason="forceReload passes the cache by and scans the disk again.",
        change=first(forced().where(changed, "that changed"), answer_by(former)),
    ),
    Fault(
        "removed-skills-stay",
        rule="skills.reload-rescans",
        on="skill-reload",
        reason="A skill that was removed is no longer on the disk that is scanned again.",
        change=first(
            forced().where(
                lambda site, f: bool(_gone(site, f)), "that lacks a skill of the one before"
            ),
            answer_by(former),
        ),
    ),
    Fault(
        "skill-kept-from-the-model",
        rule="skills.invoked",
        on="skill-invoked",
        reason="A skill is invoked by its name and an item: the model must hear of it.",
        change=UNHEARD,
    ),
    Fault(
        "skills-never-told-to-the-model",
        rule="skills.found-by-name",
        on="skill-invoked",
        reason="Without the item the model tries to find the skill.",
        change=UNHEARD,
    ),
    Fault(
        "skill-invocation-refused",
        rule="skills.invocation-taken",
        on="skill-invoked",
        reason="A skill is invoked by its name in the text and a skill item beside it.",
        change=first(turn_with("skill"), refuse("no items but texts")),
    ),
    Fault(
        "mention-refused",
        rule="turn.mention-taken",
        on="skill-invoked",
        reason="An app is invoked by its slug in the text and a mention item beside it.",
        change=first(turn_with("mention"), refuse("no items but texts")),
    ),
    Fault(
        "skills-config-answered-with-null",
        rule="skills.config-reply-empty",
        on="skills",
        reason="The result of skills/config/write is {}, not null.",
        change=first(answer_to(WRITE), answer(result=None)),
    ),
    Fault(
        "skills-config-answered-with-members",
        rule="skills.config-reply-empty",
        on="skills",
        reason="The result of skills/config/write is {}; more than that is recorded.",
        change=first(answer_to(WRITE), edit("result", "enabled", to=True)),
    ),
)
