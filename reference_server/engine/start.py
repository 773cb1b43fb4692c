"""Starting turns.

Source: session-protocol "turn/start".
"""

import json
import os
from typing import Any

from anyio.abc import TaskGroup

from harness.protocol.wire.input import SkillInput, UserInput
from harness.protocol.wire.turn import TurnStartParams
from reference_server.brief import brief_value
from reference_server.config.model import Config, Provider
from reference_server.engine.output_schema import BadSchema, OutputSchema, SchemaChecker
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
"""Characters of an outputSchema: it is kept for its turn, and sent with each model call."""


class Engine:
    """Starter of the turns of all threads."""

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
        self._checker = SchemaChecker()

    async def schema(self, thread: LoadedThread, params: TurnStartParams) -> OutputSchema | None:
        """Compile the outputSchema of a turn; None without one. Raises Refusal if it is wrong.

        Also refused if the turn could not begin now. As compiling takes time, `prepare` checks
        that again.
        """
        if params.output_schema is None:
            return None
        check_input(params.input)
        check_idle(thread)
        try:
            size = len(json.dumps(params.output_schema, allow_nan=False))
        except (ValueError, RecursionError) as error:
            raise invalid_params(f"outputSchema: cannot be written as JSON: {error}") from None
        if size > SCHEMA_LIMIT:
            raise invalid_params(f"outputSchema: has more than {SCHEMA_LIMIT:,} characters")
        try:
            return await self._checker.compile(params.output_schema)
        except BadSchema as error:
            raise invalid_params(f"outputSchema: {error}") from None

    async def prepare(
        self, thread: LoadedThread, params: TurnStartParams, schema: OutputSchema | None = None
    ) -> ActiveTurn:
        """Make the thread's next turn without sending anything yet. Raises Refusal, OSError."""
        check_input(params.input)
        check_idle(thread)
        turn_input = TurnInput(params.input, schema)
        return await self._make_turn(thread, turn_input, settings_of_turn(thread.settings, params))

    async def prepare_work(self, thread: LoadedThread, work: Work) -> ActiveTurn:
        """Make the thread's next turn, which does `work` and takes no input of the user.

        Nothing is sent yet. Raises Refusal if a turn is active, OSError.
        """
        check_idle(thread)
        return await self._make_turn(thread, TurnInput([], work=work), thread.settings)

    async def _make_turn(
        self, thread: LoadedThread, turn_input: TurnInput, settings: ThreadSettings
    ) -> ActiveTurn:
        # Requests of a thread are carried out in order, so no other one begins a turn meanwhile.
        turn_id = await self._ids.new_turn_id()
        thread.settings = settings
        name = settings.model_provider
        provider = self._config.provider(name) or Provider(name)
        turn = ActiveTurn(turn_id, thread, turn_input, self._support, provider)
        thread.turn = turn
        return turn

    async def read_input(self, thread: LoadedThread, content: list[UserInput]) -> Fields:
        """Read the local images and skills of input and return it as a Responses API item."""
        return await read_input(content, thread.settings, self._support.tools)

    def run(self, thread: LoadedThread, turn: ActiveTurn) -> None:
        """Start a prepared turn in a task; do not wait for its end."""
        self._tasks.start_soon(self._run, thread, turn)

    async def _run(self, thread: LoadedThread, turn: ActiveTurn) -> None:
        try:
            await turn.run()
        finally:
            self._syncer.request(thread.recorder)


def check_idle(thread: LoadedThread) -> None:
    """Raise Refusal if a turn is active: a thread has at most one."""
    if (turn := thread.turn) is not None:
        advice = "add input to it with turn/steer, or wait" if turn.takes_input else "wait"
        raise invalid_request(
            f"thread {thread.id} has an active turn, {turn.id}: {advice} for its turn/completed"
        )


def check_input(content: list[UserInput]) -> None:
    """Raise Refusal if input is empty or names a skill by a path that is not absolute."""
    if not content:
        raise invalid_params("input: must hold at least one element")
    for index, item in enumerate(content):
        if isinstance(item, SkillInput) and not os.path.isabs(item.path):
            raise invalid_params(
                f"input[{index}].path: must be the absolute path of the skill's SKILL.md, "
                f"not {brief_value(item.path)}"
            )
