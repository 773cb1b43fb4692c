"""A soak: a few users play a seeded mix for long, while the server's growth is measured.

The users are threads over blocking transports. The judge reads a sample of their conversations at
the end, since judging beside them would count as the server's time.
"""

import itertools
import shutil
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Final

import anyio
import anyio.to_thread

from harness.client.target.run_folders import RunFolder
from harness.client.transport.blocking import BlockingPipes, BlockingTransport, BlockingWebSocket
from harness.errors import TargetError, UsageError
from harness.load.growth import Reading, SoakReport, read_server, shortest_times, trends_of
from harness.load.judging import judge_recordings
from harness.load.model import AnswerPace, LoadModel
from harness.load.operations import Sample, Settings, UserSession
from harness.load.run import user_settings
from harness.load.server import LoadedServer, run_server
from harness.load.session import Session
from harness.play.config import Config

READINGS: Final = 150
MIN_READING_SECONDS: Final = 0.05
MAX_READING_SECONDS: Final = 10.0
JUDGED_CONNECTIONS: Final = 10
"""One connection in ten is recorded, beginning with the first."""
_CONNECT_SECONDS: Final = 30.0
_FAILURE_PAUSE_SECONDS: Final = 0.2


@dataclass(slots=True)
class SoakOptions:
    """Options of a soak: its seconds, users at once, weights of operations, and the seed."""

    seconds: float
    users: int
    mix: dict[str, float]
    seed: int = 0
    stdio: bool = False


class _Soak:
    """The users of a soak, and its readings."""

    def __init__(self, server: LoadedServer, settings: Settings, kept: Path, seed: int) -> None:
        self.readings: list[Reading] = []
        self.recordings: list[Session] = []
        self.errors = Counter[str]()
        self.turns = 0
        self.stopped = Event()
        self._server = server
        self._settings = settings
        self._kept = kept
        self._seed = seed
        self._samples = deque[Sample]()
        self._users: list[UserSession] = []
        self._connections = itertools.count()
        self._pipes: BlockingPipes | None = None

    def play(self, number: int, seconds: float) -> None:
        """Play as one user until the end of the soak."""
        user = UserSession(number, self._settings, self._connect, self._seed)
        self._users.append(user)
        end = monotonic() + seconds
        while monotonic() < end and not self.stopped.is_set():
            sample = user.play_next()
            self._samples.append(sample)
            if sample.error:
                self.errors[f"{sample.kind}: {sample.error}"] += 1
                self.stopped.wait(_FAILURE_PAUSE_SECONDS)
        user.end()

    def read(self) -> None:
        """Take a reading of the server, with the operations since the last one."""
        samples = [self._samples.popleft() for _ in range(len(self._samples))]
        self.turns += sum(one.kind == "turn" and not one.error for one in samples)
        process, pipes = self._server.process, self._pipes
        if process is not None:
            pid, home = process.pid, process.home
        elif pipes is not None:
            pid, home = pipes.pid, Path(self._server.programs[0]["home"])
        else:
            return
        values, disk = read_server(pid, home)
        threads = sum(user.threads for user in self._users)
        self.readings.append(Reading(self.turns, threads, disk, values | shortest_times(samples)))

    def _connect(self) -> Session:
        transport: BlockingTransport
        if self._server.address:
            transport = BlockingWebSocket(self._server.address, _CONNECT_SECONDS)
        else:
            program = self._server.programs[0]
            self._pipes = BlockingPipes(program["command"], program["env"], Path(program["stderr"]))
            transport = self._pipes
        number = next(self._connections)
        is_judged = number % JUDGED_CONNECTIONS == 0
        path = self._kept / f"connection-{number}.jsonl" if is_judged else None
        session = Session(transport, self._settings.bound, path)
        if is_judged:
            self.recordings.append(session)
        return session


def run_soak(config: Config, options: SoakOptions, say: Callable[[str], None]) -> SoakReport:
    """Run a soak and return its report. Raises `UsageError` if the server cannot be started."""
    return anyio.run(_run, config, options, say)


async def _run(config: Config, options: SoakOptions, say: Callable[[str], None]) -> SoakReport:
    kept = config.base / "soak"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    folder = RunFolder(config.base, "soak")
    # Raised after the group of tasks, which would wrap it.
    failure: UsageError | None = None
    report = SoakReport("", options.seconds, config.profile.hygiene == "MUST")
    try:
        async with anyio.create_task_group() as tasks:
            model = LoadModel(tasks, AnswerPace(0.0, 3, 0.0))
            await model.listen(listening=True)
            try:
                async with run_server(
                    config.profile,
                    folder,
                    url="",
                    users=1,
                    stdio=options.stdio,
                    model_url=model.url,
                ) as server:
                    report.server = server.words
                    settings = user_settings(config, dict(options.mix), folder.new_folder("work"))
                    if not server.address:
                        settings.mix.pop("reconnect", None)  # It would start another process.
                        say("over standard streams: one user, who stays connected")
                    soak = _Soak(server, settings, kept, options.seed)
                    await _play_all(
                        soak, options, model, users=options.users if server.address else 1
                    )
            except (TargetError, UsageError) as error:
                failure = UsageError(str(error))
            else:
                report.turns, report.errors = soak.turns, dict(soak.errors)
                report.trends = trends_of(soak.readings)
                recordings = [(one.recording, one.at_rest) for one in soak.recordings]
                report.judged, report.broken = await anyio.to_thread.run_sync(
                    judge_recordings, config, [(path, rest) for path, rest in recordings if path]
                )
            finally:
                await model.close()
        if failure is not None:
            raise failure
        return report
    finally:
        folder.close()


async def _play_all(soak: _Soak, options: SoakOptions, model: LoadModel, *, users: int) -> None:
    """Play all users to the end, and take readings beside them."""
    pause = min(MAX_READING_SECONDS, max(MIN_READING_SECONDS, options.seconds / READINGS))

    async def play(number: int) -> None:
        await anyio.to_thread.run_sync(
            soak.play, number, options.seconds, abandon_on_cancel=True, limiter=limiter
        )

    async def read() -> None:
        while not ended.is_set():
            with anyio.move_on_after(pause):
                await ended.wait()
            model.times.clear()  # Nobody asks for them, and a soak is long.
            await anyio.to_thread.run_sync(soak.read)

    limiter, ended = anyio.CapacityLimiter(users), anyio.Event()
    try:
        async with anyio.create_task_group() as readers:
            readers.start_soon(read)
            async with anyio.create_task_group() as players:
                for number in range(1, users + 1):
                    players.start_soon(play, number)
            ended.set()
    finally:
        soak.stopped.set()
