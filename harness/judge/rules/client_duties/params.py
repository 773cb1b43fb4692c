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
from harness.judge.rules.messages.shapes import judge_payload, payload_of
from harness.judge.rules.shared.earlier_texts import cursor_sent_before
from harness.judge.rules.shared.skill_listings import LIST, WRITE
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.spec.skill_paths import SKILL_FILE, skill_paths
from harness.protocol.values import MISSING, obj, text, value_at
from harness.trace.frame import Frame, Kind

_CLIENTS = "client-to-server"
# Under development: their params are not shown (duty.remote-skills).
_REMOTE = "skills/remote/"


class _ParamsRule(Monitor):
    """Base of rules on the params of the client's requests that the book shows."""

    def judge_params(self, frame: Frame, is_relevant: Callable[[SchemaError], bool]) -> Outcomes:
        """Judge the params of a request by the schema errors relevant to this duty."""
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
        errors = [
            error for error in self.book.validate_params(frame.method, params) if is_relevant(error)
        ]
        outcomes = judge_payload(request_subject(frame), (frame,), member(frame), errors)
        return [self._with_client_clauses(outcome, row.clauses[:1]) for outcome in outcomes]

    def _with_client_clauses(self, outcome: Outcome, default_clauses: tuple[str, ...]) -> Outcome:
        """Return an outcome with the clauses that bind clients, or the default ones."""
        if isinstance(outcome, Witness):
            return outcome
        own_clauses = {row.id for row in self.book.requirements_of(self.id)}
        clauses = tuple(name for name in outcome.clauses if name in own_clauses)
        return replace(outcome, clauses=clauses or default_clauses)


@rule(
    "duty.params-complete",
    title="The client's requests have the params that they need",
    level=Level.MUST,
    side=Side.CLIENT,
)
class ParamsComplete(_ParamsRule):
    """Judges that no required param is missing, nor a required part of one.

    Examples are the input of a turn/start, the expectedTurnId of a turn/steer, the text of an
    input. The details of a sandbox policy are named but not said to be always present: SHOULD.
    Params that are null or missing have no members. Left open: params of requests that are not
    specified, and params that are not an object (duty.message-form).
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        return self.judge_params(frame, lambda one: _is_missing(one, frame))


@rule(
    "duty.params-valid",
    title="The client's params have the types and words that the specification lists",
    level=Level.MUST,
    side=Side.CLIENT,
)
class ParamsValid(_ParamsRule):
    """Judges the types of params, and the words of those with listed words.

    Examples are policies, effort, kinds of input. Null equals absence for optional params. Left
    open: params that the specification does not list, which are accepted and ignored, and missing
    ones (duty.params-complete).
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        return self.judge_params(frame, lambda one: not _is_missing(one, frame))


def _is_missing(error: SchemaError, frame: Frame) -> bool:
    return value_at(frame.params, error.path) is MISSING


@rule(
    "duty.skill-paths",
    title="The client names skills by the absolute paths of their files",
    level=Level.MUST,
    needs=("skills",),
    side=Side.CLIENT,
)
class SkillPaths(Monitor):
    """Judges the paths that the client sends: of skills to use or configure, of extra roots.

    A skill's path is the absolute path of its SKILL.md, not of its folder; extra roots are
    absolute. Left open: whether the file exists, and paths that are not strings
    (duty.params-valid).
    """

    @on_sent("turn/start", "turn/steer", WRITE, LIST)
    def on_skill_request_sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return
        subject = request_subject(frame)
        for path, right in skill_paths(frame.method, frame.params):
            if not isinstance(value_at(frame.params, path), str):
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
    """Judges that the server had sent the cursor of a thread/list as a cursor.

    A cursor is opaque: a client that invents or changes one, or sends the id of a thread instead,
    asks for a page that does not exist. SHOULD, since it may come from a session outside the trace:
    judged only if this connection got a page before. Left open: whether it is still valid.
    """

    def begin(self) -> None:
        self._has_page = False

    @on_answer("thread/list")
    def on_thread_list_answer(self, _: Frame) -> Outcomes:
        self._has_page = True
        return None

    @on_sent("thread/list")
    def on_thread_list_sent(self, frame: Frame) -> Outcomes:
        cursor = text(obj(frame.params).get("cursor"))
        if frame.deliberate or not cursor or not self._has_page:
            return None
        subject, field = request_subject(frame), member(frame, "cursor")
        if cursor_sent_before(self.trace, frame, cursor):
            return [Witness(subject, (frame,))]
        return [wrong(subject, (frame,), field, "the nextCursor of an earlier reply")]
