"""Running one turn of `agent exec` in this process, with a scripted model."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from runs import scenario

from harness.model.scenario_model import scripted_model_of
from harness.scenario.loader import load_scenario
from reference_server.agent_exec.ending import Interruption
from reference_server.agent_exec.run import Job, run_job
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.model.answer import ModelConnection
from reference_server.model.scripted import ScriptedConnection

Fields = dict[str, Any]
CONFIG = Config(
    approval_policy="never",
    sandbox_mode="danger-full-access",
    environment={"PROVIDER_BASE_URL": "http://scenario.invalid/v1", "PATH": "/usr/bin:/bin"},
)


@dataclass
class Kept:
    """A sink that stores the events and calls `seen` with each."""

    events: list[Fields] = field(default_factory=list)
    finished: bool = False
    seen: Callable[[Fields], None] = lambda _event: None

    async def tell(self, events: list[Fields]) -> None:
        for event in events:
            self.events.append(event)
            self.seen(event)

    async def finish(self) -> None:
        self.finished = True

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of_type(self, kind: str) -> list[tuple[str, Fields]]:
        """Return the item events of a type, as pairs of "started" or "completed" and the item."""
        return [
            (event["type"].removeprefix("item."), event["item"])
            for event in self.events
            if event.get("item", {}).get("type") == kind
        ]


@dataclass
class Played(Kept):
    status: int = -1
    calls: list[Fields] = field(default_factory=list)


def model(folder: Path, *replies: str) -> Callable[[], ScriptedConnection]:
    """Return a factory of the scripted model; each reply is a YAML list in brackets."""
    loaded = load_scenario(Path(scenario(folder, *replies)))
    return lambda: ScriptedConnection(scripted_model_of(loaded))


async def play(
    folder: Path,
    *replies: str,
    transport: Callable[[], ModelConnection | httpx.AsyncBaseTransport] | None = None,
    interruption: Interruption | None = None,
    seen: Callable[[Fields], None] = lambda _event: None,
    **settings: Any,
) -> Played:
    """Run a turn and return its result; `settings` are fields of the job or its configuration."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    of_job = {name: settings.pop(name) for name in list(settings) if name in Job.__slots__}
    given: dict[str, Any] = {"config": CONFIG, "prompt": "go", "cwd": str(work), **of_job}
    job = Job(**given)
    job = replace(job, config=replace(job.config, **settings))
    sink = Played(seen=seen)
    home = Home(folder / "home")
    sink.status = await run_job(
        home, job, sink, interruption or Interruption(), transport or model(folder, *replies)
    )
    return sink
