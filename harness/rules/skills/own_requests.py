"""The rule on the paths of skills that the harness sends: a target is not blamed for them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from harness.judge.base import Monitor, Outcomes, Witness, on_sent, rule
from harness.judge.verdict import Level
from harness.rules.shared.skill_files import FILE
from harness.rules.shared.skill_listings import LIST, WRITE
from harness.rules.shared.view_queries import request_subject
from harness.rules.shared.violations import Member, member, wrong
from harness.trace.frame import Frame
from harness.trace.values import arr, obj


@rule(
    "harness.own-skill-paths",
    title="The harness names skills by the absolute paths of their files",
    level=Level.MUST,
    needs=("skills",),
)
class OwnSkillPaths(Monitor):
    """Judges the paths that the harness sends: of skills to be used or configured, of extra roots.

    That of a skill is the absolute path of its SKILL.md, and extra roots are absolute. A finding
    blames the harness (verdict ERROR). Left open: what a scenario made wrong on purpose.
    """

    @on_sent("turn/start", "turn/steer", WRITE, LIST)
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return
        subject = f"own {request_subject(frame)}"
        for where, whole in _paths(frame):
            path = where.value
            absolute = isinstance(path, str) and posixpath.isabs(path)
            if absolute and (not whole or posixpath.basename(path) == FILE):
                yield Witness(subject, (frame,))
            else:
                expected = f"an absolute path{f' of a {FILE}' if whole else ''}"
                found = wrong(subject, (frame,), where, expected)
                yield replace(found, blame_harness=True)


def _paths(frame: Frame) -> Iterator[tuple[Member, bool]]:
    """The paths in a request, and whether each is that of a SKILL.md."""
    params = obj(frame.params)
    if frame.method == WRITE:
        yield member(frame, "path"), True
    for index, part in enumerate(arr(params.get("input"))):
        if obj(part).get("type") == "skill":
            yield member(frame, "input", index, "path"), True
    for index, one in enumerate(arr(params.get("perCwdExtraUserRoots"))):
        for number, _ in enumerate(arr(obj(one).get("extraUserRoots"))):
            where = member(frame, "perCwdExtraUserRoots", index, "extraUserRoots", number)
            yield where, False
