"""Which steps of a scenario leave a process that cannot be given to the next one.

Here: that question alone. Not here: what else makes a scenario want a process of its own (model).
"""

from harness.scenario.client_steps import (
    MAIN,
    ClientStep,
    ConnectStep,
    DisconnectStep,
    KillStep,
    ModelListensStep,
    RemoveFileStep,
    RestartStep,
    SendRawStep,
    SlowReaderStep,
    WriteFileStep,
)

_SPOILING = (
    RestartStep,
    KillStep,
    ModelListensStep,
    WriteFileStep,
    RemoveFileStep,
)


def spoils(step: ClientStep) -> bool:
    """Whether a process cannot be given to the next scenario after a step.

    Further connections come and go; the next scenario has the first one, which has to be good.
    """
    match step:
        case DisconnectStep() | ConnectStep():
            named = step.name if isinstance(step, DisconnectStep) else step.connect
            return named == MAIN
        case SlowReaderStep(slow_reader=body) | SendRawStep(send_raw=body):
            return body.on == MAIN
        case _:
            return isinstance(step, _SPOILING)
