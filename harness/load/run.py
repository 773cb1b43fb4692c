"""A load in steps: the model here, Locust in a process of its own, the judge after each step."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import anyio

from harness.client.target.run_folders import RunFolder
from harness.errors import TargetError, UsageError
from harness.load.generator import LOCUST_PAGE, SAMPLES_FILE, Generated, Plan
from harness.load.judging import judge_recordings
from harness.load.model import AnswerPace, LoadModel
from harness.load.operations import Sample, Settings
from harness.load.results import LoadReport, Step, summarise
from harness.load.server import LoadedServer, run_server
from harness.play.config import Config
from harness.trace.time_limits import percentile

MIN_JUDGED: Final = 1
_GENERATOR: Final = ("-P", "-m", "harness.load.generator")
# Seconds that the generator may take beside its step: to start, and for users to end.
_GENERATOR_GRACE_SECONDS: Final = 60


@dataclass(slots=True)
class LoadOptions:
    """Options of a load: steps of users, times in seconds, `judged` as a share of the users.

    `url` is a server that the user runs, whose model is at `model_port` here.
    """

    steps: Sequence[int]
    seconds: float = 60.0
    spawn_rate: float = 50.0
    think: tuple[float, float] = (0.5, 2.0)
    judged: float = 0.05
    mix: dict[str, float] = field(default_factory=dict[str, float])
    pace: tuple[float, int, float] = (0.05, 10, 0.01)
    url: str = ""
    stdio: bool = False
    model_port: int = 0
    seed: int = 0


def run_load(config: Config, options: LoadOptions, say: Callable[[str], None]) -> LoadReport:
    """Run all steps and return the report. Raises `UsageError` if the server cannot be started."""
    return anyio.run(_run, config, options, say)


async def _run(config: Config, options: LoadOptions, say: Callable[[str], None]) -> LoadReport:
    kept = config.base / "load"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    folder = RunFolder(config.base, "load")
    report = LoadReport("")
    # Raised after the group of tasks, which would wrap it.
    failure: UsageError | None = None
    try:
        async with anyio.create_task_group() as tasks:
            model = LoadModel(tasks, AnswerPace(*options.pace), port=options.model_port)
            await model.listen(listening=True)
            if options.url:
                say(f"the scripted model listens at {model.url}")
            try:
                async with run_server(
                    config.profile,
                    folder,
                    url=options.url,
                    users=max(options.steps),
                    stdio=options.stdio,
                    model_url=model.url,
                ) as server:
                    report.server = server.words
                    for users in options.steps:
                        say(f"{users} users for {options.seconds:g} s")
                        step = await _run_step(config, options, server, model, users, folder, kept)
                        report.steps.append(step)
            except (TargetError, UsageError) as error:
                failure = UsageError(str(error))
            finally:
                await model.close()
        if failure is not None:
            raise failure
        return report
    finally:
        folder.close()


async def _run_step(
    config: Config,
    options: LoadOptions,
    server: LoadedServer,
    model: LoadModel,
    users: int,
    folder: RunFolder,
    kept: Path,
) -> Step:
    place = kept / str(users)
    place.mkdir()
    plan = Plan(
        folder=str(place),
        users=users,
        spawn_rate=options.spawn_rate,
        seconds=options.seconds + users / options.spawn_rate,
        think=options.think,
        judged=min(users, max(MIN_JUDGED, math.ceil(users * options.judged)))
        if options.judged
        else 0,
        settings=asdict(user_settings(config, options.mix, folder.new_folder("work"))),
        address=server.address,
        programs=server.programs[:users],
        seed=options.seed,
    )
    model.times.clear()
    generated = await _generate(plan, place)
    samples = [Sample(**sample) for sample in generated.samples]
    rows, errors = summarise(samples, model.times)
    recordings = [(Path(path), at_rest) for path, at_rest in generated.recordings.items()]
    judged, broken = await anyio.to_thread.run_sync(judge_recordings, config, recordings)
    return Step(
        users=users,
        seconds=generated.seconds,
        rows=rows,
        errors=errors,
        judged=judged,
        broken=broken,
        cpu=generated.cpu,
        lag=percentile(sorted(generated.lags), 95) if generated.lags else 0.0,
        locust_page=(place / LOCUST_PAGE).resolve().as_uri(),
    )


def user_settings(config: Config, mix: dict[str, float], cwd: Path) -> Settings:
    """Return the settings of users from the profile."""
    profile = config.profile
    settings = Settings(
        cwd=str(cwd),
        initialize=dict(profile.initialize) if profile.handshake == "initialize" else None,
        thread=dict(profile.thread),
        barrier=profile.barrier,
        bound=profile.bounds.scale(config.scale).scenario,
        silence=profile.bounds.scale(config.scale).settle,
    )
    settings.mix = mix or settings.mix
    return settings


async def _generate(plan: Plan, place: Path) -> Generated:
    """Run the generator and return its results. Raises `UsageError` with what it printed."""
    plan_file = place / "plan.json"
    plan_file.write_text(json.dumps(asdict(plan)), "utf-8")
    words = [sys.executable, *_GENERATOR, str(plan_file)]
    bound = plan.seconds + plan.settings["bound"] + _GENERATOR_GRACE_SECONDS
    output = place / "generator.txt"
    with output.open("wb") as sink:
        process = await anyio.open_process(words, stdout=sink, stderr=subprocess.STDOUT)
    try:
        with anyio.move_on_after(bound):
            await process.wait()
    finally:
        # Before the process is closed, which would wait for its end after an interruption.
        if process.returncode is None:
            process.kill()
        await process.aclose()
    if process.returncode == 0:
        return Generated(**json.loads((place / SAMPLES_FILE).read_text("utf-8")))
    tail = output.read_text("utf-8", "replace")[-2000:]
    raise UsageError(
        f"the generator ended with exit status {process.returncode}, or took more than "
        f"{bound:.0f} s: {tail}"
    )
