"""outputSchema: the JSON Schema of a turn's final message.

Here lives whether a text fits it, and the words where it does not. Source: session-protocol
"turn/start" ("constraining the final assistant message"). What becomes of a message that does not
fit is not shown: the model is told once what is wrong, and if it fails again, so does the turn.

The judging itself is done in a process of its own (`schema_judge`), one for each question, that is
bounded in time and memory: a small schema can take for ever. Turns without a schema start none.
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
"""Seconds of a processor that one judgement may take; an honest one takes a tenth of one."""
WALL_TIME = 10.0
"""Seconds that are waited for it, on however busy a machine."""
MEMORY = 768 * 2**20
"""Bytes of address space that it may take."""
JUDGES_AT_ONCE = 4
_PROGRAM = Path(__file__).with_name("schema_judge.py")


class BadSchema(ValueError):
    """An object that is no JSON Schema, or none that can be used; str() says why."""


class NoVerdict(Exception):
    """It could not be judged; str() says why."""


class Judge:
    """Judges by schemas; one for the whole server, so that few processes run at a time."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(JUDGES_AT_ONCE)

    async def compiled(self, schema: Fields) -> "OutputSchema":
        """Check a schema. Raises BadSchema."""
        try:
            answer = await self.ask(schema, None)
        except NoVerdict as failure:
            raise BadSchema(f"it cannot be compiled: {failure}; make it simpler") from None
        if why := answer.get("bad"):
            raise BadSchema(str(why))
        return OutputSchema(schema, self)

    async def ask(self, schema: Fields, text: str | None) -> Fields:
        """Give what the process says. Raises NoVerdict; cancelling it kills the process."""
        limits = {"seconds": CPU_TIME, "bytes": MEMORY}
        question = json.dumps({"schema": schema, "text": text, **limits}).encode()
        async with self._places:
            with anyio.move_on_after(WALL_TIME):
                try:
                    return await _asked(question)
                except OSError as error:
                    raise NoVerdict(f"no process can be started: {error.strerror}") from error
        raise NoVerdict(f"it takes more than {WALL_TIME:g} s")


async def _asked(question: bytes) -> Fields:
    process: Process | None = None
    # One that is cancelled while it starts would be killed and never collected.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            [sys.executable, "-P", str(_PROGRAM)],
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    assert process is not None
    # Leaving the block kills it where it still runs, and waits for its end.
    async with process:
        assert process.stdin is not None
        assert process.stdout is not None
        # It may be gone before it has read all.
        with contextlib.suppress(anyio.BrokenResourceError, ConnectionError):
            await process.stdin.send(question)
            await process.stdin.aclose()
        said = b"".join([piece async for piece in process.stdout])
        if await process.wait() != 0:
            bounds = f"{CPU_TIME} s of a processor or {MEMORY // 2**20} MiB"
            raise NoVerdict(f"it takes more than {bounds}")
    return cast("Fields", json.loads(said))


class OutputSchema:
    """A schema to judge by. References to other documents are not followed."""

    def __init__(self, schema: Fields, judge: Judge) -> None:
        self.schema = schema
        self._judge = judge

    async def objection(self, text: str) -> str:
        """Say what is wrong with a final message, "" if nothing is. Raises ModelError."""
        try:
            answer = await self._judge.ask(self.schema, text)
        except NoVerdict as failure:
            raise ModelError(
                "The final message cannot be judged by outputSchema", "Other", str(failure)
            ) from None
        return str(answer.get("objection", ""))


def correction(objection: str) -> Fields:
    """Tell the model what is wrong with its answer."""
    text = (
        f"Your answer does not fit the JSON Schema that was asked for: {objection}. Answer again."
    )
    return {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": text}],
    }


def schema_unmet(objection: str) -> ModelError:
    """Give the failure of a turn whose final message does not fit."""
    return ModelError("The final message does not fit outputSchema", "Other", objection)
