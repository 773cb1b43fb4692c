"""Steps about connections, the server process behind them, and the model's address."""

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
async def connect(context: StepContext, step: ConnectStep) -> None:
    """Open a further connection under the step's name."""
    context.set_target(f"connection {step.connect}")
    await context.connections.connect(step.connect)


@plays(DisconnectStep)
async def disconnect(context: StepContext, step: DisconnectStep) -> None:
    """Close a connection."""
    context.set_target("the end of the connection")
    await context.connections.disconnect(step.name)


@plays(KillStep)
async def kill(context: StepContext, step: KillStep) -> None:
    """Kill the server."""
    context.set_target("the end of the killed server")
    await context.connections.kill()


@plays(RestartStep)
async def restart(context: StepContext, step: RestartStep) -> None:
    """Stop the server and start it again over the same home."""
    context.set_target("the restarted server")
    await context.connections.restart()


@plays(ModelListensStep)
async def model_listens(context: StepContext, step: ModelListensStep) -> None:
    """Make the model's address accept or refuse connections."""
    context.set_target("the model's address")
    await context.connections.set_model_listening(listening=step.model_listens)


@plays(SlowReaderStep)
async def slow_reader(context: StepContext, step: SlowReaderStep) -> None:
    """Stop or resume reading from a connection."""
    context.peer(step.slow_reader.on).set_reading(active=step.slow_reader.reading)
