"""Duties of a client in the params of its requests: members, types and words."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Callable
from dataclasses import replace

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Side,
    Witness,
    on_answer,
    on_harness_message,
    on_sent,
    rule,
)
from harness.judge.rules.messages.shapes import judged, payload_of
from harness.judge.rules.shared.skill_listings import LIST, WRITE
from harness.judge.rules.shared.told_before import told_before
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.spec.skill_paths import SKILL_FILE, skill_paths
from harness.protocol.values import MISSING, at, obj, text
from harness.trace.frame import Frame, Kind

_CLIENTS = "client-to-server"
# Under development: what their params are is not shown but for one name (duty.remote-skills).
_REMOTE = "skills/remote/"


class _Params(Monitor):
    """A monitor of the params of the client's requests that the book shows."""

    def judge_params(self, frame: Frame, mine: Callable[[SchemaError], bool]) -> Outcomes:
        """Judge the params of a request, as far as they are this duty's."""
        row = self.book.method(frame.method)
        if frame.deliberate or frame.kind is not Kind.REQUEST:
            return None
        if row is None or row.direction != _CLIENTS or row.params is None:
            return None
        if frame.method.startswith(_REMOTE):
            return None
        params = payload_of(frame)
        if not isinstance(params, dict):
            return None
        errors = [one for one in self.book.validate_params(frame.method, params) if mine(one)]
        found = judged(request_subject(frame), (frame,), member(frame), errors)
        return [self._cited(one, row.clauses[:1]) for one in found]

    def _cited(self, one: Outcome, otherwise: tuple[str, ...]) -> Outcome:
        """A finding with the clauses that bind clients; some members have none of their own."""
        if isinstance(one, Witness):
            return one
        mine = {row.id for row in self.book.requirements_of(self.id)}
        cited = tuple(name for name in one.clauses if name in mine)
        return replace(one, clauses=cited or otherwise)


@rule(
    "duty.params-complete",
    title="The client's requests have the params that they need",
    level=Level.MUST,
    side=Side.CLIENT,
)
class ParamsComplete(_Params):
    """Judges that no param is missing that the text marks as required, nor a part of one.

    Such as the input of a turn/start, the expectedTurnId of a turn/steer, the text of an input. The
    details of a sandbox policy are named and not said to be always there: SHOULD. Params that are
    null or not there have none. Left open: params of requests that are not shown, and params that
    are no object (duty.message-form).
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        return self.judge_params(frame, lambda one: _missing(one, frame))


@rule(
    "duty.params-valid",
    title="The client's params have the types and words that the specification lists",
    level=Level.MUST,
    side=Side.CLIENT,
)
class ParamsValid(_Params):
    """Judges the types of params, and the words of those whose words are listed.

    Such as policies, effort, kinds of input. Null is as good as nothing for what may be left out.
    Left open: params that the text does not list, which are taken and left unused, and what is
    missing (duty.params-complete).
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        return self.judge_params(frame, lambda one: not _missing(one, frame))


def _missing(error: SchemaError, frame: Frame) -> bool:
    return at(frame.params, error.path) is MISSING


@rule(
    "duty.skill-paths",
    title="The client names skills by the absolute paths of their files",
    level=Level.MUST,
    needs=("skills",),
    side=Side.CLIENT,
)
class SkillPaths(Monitor):
    """Judges the paths that the client sends: of skills to be used or configured, of extra roots.

    That of a skill is the absolute path of its SKILL.md, not of its folder; extra roots are
    absolute. Left open: whether there is such a file, and paths that are no strings
    (duty.params-valid).
    """

    @on_sent("turn/start", "turn/steer", WRITE, LIST)
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return
        subject = request_subject(frame)
        for path, right in skill_paths(frame.method, frame.params):
            if not isinstance(at(frame.params, path), str):
                continue
            if right:
                yield Witness(subject, (frame,))
            else:
                root = "extraUserRoots" in path
                expected = f"an absolute path{'' if root else f' of a {SKILL_FILE}'}"
                yield wrong(subject, (frame,), member(frame, *path), expected)


@rule(
    "duty.cursor-given",
    title="The client asks for a page by a cursor that it was given",
    level=Level.SHOULD,
    needs=("thread-list",),
    side=Side.CLIENT,
)
class CursorGiven(Monitor):
    """Judges that the cursor of a thread/list stands in something that the server wrote before.

    A cursor is opaque: a client that makes one up, or changes one, asks for no page that there is.
    SHOULD, since one may come from a session that is not in the trace: it is judged only where the
    client was given a page before, on this connection. Left open: whether it is still good.
    """

    def begin(self) -> None:
        self._listed = False

    @on_answer("thread/list")
    def on_thread_list_answer(self, _: Frame) -> Outcomes:
        self._listed = True
        return None

    @on_sent("thread/list")
    def on_thread_list_sent(self, frame: Frame) -> Outcomes:
        cursor = text(obj(frame.params).get("cursor"))
        if frame.deliberate or not cursor or not self._listed:
            return None
        subject, where = request_subject(frame), member(frame, "cursor")
        if told_before(self.trace, frame, cursor):
            return [Witness(subject, (frame,))]
        return [wrong(subject, (frame,), where, "the nextCursor of an earlier reply")]
