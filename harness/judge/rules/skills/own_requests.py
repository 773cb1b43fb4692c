"""Rule on the paths of skills that the harness sends: a finding does not blame the target."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import replace

from harness.judge.base import Monitor, Outcomes, Witness, on_sent, rule
from harness.judge.rules.shared.skill_listings import LIST, WRITE
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.skill_paths import SKILL_FILE, skill_paths
from harness.trace.frame import Frame


@rule(
    "harness.own-skill-paths",
    title="The harness names skills by the absolute paths of their files",
    level=Level.MUST,
    needs=("skills",),
)
class OwnSkillPaths(Monitor):
    """Judges the paths that the harness sends, of used or configured skills and of extra roots.

    The path of a skill is the absolute path of its SKILL.md, and extra roots are absolute. A
    finding blames the harness (verdict ERROR). Left open: deliberately wrong paths of a scenario.
    """

    @on_sent("turn/start", "turn/steer", WRITE, LIST)
    def on_skill_request_sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return
        subject = f"own {request_subject(frame)}"
        for path, right in skill_paths(frame.method, frame.params):
            if right:
                yield Witness(subject, (frame,))
            else:
                root = "extraUserRoots" in path
                expected = f"an absolute path{'' if root else f' of a {SKILL_FILE}'}"
                violation = wrong(subject, (frame,), member(frame, *path), expected)
                yield replace(violation, blame_harness=True)
