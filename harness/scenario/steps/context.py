"""The context of a step, and the registry of the functions that play steps."""

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
from harness.scenario.client_steps import MAIN_CONNECTION, Answers, result_has
from harness.scenario.references import UnknownValue, resolve_references
from harness.scenario.steps.wait_targets import ANSWER, NO_TARGET, WaitTarget
from harness.trace.frame import Frame, Kind
from harness.trace.time_limits import Times


@dataclass(slots=True)
class Cast:
    """Ids that stand for the scenario's aliases in this run; `thread_of` maps a turn's alias.

    `times` are those of the steps with a limit (`within`).
    """

    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[str, str] = field(default_factory=dict[str, str])
    thread_of: dict[str, str] = field(default_factory=dict[str, str])
    times: list[Times] = field(default_factory=list[Times])

    def add_answer(self, alias: str, request: Frame, answer: Frame) -> None:
        """Record the thread or turn id in a request's answer under the alias, if there is one."""
        result = answer.result
        thread_id, turn_id = (text(dig(result, name, "id")) for name in ("thread", "turn"))
        if thread_id and result_has(request.method, "thread"):
            self.threads[alias] = thread_id
        if turn_id and result_has(request.method, "turn"):
            self.turns[alias] = turn_id
            requested_thread = text(dig(request.params, "threadId"))
            # A review may run on a thread of its own.
            self.thread_of[alias] = text(dig(result, "reviewThreadId")) or requested_thread


class FailureKind(StrEnum):
    """Reasons why a step failed.

    TIMEOUT: the target of its wait did not come within its bound. REFUSED: the server's answer is
    not the expected one. CRASH: the server closed the connection. OTHER_END: a turn ended with
    another status than expected. NOT_OFFERED: the target lacks a capability. NOT_SAYABLE: the API
    by which the server calls the model cannot say a part of the script. NOT_REACHED: a race's turn
    ended before it came to the position.
    """

    TIMEOUT = "timeout"
    REFUSED = "refused"
    CRASH = "crash"
    OTHER_END = "other-end"
    NOT_OFFERED = "not-offered"
    NOT_SAYABLE = "not-sayable"
    NOT_REACHED = "not-reached"


class StepFailed(HarnessError):
    """A step that failed; `capability` is the one that the target lacks, "" for none."""

    def __init__(self, kind: FailureKind, message: str, *, capability: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.capability = capability


class Connections(Protocol):
    """The connections of a scenario, by their names in the file, and the process behind them."""

    def peer(self, name: str) -> Peer:
        """Return the connection of that name."""
        ...

    async def connect(self, name: str) -> None:
        """Open a further connection. Raises `StepFailed` if the target allows only one."""
        ...

    async def disconnect(self, name: str, *, reset: bool = False) -> None:
        """End a connection; `reset` breaks it off without a word."""
        ...

    async def kill(self) -> None:
        """Kill the server."""
        ...

    async def restart(self) -> None:
        """End the server if it runs, and start it again over the same home."""
        ...

    async def set_model_listening(self, *, listening: bool) -> None:
        """Make the model's address accept or refuse. Raises `StepFailed` if it is not ours."""
        ...


class OneConnection:
    """A connection to something that cannot be killed, restarted or reached twice."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def peer(self, name: str) -> Peer:
        """Return the only connection."""
        return self._peer

    async def connect(self, name: str) -> None:
        """Raise `StepFailed`: this is never possible."""
        message = f"there is no second connection for {name!r}: the target offers one only"
        raise StepFailed(FailureKind.NOT_OFFERED, message, capability="several-clients")

    async def disconnect(self, name: str, *, reset: bool = False) -> None:
        """End the connection."""
        await self._peer.transport.aclose()

    async def kill(self) -> None:
        """Raise `StepFailed`: this is never possible."""
        raise StepFailed(FailureKind.REFUSED, "there is no process behind this connection")

    async def restart(self) -> None:
        """Raise `StepFailed`: this is never possible."""
        raise StepFailed(FailureKind.REFUSED, "there is no process behind this connection")

    async def set_model_listening(self, *, listening: bool) -> None:
        """Raise `StepFailed`: this is never possible."""
        raise StepFailed(FailureKind.REFUSED, "the model's address is not ours")


def _no_text() -> str:
    return ""


def _ignore(_words: str) -> None:
    pass


@dataclass(slots=True)
class StepContext:
    """State of one run of the client's side.

    `values` holds the result of each alias, `unanswered_requests` the requests that a later step
    waits for, `taken_frames` the seq of frames that satisfied a wait, `target` the current wait's
    target, `tasks` the tasks beside the steps; `describe_nearest` describes the nearest message.
    `awaited` is the message for which the current step waited, None before it came. `on_target` is
    called with the words of each target.
    """

    connections: Connections
    model: ScriptedModel
    cast: Cast
    cwd: Path
    bounds: Bounds
    thread_params: dict[str, Any]
    markers: dict[str, str]
    turn_params: dict[str, Any] = field(default_factory=dict[str, Any])
    placeholders: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    unanswered_requests: dict[str, tuple[Peer, Frame, Answers]] = field(
        default_factory=dict[str, tuple[Peer, Frame, Answers]]
    )
    taken_frames: set[int] = field(default_factory=set[int])
    target: WaitTarget = NO_TARGET
    describe_nearest: Callable[[], str] = _no_text
    tasks: TaskGroup | None = None
    awaited: Frame | None = None
    on_target: Callable[[str], None] = _ignore

    def run_beside_steps(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside the steps, until the last of them or the end of the server."""

        async def run() -> None:
            with contextlib.suppress(TargetGone):
                await task()

        if self.tasks is None:
            raise RuntimeError("no step is being played")
        self.tasks.start_soon(run)

    def peer(self, name: str = MAIN_CONNECTION) -> Peer:
        """Return the connection of that name."""
        return self.connections.peer(name)

    def thread(self, alias: str) -> str:
        """Return the id of the thread of that alias. Raises `StepFailed` if its answer had none."""
        return self._id(self.cast.threads, alias, "thread")

    def turn(self, alias: str) -> str:
        """Return the id of the turn of that alias. Raises `StepFailed` if its answer had none."""
        return self._id(self.cast.turns, alias, "turn")

    @staticmethod
    def _id(ids: dict[str, str], alias: str, kind: str) -> str:
        if alias not in ids:
            message = f"the answer that names {kind} {alias} has no {kind}.id"
            raise StepFailed(FailureKind.REFUSED, message)
        return ids[alias]

    def resolve(self, value: Any) -> Any:
        """Return the value, filled in. Raises `StepFailed` for a reference without a value."""
        try:
            return resolve_references(fill(value, self.placeholders), self.values)
        except UnknownValue as error:
            raise StepFailed(FailureKind.REFUSED, str(error)) from error

    async def request(
        self, on: str, method: str, params: Any, *, alias: str | None = None
    ) -> Frame:
        """Send a request and return its result. Raises `StepFailed` if the answer is an error."""
        peer = self.peer(on)
        request = await peer.send_request(method, params)
        return await self.wait_for_answer(peer, request, "result", alias)

    async def wait_for_answer(
        self, peer: Peer, request: Frame, expect: Answers, alias: str | None
    ) -> Frame:
        """Wait for a request's answer, and record its value and ids under the alias.

        Raises `StepFailed` if `expect` is the other kind of answer.
        """
        self.set_target(ANSWER)
        answer = await peer.wait_for_answer(request)
        method = request.method or "the request"
        if answer.kind is Kind.ERROR and expect == "result":
            message = text(obj(answer.failure).get("message")) or "no message"
            raise StepFailed(FailureKind.REFUSED, f"{method} was answered by an error: {message}")
        if answer.kind is not Kind.ERROR and expect == "error":
            raise StepFailed(
                FailureKind.REFUSED, f"{method} was answered by a result; expected an error"
            )
        if alias is not None:
            self.values[alias] = answer.failure if answer.kind is Kind.ERROR else answer.result
            self.cast.add_answer(alias, request, answer)
        return answer

    def set_target(
        self, target: WaitTarget | str, describe_nearest: Callable[[], str] = _no_text
    ) -> None:
        """Set the target of the current wait, and the function that describes the nearest message.

        A `str` is both words and kind: it is the same in every scenario with such a wait.
        """
        self.target = target if isinstance(target, WaitTarget) else WaitTarget.of_words(target)
        self.describe_nearest = describe_nearest
        self.on_target(self.target.words)

    async def take_frame(
        self,
        on: str,
        matches: Predicate,
        target: WaitTarget | str,
        describe_nearest: Callable[[], str] = _no_text,
    ) -> Frame:
        """Wait for a matching frame that satisfied no earlier wait, take it and return it."""
        self.set_target(target, describe_nearest)
        taken_frames = self.taken_frames
        frame = await self.peer(on).inbox.wait(
            lambda frame: frame.seq not in taken_frames and matches(frame)
        )
        taken_frames.add(frame.seq)
        return frame

    async def wait_unless_gone(
        self, wait: Callable[[], Awaitable[None]], target: WaitTarget | str
    ) -> None:
        """Wait for an event outside the connection. Raises `TargetGone` if that ends first."""
        self.set_target(target)
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
    """Register the function that plays a class of step. Raises `ValueError` for a second one."""

    def register(play: P) -> P:
        if step in _PLAYS:
            raise ValueError(f"{step.__name__} is played by {_PLAYS[step]!r} already")
        _PLAYS[step] = play
        return play

    return register


def registered_players() -> dict[type, Play]:
    """Return the functions registered so far, keyed by class of step."""
    return dict(_PLAYS)
