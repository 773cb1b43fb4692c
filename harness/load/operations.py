"""Operations of a user: a turn, an interrupted turn, lists, forks, reconnections.

Each returns a `Sample` with its times. A user keeps one thread for some turns, archives it, and
starts another, so the number of loaded threads does not grow with the time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any, Final

from harness.errors import TargetGone, UsageError
from harness.load.session import OperationFailed, Session, is_answer, result_of
from harness.protocol.values import obj, text

TURNS_OF_A_THREAD: Final = 10
LIST_LIMIT: Final = 10
MARKER: Final = "load-"
"""The beginning of the word of a prompt by which the model's times find their turn."""
LONG: Final = "at length"
"""Words of a prompt whose answer is long enough to be interrupted."""
DEFAULT_MIX: Final = "turn=80,list=10,fork=5,interrupt=5"


@dataclass(slots=True)
class Sample:
    """One operation: its kind, when it began, its seconds, and those until the first delta.

    `first` is None without a delta, `marker` "" without a turn; `error` is "" if it succeeded, else
    the kind and the reason of the failure.
    """

    kind: str
    at: float
    seconds: float
    first: float | None = None
    marker: str = ""
    error: str = ""


@dataclass(slots=True)
class Settings:
    """Settings of all users of a run: parameters from the profile, bounds in seconds, the mix.

    `initialize` is None for a server without a handshake.
    """

    cwd: str = "."
    initialize: dict[str, Any] | None = field(default_factory=dict[str, Any])
    thread: dict[str, Any] = field(default_factory=dict[str, Any])
    barrier: str = "thread/read"
    bound: float = 20.0
    silence: float = 0.3
    mix: dict[str, float] = field(default_factory=lambda: parse_mix(DEFAULT_MIX))


Connect = Callable[[], Session]


class UserSession:
    """A user: `play` one operation after another; `end` brings the recording to rest.

    `connect` opens a session, again for each reconnection; `number` is unique in the run. `threads`
    counts those that it made, forks included.
    """

    def __init__(self, number: int, settings: Settings, connect: Connect, seed: int = 0) -> None:
        self.number = number
        self.settings = settings
        self.random = Random(f"{seed} {number}")
        self.session: Session | None = None
        self.threads = 0
        self._connect = connect
        self._thread = ""
        self._turns = 0
        self._count = 0
        self._is_playing = False

    def begin(self) -> None:
        """Connect and do the handshake. Raises `OperationFailed`."""
        try:
            self.session = self._connect()
        except (OSError, TargetGone) as error:
            raise OperationFailed("gone", f"no connection: {error}") from error
        if self.settings.initialize is not None:
            self.session.initialize(self.settings.initialize)

    def play_next(self) -> Sample:
        """Play an operation that is drawn from the mix; without a connection, connect first."""
        kinds, weights = list(self.settings.mix), list(self.settings.mix.values())
        return self.play(self.random.choices(kinds, weights)[0])

    def play(self, kind: str) -> Sample:
        """Play one operation; a failure stands in the sample, and the connection is made anew."""
        sample = Sample(kind, monotonic(), 0.0)
        self._is_playing = True
        try:
            if self.session is None:
                self.begin()
                self._thread = ""
            if not self._thread and kind != "list":
                self._start_thread()
                sample.at = monotonic()
            _OPERATIONS[kind](self, sample)
        except OperationFailed as failure:
            sample.error = str(failure)
            self.leave()
        self._is_playing = False
        sample.seconds = sample.seconds or monotonic() - sample.at
        return sample

    def end(self) -> None:
        """End the session; a recorded one first comes to rest, so that omissions can be judged."""
        session = self.session
        try:
            # An operation that was stopped in its middle leaves answers that are still to come.
            is_recorded = session is not None and session.recording is not None
            if session is not None and is_recorded and self._thread and not self._is_playing:
                session.come_to_rest(self.settings.barrier, self._thread, self.settings.silence)
        except OperationFailed:
            pass  # The recording then ends without rest, which judges nothing that is missing.
        self.leave()

    def leave(self) -> None:
        """Close the connection at once."""
        session, self.session = self.session, None
        if session is not None:
            session.close()

    @property
    def _open(self) -> Session:
        assert self.session is not None
        return self.session

    def _start_thread(self) -> None:
        params = {"cwd": self.settings.cwd, **self.settings.thread}
        answer = self._open.request("thread/start", params)
        self.threads += 1
        self._thread, self._turns = text(obj(answer.get("thread")).get("id")), 0
        if not self._thread:
            raise OperationFailed("refused", "thread/start: the answer has no thread.id")

    def turn(self, sample: Sample) -> None:
        """Run a turn to its end."""
        self._run_turn(sample, "", "completed")
        self._turns += 1
        if self._turns >= TURNS_OF_A_THREAD:
            self._open.request("thread/archive", {"threadId": self._thread})
            self._thread = ""

    def interrupt(self, sample: Sample) -> None:
        """Begin a long turn, and interrupt it at its first delta."""
        self._run_turn(sample, f" {LONG}", "interrupted")

    def _run_turn(self, sample: Sample, words: str, status: str) -> None:
        self._count += 1
        sample.marker = f"{MARKER}{self.number}-{self._count}"
        prompt = {"type": "text", "text": f"{sample.marker}{words}"}
        params = {"threadId": self._thread, "input": [prompt]}
        request = self._open.send_request("turn/start", params)
        turn_id = ended = ""
        for message in self._open.messages(sample.kind):
            params = obj(message.get("params"))
            if is_answer(message, request):
                turn_id = text(obj(result_of("turn/start", message).get("turn")).get("id"))
            elif params.get("threadId") != self._thread:
                continue
            elif message.get("method") == "item/agentMessage/delta" and sample.first is None:
                sample.first = monotonic() - sample.at
                if words:
                    interruption = {"threadId": self._thread, "turnId": params.get("turnId")}
                    self._open.send_request("turn/interrupt", interruption)
            elif message.get("method") == "turn/completed":
                ended = text(obj(params.get("turn")).get("status"))
            if turn_id and ended:
                break
        if ended != status:
            raise OperationFailed("refused", f"a turn ended {ended}, expected {status}")

    def _store_thread(self, sample: Sample) -> None:
        """Run a turn, which the sample does not count: a thread without one may not be stored."""
        if not self._turns:
            self._run_turn(sample, "", "completed")
            self._turns, sample.first, sample.marker = 1, None, ""
            sample.at = monotonic()

    def list(self, _sample: Sample) -> None:
        """Read the first page of the list of threads."""
        self._open.request("thread/list", {"limit": LIST_LIMIT})

    def read(self, _sample: Sample) -> None:
        """Read the thread."""
        self._open.request("thread/read", {"threadId": self._thread})

    def fork(self, sample: Sample) -> None:
        """Fork the thread, and archive the fork."""
        self._store_thread(sample)
        answer = self._open.request("thread/fork", {"threadId": self._thread})
        fork = text(obj(answer.get("thread")).get("id"))
        self.threads += 1
        sample.seconds = monotonic() - sample.at
        self._open.request("thread/archive", {"threadId": fork})

    def reconnect(self, sample: Sample) -> None:
        """Leave, connect again and resume the thread."""
        self._store_thread(sample)
        thread = self._thread
        self._is_playing = False
        self.end()
        sample.at = monotonic()  # `end` lets a recorded session come to rest.
        self.begin()
        self._open.request("thread/resume", {"threadId": thread})


_OPERATIONS: Final[Mapping[str, Callable[[UserSession, Sample], None]]] = {
    "turn": UserSession.turn,
    "interrupt": UserSession.interrupt,
    "list": UserSession.list,
    "read": UserSession.read,
    "fork": UserSession.fork,
    "reconnect": UserSession.reconnect,
}


def parse_mix(words: str) -> dict[str, float]:
    """Return kind -> weight from `turn=80,list=20`. Raises `UsageError` for an unknown kind."""
    mix: dict[str, float] = {}
    for word in words.split(","):
        kind, _, weight = word.strip().partition("=")
        try:
            mix[kind] = float(weight or 1)
        except ValueError:
            mix[kind] = -1.0
        if kind not in _OPERATIONS or mix[kind] < 0:
            raise UsageError(f"--mix {word!r}: expected KIND=WEIGHT of {', '.join(_OPERATIONS)}")
    if not any(mix.values()):
        raise UsageError(f"--mix {words!r}: every weight is 0")
    return mix
