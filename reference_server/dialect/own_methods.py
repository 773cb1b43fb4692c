"""The methods of a release that the server carries out itself: a client's own commands."""

from typing import Final

from harness.protocol.wire.rpc import Empty, ErrorCode
from reference_server.call import Call
from reference_server.client_commands.params import (
    ExecParams,
    ResizeParams,
    TerminateParams,
    WriteParams,
)
from reference_server.extra_methods import ExtraMethod


async def _execute(call: Call, params: ExecParams) -> None:
    call.answer(await call.services.client_commands.execute(call.connection, params))


async def _write(call: Call, params: WriteParams) -> None:
    written = call.services.client_commands.prepare_write(call.connection, params)
    # A process that does not read keeps nobody waiting for the answer.
    call.answer(Empty())
    await written.write()


async def _resize(call: Call, params: ResizeParams) -> None:
    call.services.client_commands.resize(call.connection, params)
    call.answer(Empty())


async def _terminate(call: Call, params: TerminateParams) -> None:
    call.services.client_commands.terminate(call.connection, params)
    call.answer(Empty())


MALFORMED: Final = ErrorCode.INVALID_REQUEST
"""The release refuses params that it cannot read with this code, and wrong values with another."""
METHODS = {
    "command/exec": ExtraMethod(ExecParams, _execute, MALFORMED),
    "command/exec/write": ExtraMethod(WriteParams, _write, MALFORMED),
    "command/exec/resize": ExtraMethod(ResizeParams, _resize, MALFORMED),
    "command/exec/terminate": ExtraMethod(TerminateParams, _terminate, MALFORMED),
}
