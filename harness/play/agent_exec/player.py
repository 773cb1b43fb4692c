"""Plays a scenario on `agent exec`: each turn is one process, and its trace one connection."""

import json

import anyio

from harness.client.target.profile import fill
from harness.play.agent_exec.command_line import Wanted, command_line, prompt_of
from harness.play.program_run import Program, run_program
from harness.play.turns_player import PlayedTurn, TurnsPlayer
from harness.scenario.client_steps import StartTurn
from harness.scenario.exec_told import Told, told_by
from harness.scenario.steps.context import StepFailed, UnmetKind
from harness.trace.marks import TurnAsked
from harness.trace.recorder import TraceFull


class ExecPlayer(TurnsPlayer):
    """Plays one scenario. `turns` are the connections of its turns, by their aliases."""

    def _turn(self, body: StartTurn) -> None:
        thread = self._threads[body.thread]
        if thread.prompts and not thread.id:
            message = "its first turn told no thread_id, so that nobody can go on with it"
            raise StepFailed(UnmetKind.REFUSED, f"thread {body.thread}: {message}")
        prompt, images = prompt_of(fill(body.input, self._stage.places), body.text)
        if not thread.prompts and body.thread in self._markers:
            prompt = f"{self._markers[body.thread]} {prompt}"
        connection = f"p{len(self.turns) + 1}"
        schema = body.params.get("outputSchema")
        file = self._stage.scratch / f"{connection}.schema.json"
        if schema is not None:
            file.write_text(json.dumps(schema), "utf-8")
        given = "" if schema is None else str(file)
        wanted = Wanted(thread.params, thread.id, given, images)
        argv = [*self._stage.command, *command_line(self._stage.program, wanted)]
        within = anyio.CancelScope(
            deadline=anyio.current_time() + self._bounds.start + self._bounds.scenario
        )
        turn = self._running[body.alias] = PlayedTurn(thread, connection, within)
        self.turns[body.alias] = connection
        asked = TurnAsked(
            connection=connection,
            turn=body.alias,
            of=body.thread,
            thread=thread.id,
            earlier=tuple(thread.prompts),
            model=wanted.params.get("model") or "",
            schema="" if schema is None else json.dumps(schema),
        )
        thread.prompts.append(prompt)
        self._recorder.mark(asked)
        self._start_task(self._run, turn, argv, prompt)

    def _aborted(self, turn: PlayedTurn) -> None:
        """Note that the input of a turn that was told to end need not have been kept."""
        if turn.thread.prompts and turn.stop_requested.is_set():
            turn.thread.prompts.pop()

    async def _run(self, turn: PlayedTurn, argv: list[str], prompt: str) -> None:
        stage = self._stage
        program = Program(
            argv, stage.cwd, stage.env, stage.scratch, prompt.encode(), stage.variables
        )
        try:
            ended = await run_program(
                self._recorder,
                program,
                connection=turn.key,
                scope=turn.scope,
                stop_requested=turn.stop_requested,
                grace=self._bounds.stop,
                owner=stage.scratch.parent.name,
            )
            self.exits.append(ended)
        except TraceFull as full:
            self.overflow = str(full)
        except Exception as error:
            self._error = error  # Raised by play(), since a task group would wrap it.
        finally:
            turn.thread.id = turn.thread.id or self._told(turn).thread
            self._aborted(turn)
            turn.end_event.set()

    def _told(self, turn: PlayedTurn) -> Told:
        return told_by(self._recorder.trace, turn.key)
