"""outputSchema: the JSON Schema of a turn's final message.

Source: session-protocol "turn/start" ("constraining the final assistant message"). The handling of
a message that does not fit is not shown: here the model is asked once to correct it; if its next
answer does not fit either, the turn fails.

Each check runs in a separate process (`schema_process`) with limits on time and memory, since even
a small schema can take for ever. Turns without a schema start no process.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import Process

from reference_server.model.errors import ModelError

Fields = dict[str, Any]
CPU_TIME = 3
"""Maximum CPU seconds of one check; an ordinary one takes 0.1."""
WALL_TIME = 10.0
"""Maximum seconds of wall time of one check, for a busy machine."""
MEMORY = 768 * 2**20
"""Maximum bytes of address space of one check."""
CHECKS_AT_ONCE = 4
_PROGRAM = Path(__file__).with_name("schema_process.py")


class BadSchema(ValueError):
    """The object is not a JSON Schema, or too expensive to compile; str() says why."""


class CheckFailed(Exception):
    """The check gave no result; str() says why."""


class SchemaChecker:
    """Checker of texts against schemas; a server has one, to limit the number of processes."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(CHECKS_AT_ONCE)
        # The last schema that could be compiled: clients send the same one with many turns.
        self._compiled = ""

    async def compile(self, schema: Fields) -> "OutputSchema":
        """Return the schema after compiling it. Raises BadSchema if that fails."""
        # As text: in Python true equals 1, of which only one may be valid.
        words = json.dumps(schema)
        if words == self._compiled:
            return OutputSchema(schema, self)
        try:
            answer = await self.ask(schema, None)
        except CheckFailed as failure:
            raise BadSchema(f"it cannot be compiled: {failure}; make it simpler") from None
        if problem := answer.get("bad"):
            raise BadSchema(str(problem))
        self._compiled = words
        return OutputSchema(schema, self)

    async def ask(self, schema: Fields, text: str | None) -> Fields:
        """Return the output of a check in a process (`schema_process`).

        Raises CheckFailed if it fails or takes too long. Cancelling the call kills the process.
        """
        limits = {"seconds": CPU_TIME, "bytes": MEMORY}
        request = json.dumps({"schema": schema, "text": text, **limits}).encode()
        async with self._places:
            with anyio.move_on_after(WALL_TIME):
                try:
                    return await _run_check(request)
                except OSError as error:
                    raise CheckFailed(f"no process can be started: {error.strerror}") from error
        raise CheckFailed(f"it takes more than {WALL_TIME:g} s")


async def _run_check(request: bytes) -> Fields:
    process: Process | None = None
    # Shielded: a process whose start is cancelled would stay a zombie.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            [sys.executable, "-P", str(_PROGRAM)],
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    assert process is not None
    # Leaving the block kills the process if it still runs, and waits for its end.
    async with process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The process may end before it has read everything.
        with contextlib.suppress(anyio.BrokenResourceError, ConnectionError):
            await process.stdin.send(request)
            await process.stdin.aclose()
        output = b"".join([piece async for piece in process.stdout])
        if await process.wait() != 0:
            bounds = f"{CPU_TIME} s of a processor or {MEMORY // 2**20} MiB"
            raise CheckFailed(f"it takes more than {bounds}")
    return cast("Fields", json.loads(output))


class OutputSchema:
    """A schema that texts are checked against. References to other documents are not followed."""

    def __init__(self, schema: Fields, checker: SchemaChecker) -> None:
        self.schema = schema
        self._checker = checker

    async def objection(self, text: str) -> str:
        """Return why a message does not fit, "" if it does. Raises ModelError if unchecked."""
        try:
            answer = await self._checker.ask(self.schema, text)
        except CheckFailed as failure:
            raise ModelError(
                "The final message cannot be checked against outputSchema", "Other", str(failure)
            ) from None
        return str(answer.get("objection", ""))


def correction(objection: str) -> Fields:
    """Return the message that asks the model to correct its answer, with the objection."""
    text = (
        f"Your answer does not fit the JSON Schema that was asked for: {objection}. Answer again."
    )
    return {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": text}],
    }


def schema_mismatch(objection: str) -> ModelError:
    """Return the failure of a turn whose final message does not fit."""
    return ModelError("The final message does not fit outputSchema", "Other", objection)
