"""Users of Locust that hold sessions: for `harness load`, and for a locustfile of one's own.

    from harness.load.users import SessionUser

    class Mine(SessionUser):
        mix = {"turn": 9, "list": 1}

    # locust -f mine.py --host ws://127.0.0.1:9000

Importing it imports Locust, which replaces the blocking functions of the whole process by gevent's.
"""

import itertools
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from locust import User, between, task
from locust.exception import StopUser

from harness.client.transport.blocking import BlockingTransport, BlockingWebSocket
from harness.load.operations import Sample, Settings, UserSession
from harness.load.session import OperationFailed, Session

# The name under which Locust lists the seconds until the first delta.
FIRST_DELTA = "first delta"
MAX_BEGIN_SECONDS = 30.0


class SessionUser(User):
    """A user with one connection, who plays operations of a mix with think time between them.

    `host` is a WebSocket address. Subclasses set the `mix` (kind -> weight) and `settings`.
    """

    abstract = True
    wait_time: Any = between(0.5, 2.0)
    mix: ClassVar[Mapping[str, float]] = {}
    settings: ClassVar[Settings] = Settings()
    seed: ClassVar[int] = 0
    is_ending: ClassVar[bool] = False
    """Set to make users end after their operation: Locust can stop one in the middle."""
    _numbers = itertools.count(1)

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        if self.mix:
            self.settings.mix = dict(self.mix)
        self.number = next(SessionUser._numbers)
        self.connections = itertools.count(1)
        self.user = UserSession(self.number, self.settings, self.connect, self.seed)

    def open_transport(self) -> BlockingTransport:
        """Open a connection to the server."""
        return BlockingWebSocket(str(self.host), MAX_BEGIN_SECONDS)

    def recording_path(self) -> Path | None:
        """Return the file to record the next connection in, None not to record it."""
        return None

    def connect(self) -> Session:
        """Open a session, for `UserSession`."""
        return Session(self.open_transport(), self.settings.bound, self.recording_path())

    def on_sample(self, sample: Sample) -> None:
        """Handle an operation that ended, before Locust gets it."""

    def on_start(self) -> None:
        """Connect; a user that cannot is a failure, and tries again in its next operation."""
        sample = Sample("connect", monotonic(), 0.0)
        try:
            self.user.begin()
        except OperationFailed as failure:
            sample.error = str(failure)
            self.user.leave()
        sample.seconds = monotonic() - sample.at
        self._report(sample)

    def on_stop(self) -> None:
        """End the session."""
        self.user.end()

    @task
    def operate(self) -> None:
        """Play the next operation and report it to Locust."""
        if self.is_ending:
            raise StopUser
        self._report(self.user.play_next())

    def _report(self, sample: Sample) -> None:
        environment: Any = self.environment  # pyright: ignore[reportUnknownMemberType]
        self.on_sample(sample)
        failed = RuntimeError(sample.error) if sample.error else None
        times = {sample.kind: sample.seconds, f"{sample.kind}: {FIRST_DELTA}": sample.first}
        for name, seconds in times.items():
            if seconds is not None:
                environment.events.request.fire(
                    request_type="session",
                    name=name,
                    response_time=seconds * 1000,
                    response_length=0,
                    exception=failed if name == sample.kind else None,
                    context={},
                )
