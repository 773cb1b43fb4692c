"""Rules on skills/config/write: its answer, and what the listing shows of it afterwards."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, on_answer, rule
from harness.judge.verdict import Level
from harness.rules.shared.empty_replies import empty_reply
from harness.rules.shared.skill_listings import WRITE
from harness.trace.frame import Frame


@rule(
    "skills.config-reply-empty",
    title="skills/config/write is answered with {}",
    level=Level.MUST,
    needs=("skills",),
)
class ConfigReply(Monitor):
    """Judges that a successful skills/config/write is answered with an empty object.

    Members beyond that are extra members, which nothing forbids: recorded as INFO.
    """

    @on_answer(WRITE)
    def answer(self, frame: Frame) -> Outcomes:
        return empty_reply(self.conversation.request_of(frame), frame)
