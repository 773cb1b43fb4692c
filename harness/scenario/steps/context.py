"""The surroundings of a step, and the registry of the functions that play steps."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from harness.client.inbox import Predicate
from harness.client.peer import Peer
from harness.client.target.profile import Bounds, fill
from harness.errors import HarnessError, TargetGone
from harness.model.model import ScriptedModel
from harness.protocol.values import dig, obj, text
from harness.scenario.client_steps import MAIN, Answers, gives
from harness.scenario.references import UnknownValue, resolved
from harness.scenario.steps.awaited import ANSWER, NOTHING, Awaited
from harness.trace.frame import Frame, Kind


@dataclass(slots=True)
class Cast:
    """The meaning of the scenario's aliases in this run."""

    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[str, str] = field(default_factory=dict[str, str])
    thread_of: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, alias: str, request: Frame, answer: Frame) -> None:
        """Note the thread or turn that the answer to a request gives the alias, if any."""
        result = answer.result
        thread_id, turn_id = (text(dig(result, name, "id")) for name in ("thread", "turn"))
        if thread_id and gives(request.method, "thread"):
            self.threads[alias] = thread_id
        if turn_id and gives(request.method, "turn"):
            self.turns[alias] = turn_id
            asked_of = text(dig(request.params, "threadId"))
            # A review may run on a thread of its own.
            self.thread_of[alias] = text(dig(result, "reviewThreadId")) or asked_of


class UnmetKind(StrEnum):
    """Reasons why a step could not be done.

    TIMEOUT: what it waited for did not come within its bound. REFUSED: the server answered, and not
    as the step expects. CRASH: the server closed the connection. OTHER_END: a turn ended in another
    way than the step expects. NOT_OFFERED: the target lacks a capability. NOT_REACHED: a race's
    turn ended before it came to the position.
    """

    TIMEOUT = "timeout"
    REFUSED = "refused"
    CRASH = "crash"
    OTHER_END = "other-end"
    NOT_OFFERED = "not-offered"
    NOT_REACHED = "not-reached"


class StepFailed(HarnessError):
    """A step cannot be done, and why; `capability` is what the target lacks, "" for none."""

    def __init__(self, kind: UnmetKind, message: str, *, capability: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.capability = capability


class Connections(Protocol):
    """The connections of a scenario, by their names in the file, and the process behind them."""

    def peer(self, name: str) -> Peer:
        """The connection of that name."""
        ...

    async def connect(self, name: str) -> None:
        """Open a further connection. Raises `StepFailed` where the target allows one only."""
        ...

    async def disconnect(self, name: str) -> None:
        """End a connection."""
        ...

    async def kill(self) -> None:
        """Kill the server."""
        ...

    async def restart(self) -> None:
        """End the server if it runs, and start it again over the same home."""
        ...

    async def model_listens(self, *, listening: bool) -> None:
        """Return whether the model's address takes connections or refuses them."""
        ...


class OneConnection:
    """A connection to something that cannot be killed, restarted or reached twice."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def peer(self, name: str) -> Peer:
        """The one connection."""
        return self._peer

    async def connect(self, name: str) -> None:
        """Never possible."""
        message = f"there is no second connection for {name!r}: the target offers one only"
        raise StepFailed(UnmetKind.NOT_OFFERED, message, capability="several-clients")

    async def disconnect(self, name: str) -> None:
        """End the connection."""
        await self._peer.transport.aclose()

    async def kill(self) -> None:
        """Never possible."""
        raise StepFailed(UnmetKind.REFUSED, "there is no process behind this connection")

    async def restart(self) -> None:
        """Never possible."""
        raise StepFailed(UnmetKind.REFUSED, "there is no process behind this connection")

    async def model_listens(self, *, listening: bool) -> None:
        """Never possible."""
        raise StepFailed(UnmetKind.REFUSED, "the model's address is not ours")


def _nothing() -> str:
    return ""


@dataclass(slots=True)
class StepContext:
    """The state of one run of the client's side.

    `values` holds what came back under each alias, `sent` the requests whose answers are still to
    be waited for, `taken` the frames that a wait has had, `awaited` what the step waits for now,
    `tasks` what runs beside the steps; `came` tells what came instead of what is awaited.
    """

    connections: Connections
    model: ScriptedModel
    cast: Cast
    cwd: Path
    bounds: Bounds
    thread_params: dict[str, Any]
    markers: dict[str, str]
    turn_params: dict[str, Any] = field(default_factory=dict[str, Any])
    places: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    sent: dict[str, tuple[Peer, Frame, Answers]] = field(
        default_factory=dict[str, tuple[Peer, Frame, Answers]]
    )
    taken: set[int] = field(default_factory=set[int])
    awaited: Awaited = NOTHING
    came: Callable[[], str] = _nothing
    tasks: TaskGroup | None = None

    def beside(self, task: Callable[[], Awaitable[None]]) -> None:
        """Do this beside the steps, until the last of them; the end of the server ends it."""

        async def run() -> None:
            with contextlib.suppress(TargetGone):
                await task()

        if self.tasks is None:
            raise RuntimeError("no step is being played")
        self.tasks.start_soon(run)

    def peer(self, name: str = MAIN) -> Peer:
        """The connection of that name."""
        return self.connections.peer(name)

    def thread(self, alias: str) -> str:
        """The id of the thread of that alias."""
        return self._id(self.cast.threads, alias, "thread")

    def turn(self, alias: str) -> str:
        """The id of the turn of that alias."""
        return self._id(self.cast.turns, alias, "turn")

    @staticmethod
    def _id(ids: dict[str, str], alias: str, what: str) -> str:
        if alias not in ids:
            message = f"the answer that names {what} {alias} has no {what}.id"
            raise StepFailed(UnmetKind.REFUSED, message)
        return ids[alias]

    def resolved(self, value: Any) -> Any:
        """The value with its placeholders and references replaced: by places, by what came back."""
        try:
            return resolved(fill(value, self.places), self.values)
        except UnknownValue as error:
            raise StepFailed(UnmetKind.REFUSED, str(error)) from error

    async def ask(self, on: str, method: str, params: Any, *, alias: str | None = None) -> Frame:
        """Send a request that must be answered by a result."""
        peer = self.peer(on)
        request = await peer.send_request(method, params)
        return await self.answer_to(peer, request, "result", alias)

    async def answer_to(
        self, peer: Peer, request: Frame, expect: Answers, alias: str | None
    ) -> Frame:
        """Wait for the answer to a request; it must be what the step expects."""
        self.waits_for(ANSWER)
        answer = await peer.wait_for_answer(request)
        method = request.method or "the request"
        if answer.kind is Kind.ERROR and expect == "result":
            message = text(obj(answer.failure).get("message")) or "no message"
            raise StepFailed(UnmetKind.REFUSED, f"{method} was answered by an error: {message}")
        if answer.kind is not Kind.ERROR and expect == "error":
            raise StepFailed(
                UnmetKind.REFUSED, f"{method} was answered by a result; expected an error"
            )
        if alias is not None:
            self.values[alias] = answer.failure if answer.kind is Kind.ERROR else answer.result
            self.cast.note(alias, request, answer)
        return answer

    def waits_for(self, what: Awaited | str, came: Callable[[], str] = _nothing) -> None:
        """Note what is waited for now, and what tells of the nearest that came instead.

        A `str` is its own kind: its words are the same wherever the same is waited for.
        """
        self.awaited = what if isinstance(what, Awaited) else Awaited.plainly(what)
        self.came = came

    async def take(
        self,
        on: str,
        matches: Predicate,
        what: Awaited | str,
        came: Callable[[], str] = _nothing,
    ) -> Frame:
        """Wait for a frame that no other wait has taken."""
        self.waits_for(what, came)
        taken = self.taken
        frame = await self.peer(on).inbox.wait(
            lambda frame: frame.seq not in taken and matches(frame)
        )
        taken.add(frame.seq)
        return frame

    async def or_gone(self, wait: Callable[[], Awaitable[None]], what: Awaited | str) -> None:
        """Wait for something outside the connection, but not beyond its end."""
        self.waits_for(what)
        peer = self.peer()
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await peer.ended.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await wait()
            tasks.cancel_scope.cancel()
            return
        raise TargetGone("the server closed the connection")


Play = Callable[[StepContext, Any], Awaitable[None]]
P = TypeVar("P", bound=Play)

_PLAYS: dict[type, Play] = {}


def plays(step: type) -> Callable[[P], P]:
    """Register the function that plays a class of step; a second one raises ValueError."""

    def register(play: P) -> P:
        if step in _PLAYS:
            raise ValueError(f"{step.__name__} is played by {_PLAYS[step]!r} already")
        _PLAYS[step] = play
        return play

    return register


def registered() -> dict[type, Play]:
    """Return the players registered so far."""
    return dict(_PLAYS)
