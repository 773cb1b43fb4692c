"""The process that generates load: `python -m harness.load.generator PLAN.json`.

It runs Locust as a library, apart from the harness, whose blocking functions must stay its own. It
reads a `Plan` and writes `samples.json` (a `Generated`), Locust's page and the recordings into the
plan's folder.
"""

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final

from harness.load.operations import Settings

SAMPLES_FILE: Final = "samples.json"
LOCUST_PAGE: Final = "locust.html"
LAG_SECONDS: Final = 0.05
"""Pause of the greenlet that measures the generator's lateness."""


@dataclass(slots=True)
class Plan:
    """One step of a load; all times in seconds.

    `address` is a WebSocket's, "" if each user starts a server of `programs` (command, env and
    stderr each). Of the users the first `judged` are recorded.
    """

    folder: str
    users: int
    spawn_rate: float
    seconds: float
    think: tuple[float, float]
    judged: int
    settings: dict[str, Any]
    address: str = ""
    programs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    seed: int = 0


@dataclass(slots=True)
class Generated:
    """The results of a step: samples, recordings (path -> at rest), and the generator's own cost.

    `cpu` is its share of one core, `lags` are the seconds by which a pause was exceeded.
    """

    seconds: float
    samples: list[dict[str, Any]]
    recordings: dict[str, bool]
    cpu: float
    lags: list[float]


def main(plan_file: Path) -> None:
    """Run one step of a load."""
    # First of all: importing Locust replaces the blocking functions of this process by gevent's.
    from harness.load.users import Sample, Session, SessionUser  # isort: skip

    import gevent
    from locust import between
    from locust.env import Environment
    from locust.html import get_html_report  # pyright: ignore[reportUnknownVariableType]
    from locust.stats import stats_history

    from harness.client.transport.blocking import BlockingPipes, BlockingTransport

    plan = Plan(**json.loads(plan_file.read_text("utf-8")))
    folder = Path(plan.folder)
    samples: list[Sample] = []
    sessions: list[Session] = []
    lags: list[float] = []

    class PlannedUser(SessionUser):
        wait_time: Any = between(*plan.think)
        host = plan.address
        settings = Settings(**plan.settings)
        seed = plan.seed

        def on_sample(self, sample: Sample) -> None:
            samples.append(sample)

        def open_transport(self) -> BlockingTransport:
            if plan.address:
                return super().open_transport()
            program = plan.programs[self.number - 1]
            return BlockingPipes(program["command"], program["env"], Path(program["stderr"]))

        def recording_path(self) -> Path | None:
            if self.number > plan.judged:
                return None
            return folder / f"user-{self.number}-{next(self.connections)}.jsonl"

        def connect(self) -> Session:
            session = super().connect()
            if session.recording is not None:
                sessions.append(session)
            return session

    def measure_lag() -> None:
        while True:
            began = monotonic()
            gevent.sleep(LAG_SECONDS)
            lags.append(monotonic() - began - LAG_SECONDS)

    environment = Environment(user_classes=[PlannedUser], host=plan.address or "stdio")
    environment.stop_timeout = plan.settings["bound"]
    runner = environment.create_local_runner()
    helpers: list[Any] = [gevent.spawn(stats_history, runner), gevent.spawn(measure_lag)]
    began, cpu = monotonic(), process_time()
    runner.start(plan.users, spawn_rate=plan.spawn_rate)
    gevent.sleep(plan.seconds)
    seconds, used = monotonic() - began, process_time() - cpu
    lags_of_step = list(lags)
    PlannedUser.is_ending = True
    end = monotonic() + plan.think[1] + plan.settings["bound"]
    while runner.user_count and monotonic() < end:
        gevent.sleep(LAG_SECONDS)
    runner.stop()
    runner.quit()
    gevent.killall(helpers)
    (folder / LOCUST_PAGE).write_text(get_html_report(environment), "utf-8")
    generated = Generated(
        seconds=seconds,
        samples=[asdict(sample) for sample in samples],
        recordings={str(one.recording): one.at_rest for one in sessions},
        cpu=used / seconds,
        lags=lags_of_step,
    )
    (folder / SAMPLES_FILE).write_text(json.dumps(asdict(generated)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
