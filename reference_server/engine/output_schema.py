"""outputSchema: the JSON Schema of a turn's final message.

Source: session-protocol "turn/start" ("constraining the final assistant message"). What happens to
a message that does not fit is not shown: the model is asked once to correct it; if its next answer
does not fit either, the turn fails.

Each check runs in a process of its own (`schema_process`) with limits on time and memory, since
even a small schema can take for ever. Turns without a schema start no process.
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
"""Seconds of processor time that one check may take; an ordinary one takes 0.1."""
WALL_TIME = 10.0
"""Seconds that a check may take in all, also on a busy machine."""
MEMORY = 768 * 2**20
"""Bytes of address space that a check may take."""
CHECKS_AT_ONCE = 4
_PROGRAM = Path(__file__).with_name("schema_process.py")


class BadSchema(ValueError):
    """The object is not a JSON Schema, or too expensive to compile; str() says why."""


class CheckFailed(Exception):
    """The check gave no result; str() says why."""


class SchemaChecker:
    """Checks texts against schemas; one for the whole server, to limit the number of processes."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(CHECKS_AT_ONCE)

    async def compile(self, schema: Fields) -> "OutputSchema":
        """Return a schema that compiles. Raises BadSchema."""
        try:
            answer = await self.ask(schema, None)
        except CheckFailed as failure:
            raise BadSchema(f"it cannot be compiled: {failure}; make it simpler") from None
        if problem := answer.get("bad"):
            raise BadSchema(str(problem))
        return OutputSchema(schema, self)

    async def ask(self, schema: Fields, text: str | None) -> Fields:
        """Return the answer of a process (`schema_process`). Raises CheckFailed.

        Cancelling it kills the process.
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
    # Shielded: a process that is cancelled while it starts would stay a zombie.
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
        """Say why a final message does not fit, "" if it does. Raises ModelError."""
        try:
            answer = await self._checker.ask(self.schema, text)
        except CheckFailed as failure:
            raise ModelError(
                "The final message cannot be checked against outputSchema", "Other", str(failure)
            ) from None
        return str(answer.get("objection", ""))


def correction(objection: str) -> Fields:
    """Return the message that explains to the model why its answer does not fit."""
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
