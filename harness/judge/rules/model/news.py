"""Rules on what the client is told about the model, by the marks of the scripted model.

The text gives these notifications no place, so they are judged at the end of a quiescent trace.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on, on_sent, rule
from harness.judge.rules.shared.state_tracking import INTERRUPTED
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, came_to_its_end
from harness.judge.rules.shared.view_queries import turn_in
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import difference, literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd
from harness.trace.order import came_before

# A plan in comparable form: the steps with their statuses.
Plan = list[tuple[str, str]]


class News(Calls):
    """Keeps the turns whose calls are known until the end of the trace."""

    def begin(self) -> None:
        """No turn has ended."""
        super().begin()
        self._turns: list[tuple[TurnCalls, Frame]] = []

    def ended(self, asked: TurnCalls, end: Frame) -> Iterable[Outcome]:
        """Keep the turn."""
        self._turns.append((asked, end))
        return ()

    def finish(self) -> Outcomes:
        """Judge each turn."""
        for asked, end in self._turns:
            yield from self.judge(asked, end)

    @abstractmethod
    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        """Judge a turn, with everything that was ever sent about it."""


def _same_model(name: str, asked: set[str]) -> bool:
    """Return whether this is a model that was asked, by its name or by a longer one, as with a
    date.

    A provider may stand before either name; upper and lower case are not told apart.
    """
    plain = _plain(name)
    return any(
        plain == _plain(one) or (one and plain.startswith(f"{_plain(one)}-")) for one in asked
    )


def _plain(model: str) -> str:
    return model.rpartition("/")[2].casefold()


@rule("turn.usage-told", title="Token usage that changed in a turn is told", level=Level.SHOULD)
class UsageTold(News):
    """Judges that a completed turn whose model reported tokens brings thread/tokenUsage/updated.

    One for each such turn, at any place after its turn/start was sent; which turn one is about
    cannot be read, since the payload is not shown. That the tokens which a model reports are the
    usage that is told of is our reading: SHOULD. Left open: turns that did not complete, models
    that report none, several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._told: list[Frame] = []

    @on("thread/tokenUsage/updated")
    def on_thread_token_usage_updated(self, frame: Frame) -> Outcomes:
        self._told.append(frame)
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        if not came_to_its_end(end) or not any(call.usage for call in asked.ends):
            return
        after = [frame for frame in self._told if came_before(asked.request, frame)]
        frames = (asked.request, end)
        if after:
            self._told.remove(after[0])
            yield Witness(asked.subject, (*frames, after[0]))
        else:
            used = sum(call.usage for call in asked.ends)
            expected = f"thread/tokenUsage/updated, since the model counted {used} tokens"
            actual = f"none came between turn/start and the end of {asked.subject}, or after it"
            yield absent(asked.subject, frames, expected, actual)


@rule(
    "turn.plan-told",
    title="A plan that the model shares or changes is told",
    level=Level.MUST,
    needs=("plan-update",),
)
class PlanTold(News):
    """Judges that each plan that the model gave in a completed turn is in a turn/plan/updated.

    In the order in which they were given; one that is the same as the one before changes nothing.
    Of several plans in one answer the last is what the plan has become, so that it is SHOULD for
    those before it; and SHOULD for their order, since a server may carry out the calls of an answer
    at once. Compared by steps and statuses, without the white space around them. Left open: the
    explanation, further notifications, plans of answers that did not come to their end, plans that
    a server may refuse (a step without words, several in progress), turns that were steered or did
    not complete, several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._told: dict[str, list[Frame]] = {}
        self._steered: set[str] = set()

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        self._steered.add(text(obj(frame.params).get("expectedTurnId")))
        return None

    @on("turn/plan/updated")
    def on_turn_plan_updated(self, frame: Frame) -> Outcomes:
        self._told.setdefault(self.conversation.key_of(frame), []).append(frame)
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        answers = list(_given(asked.ends))
        if not answers or not came_to_its_end(end) or asked.turn_id in self._steered:
            return
        told, found = self._told.get(asked.turn_id, []), list[int]()
        before: Plan | None = None
        for plans in answers:
            first = max(found, default=-1) + 1
            for plan, is_last in plans:
                if plan == before:
                    continue
                before, last = plan, max(found, default=-1)
                free = [n for n in range(first, len(told)) if n not in found]
                same = [n for n in free if _plan(obj(told[n].params).get("plan")) == plan]
                at = min(same, key=lambda n: (n < last, n), default=None)
                if at is None or at < last:
                    frames = (asked.request, *[told[n] for n in found[-1:]], end)
                    untold = self._missing(asked, plan, frames, at)
                    lost = at is None and is_last
                    yield untold if lost else replace(untold, level=Level.SHOULD)
                    if lost:
                        return
                if at is not None:
                    found.append(at)
        if found:
            yield Witness(asked.subject, (*[told[n] for n in sorted(found)], end))

    def _missing(
        self, asked: TurnCalls, plan: Plan, frames: tuple[Frame, ...], early: int | None
    ) -> Violation:
        """A plan that was not told: against the last one that was, where there was any.

        `early` is the place of the notification that told it before the plan of an earlier call.
        """
        steps = [{"step": step, "status": status} for step, status in plan]
        expected = f"turn/plan/updated of {asked.subject} with {literal(steps)}, as the model gave"
        told = self._told.get(asked.turn_id, ())
        if not told:
            return Violation(asked.subject, frames, expected, "none came")
        where = member(told[-1 if early is None else early], "plan")
        last = [{"step": step, "status": status} for step, status in _plan(where.value)]
        if last == steps:
            actual = f"it came before another of the {len(told)} that were told, not after it"
            return Violation(asked.subject, frames, expected, actual, places=(where.place,))
        other = difference(steps, last)
        place = where.part(*other.path).place
        actual = f"none of {len(told)} has that; the last has {other.told(where.name)[1]}"
        return Violation(asked.subject, frames, expected, actual, places=(place,))


def _plan(value: Any) -> Plan:
    return [(text(obj(e).get("step")).strip(), text(obj(e).get("status"))) for e in arr(value)]


def _given(ends: list[ModelEnd]) -> Iterator[list[tuple[Plan, bool]]]:
    """The plans of each answer that a server certainly took, and whether each is its last one."""
    for call in ends:
        plans = [[(one.step.strip(), one.status) for one in plan] for plan in call.plans]
        if call.completed:
            last = len(plans) - 1
            yield [(plan, at == last) for at, plan in enumerate(plans) if _is_certain(plan)]


def _is_certain(plan: Plan) -> bool:
    running = sum(status == "inProgress" for _, status in plan)
    return running <= 1 and all(step for step, _ in plan)


@rule(
    "turn.reroute-told",
    title="It is told when another model answers",
    level=Level.MUST,
    needs=("model-reroute",),
)
class RerouteTold(News):
    """Judges that model/rerouted names the model that answered, where it was not the one asked.

    SHOULD in a turn after one in which the same was told: it may be told when it begins. Left open:
    which model it says it comes from, the reason, another form of the name that was asked (`m`,
    `m-2026-01`, `provider/m`), answers that did not come to their end, turns that did not complete,
    several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._told: dict[str, list[Frame]] = {}

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._told.setdefault(self.conversation.key_of(frame), []).append(frame)
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        models = {call.model or "" for call in asked.calls}
        others = [call.answers for call in asked.ends if call.completed and call.answers]
        told = self._told.get(asked.turn_id, [])
        if not came_to_its_end(end):
            return
        for other in dict.fromkeys(name for name in others if not _same_model(name, models)):
            named = [one for one in told if obj(one.params).get("toModel") == other]
            if named:
                yield Witness(asked.subject, (asked.request, named[0]))
            else:
                frames = (asked.request, *told[:1], end)
                names = [member(one, "toModel") for one in told]
                actual = "; ".join(map(str, names)) or "none came"
                expected = f"model/rerouted with params.toModel: {literal(other)}, which answered"
                places = tuple(one.place for one in names)
                level = Level.SHOULD if self._told_before(other, asked) else None
                yield Violation(asked.subject, frames, expected, actual, level, places=places)

    def _told_before(self, model: str, asked: TurnCalls) -> bool:
        return any(
            obj(one.params).get("toModel") == model and came_before(one, asked.request)
            for told in self._told.values()
            for one in told
        )


@rule(
    "error.told-mid-turn",
    title="A failure that a turn survives is told",
    level=Level.SHOULD,
    needs=("model-retry",),
)
class ToldMidTurn(News):
    """Judges that a turn which completed though an answer of its model broke off told of an error.

    An error within a turn is told by the error notification, and a stream that is disconnected is
    one of those that the text classifies; that one which is made good again is an error of the turn
    is derived: SHOULD. Left open: turns that failed (turn/completed has their
    error), calls that were refused by a status before anything was answered (a client library may
    have tried again unseen), turns that were steered (the server may have left that answer itself,
    to ask anew with the input), several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._steered: set[str] = set()

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        named = text(params.get("threadId")), text(params.get("expectedTurnId"))
        turn = self.conversation.turn_at(*named)
        self._steered.add(named[1] if turn is None else turn.key)
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        broken = [call.told for call in asked.ends if broke_off(call)]
        turn = self.conversation.turns.get(asked.turn_id)
        if not broken or turn is None or not came_to_its_end(end):
            return
        frames = (asked.request, *turn.errors[:1], end)
        if turn.errors:
            yield Witness(asked.subject, frames)
        elif asked.turn_id not in self._steered:
            expected = f"error about {asked.subject}, since an answer of its model: {broken[0]}"
            yield absent(asked.subject, frames, expected, "none came")


def broke_off(call: ModelEnd) -> bool:
    """Return whether an answer was cut, or ended by an error event."""
    return call.outcome in (CallEnd.DISCONNECTED, CallEnd.FAILED)


def _failed(call: ModelEnd) -> bool:
    return broke_off(call) or call.outcome is CallEnd.STATUS


@rule("error.retry-follows", title="A retry that is announced is made", level=Level.SHOULD)
class RetryFollows(News):
    """Judges that a turn which said it will retry asked its model again.

    A finding: `error` with willRetry true in a turn that ended, not interrupted, after one call of
    the model, which failed. SHOULD, though the text says what willRetry means: calls and messages
    have no order here, so the error may have been about something before the one call. Left open:
    what came of the retry, several threads or turns at once.
    """

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(asked.turn_id)
        told = [e for e in turn.errors if obj(e.params).get("willRetry") is True] if turn else []
        if not told or dig(turn_in(end), "status") == INTERRUPTED:
            return
        frames = (asked.request, told[0], end)
        if len(asked.calls) > 1:
            yield Witness(asked.subject, frames)
        elif asked.ends and all(map(_failed, asked.ends)):
            retry = member(told[0], "willRetry")
            actual = f"one call, of which came: {asked.ends[0].told}"
            yield absent(asked.subject, frames, "another call of the model", actual, retry)
