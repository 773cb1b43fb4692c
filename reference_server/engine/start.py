"""Beginning turns.

Here lives the way from `turn/start` to a running turn: the one active turn of a thread, the
settings that the params change, the task. Source: session-protocol "turn/start".
"""

import json
from typing import Any

from anyio.abc import TaskGroup

from harness.wire.input import UserInput
from harness.wire.turn import TurnStartParams
from reference_server.config.model import Config, Provider
from reference_server.engine.output_schema import BadSchema, Judge, OutputSchema
from reference_server.engine.steering import read_input
from reference_server.engine.turn import ActiveTurn, TurnInput, TurnSupport
from reference_server.engine.turn_context import Work
from reference_server.ids import IdAllocator
from reference_server.refusal import invalid_params, invalid_request
from reference_server.rollout.sync import Syncer
from reference_server.session.thread import LoadedThread
from reference_server.settings import ThreadSettings, settings_of_turn

Fields = dict[str, Any]
SCHEMA_LIMIT = 256 * 1024
"""Characters of an outputSchema: it is kept for its turn, and sent with each call of the model."""


class Engine:
    """Starts turns and sees them to their end."""

    def __init__(
        self,
        tasks: TaskGroup,
        config: Config,
        ids: IdAllocator,
        support: TurnSupport,
        syncer: Syncer,
    ) -> None:
        self._tasks = tasks
        self._config = config
        self._ids = ids
        self._support = support
        self._syncer = syncer
        self._judge = Judge()

    async def schema(self, thread: LoadedThread, params: TurnStartParams) -> OutputSchema | None:
        """Check the outputSchema of a turn that could begin now, if it has one. Raises Refusal.

        That takes time, so whether the turn can begin has to be asked again.
        """
        if params.output_schema is None:
            return None
        _check_input(params)
        check_idle(thread)
        try:
            size = len(json.dumps(params.output_schema, allow_nan=False))
        except (ValueError, RecursionError) as error:
            raise invalid_params(f"outputSchema: cannot be written as JSON: {error}") from None
        if size > SCHEMA_LIMIT:
            raise invalid_params(f"outputSchema: has more than {SCHEMA_LIMIT:,} characters")
        try:
            return await self._judge.compiled(params.output_schema)
        except BadSchema as error:
            raise invalid_params(f"outputSchema: {error}") from None

    async def prepare(
        self, thread: LoadedThread, params: TurnStartParams, schema: OutputSchema | None = None
    ) -> ActiveTurn:
        """Make the thread's next turn; nothing is told yet. Raises Refusal, OSError."""
        _check_input(params)
        check_idle(thread)
        given = TurnInput(params.input, schema)
        return await self._prepared(thread, given, settings_of_turn(thread.settings, params))

    async def prepare_work(self, thread: LoadedThread, work: Work) -> ActiveTurn:
        """Make the thread's next turn, which does `work` without any input of the user.

        Nothing is told yet. Raises Refusal, OSError.
        """
        check_idle(thread)
        return await self._prepared(thread, TurnInput([], work=work), thread.settings)

    async def _prepared(
        self, thread: LoadedThread, given: TurnInput, settings: ThreadSettings
    ) -> ActiveTurn:
        # The requests of a thread come one after the other, so none can begin a turn meanwhile.
        turn_id = await self._ids.turn_id()
        thread.settings = settings
        name = settings.model_provider
        provider = self._config.provider(name) or Provider(name)
        turn = ActiveTurn(turn_id, thread, given, self._support, provider)
        thread.turn = turn
        return turn

    async def read_input(self, thread: LoadedThread, content: list[UserInput]) -> Fields:
        """Give input for a thread in the model's terms; may read files."""
        return await read_input(content, thread.settings, self._support.tools)

    def run(self, thread: LoadedThread, turn: ActiveTurn) -> None:
        """Let a prepared turn begin."""
        self._tasks.start_soon(self._run, thread, turn)

    async def _run(self, thread: LoadedThread, turn: ActiveTurn) -> None:
        try:
            await turn.run()
        finally:
            self._syncer.request(thread.recorder)


def check_idle(thread: LoadedThread) -> None:
    """Raise Refusal where a turn is active: a thread has one at a time."""
    if (turn := thread.turn) is not None:
        way = "add input to it with turn/steer, or wait" if turn.takes_input else "wait"
        raise invalid_request(
            f"thread {thread.id} has an active turn, {turn.id}: {way} for its turn/completed"
        )


def _check_input(params: TurnStartParams) -> None:
    if not params.input:
        raise invalid_params("input: must hold at least one element")
