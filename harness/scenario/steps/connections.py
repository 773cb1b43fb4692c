"""Connections and the process behind them: connect, disconnect, kill, restart, read slowly,
refuse the model's.

Here: the steps; who really starts and ends anything is behind `Reach`.
"""

from harness.scenario.client_steps import (
    ConnectStep,
    DisconnectStep,
    KillStep,
    ModelListensStep,
    RestartStep,
    SlowReaderStep,
)
from harness.scenario.steps.context import StepContext, plays


@plays(ConnectStep)
async def connect(scene: StepContext, step: ConnectStep) -> None:
    """A further connection."""
    scene.awaited = f"connection {step.connect}"
    await scene.reach.connect(step.connect)


@plays(DisconnectStep)
async def disconnect(scene: StepContext, step: DisconnectStep) -> None:
    """The end of a connection."""
    scene.awaited = "the end of the connection"
    await scene.reach.disconnect(step.name)


@plays(KillStep)
async def kill(scene: StepContext, step: KillStep) -> None:
    """The server is killed."""
    scene.awaited = "the end of the killed server"
    await scene.reach.kill()


@plays(RestartStep)
async def restart(scene: StepContext, step: RestartStep) -> None:
    """The server ends and starts again over the same home."""
    scene.awaited = "the restarted server"
    await scene.reach.restart()


@plays(ModelListensStep)
async def model_listens(scene: StepContext, step: ModelListensStep) -> None:
    """The model's address takes connections or refuses them."""
    scene.awaited = "the model's address"
    await scene.reach.model_listens(listening=step.model_listens)


@plays(SlowReaderStep)
async def slow_reader(scene: StepContext, step: SlowReaderStep) -> None:
    """Stop reading, or read on."""
    scene.peer(step.slow_reader.on).reading(active=step.slow_reader.reading)
