"""Player of a scenario on `agent exec`: each turn is one process, recorded as one connection."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from harness.client.target.profile import ExecProgram, fill
from harness.play.program_run import Program, run_program
from harness.play.turns_player import PlayedTurn, TurnsPlayer
from harness.protocol.values import arr, obj, text
from harness.scenario.client_steps import StartTurn
from harness.scenario.exec_results import ExecResult, exec_result_of
from harness.scenario.steps.context import FailureKind, StepFailed
from harness.scenario.surfaces import THREAD_PARAMS
from harness.trace.marks import TurnRequested
from harness.trace.recorder import TraceFull

# Thread parameters that are settings of the program's configuration.
_SETTINGS = {"approvalPolicy": "approval_policy"}
# The settings of every scenario unless it says otherwise.
_DEFAULTS = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
# The missing capability if a profile has no words for something.
_CAPABILITIES = {"an output schema": "output-schema", "a thread to resume": "storage"}
# An empty line separates several texts of one input.
TEXT_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Options of a turn.

    `params` are the parameters of its thread, `thread` is the one to resume ("" for a new one),
    `schema_file` the file of its output schema ("" for none), `images` are paths.
    """

    params: Mapping[str, Any]
    thread: str = ""
    schema_file: str = ""
    images: Sequence[str] = ()


def command_line(program: ExecProgram, options: TurnOptions) -> list[str]:
    """Return the words after the program's name. Raises `StepFailed` if a needed one is unknown."""
    words = list(program.arguments)

    def add_words(subject: str, template: list[str], value: str, usual: str = "") -> None:
        if value == usual and not template:
            return  # A program without the option may behave so by default.
        if value and not template:
            message = f"the profile's [exec] has no words for {subject}"
            raise StepFailed(
                FailureKind.NOT_OFFERED, message, capability=_CAPABILITIES.get(subject, "core")
            )
        if value:
            words.extend(fill(template, {"value": value}))

    add_words("a model", program.model, text(options.params.get("model")))
    add_words(
        "a sandbox", program.sandbox, text(options.params.get("sandbox")), _DEFAULTS["sandbox"]
    )
    add_words("a working directory", program.cwd, text(options.params.get("cwd")))
    add_words("an output schema", program.schema_file, options.schema_file)
    for name, key in _SETTINGS.items():
        value, usual = text(options.params.get(name)), _DEFAULTS[name]
        setting = f"{key}={json.dumps(value)}" if value else ""
        add_words("a setting", program.setting, setting, f"{key}={json.dumps(usual)}")
    add_words("a thread to resume", program.resume, options.thread)
    for image in options.images:
        add_words("an image", program.image, image)
    return words


def prompt_of(entries: Any, plain: str | None) -> tuple[str, list[str]]:
    """Return the prompt and the image paths of a turn's input."""
    if plain is not None:
        return plain, []
    items = [obj(entry) for entry in arr(entries)]
    texts = [text(item.get("text")) for item in items if item.get("type") == "text"]
    images = [text(item.get("path")) for item in items if item.get("type") == "localImage"]
    return TEXT_SEPARATOR.join(texts), images


class ExecPlayer(TurnsPlayer):
    """Player of one scenario; `turns` maps a turn's alias to its connection."""

    def _start_turn(self, body: StartTurn) -> None:
        thread = self._threads[body.thread]
        if thread.prompts and not thread.id:
            message = "its first turn reported no thread_id, so it cannot be resumed"
            raise StepFailed(FailureKind.REFUSED, f"thread {body.thread}: {message}")
        prompt, images = prompt_of(fill(body.input, self._stage.places), body.text)
        if not thread.prompts and body.thread in self._markers:
            prompt = f"{self._markers[body.thread]} {prompt}"
        connection = f"p{len(self.turns) + 1}"
        schema = body.params.get("outputSchema")
        file = self._stage.scratch / f"{connection}.schema.json"
        if schema is not None:
            file.write_text(json.dumps(schema), "utf-8")
        schema_file = "" if schema is None else str(file)
        own = {name: value for name, value in body.params.items() if name in THREAD_PARAMS}
        options = TurnOptions({**thread.params, **own}, thread.id, schema_file, images)
        argv = [*self._stage.command, *command_line(self._stage.program, options)]
        scope = anyio.CancelScope(
            deadline=anyio.current_time() + self._bounds.start + self._bounds.scenario
        )
        turn = self._running[body.alias] = PlayedTurn(thread, connection, scope)
        self.turns[body.alias] = connection
        request_mark = TurnRequested(
            connection=connection,
            turn=body.alias,
            of=body.thread,
            thread=thread.id,
            earlier=tuple(thread.prompts),
            model=options.params.get("model") or "",
            schema="" if schema is None else json.dumps(schema),
        )
        thread.prompts.append(prompt)
        self._recorder.mark(request_mark)
        self._start_task(self._run, turn, argv, prompt)

    def _drop_aborted_prompt(self, turn: PlayedTurn) -> None:
        """Drop the prompt of an aborted turn, which the program need not have stored."""
        if turn.thread.prompts and turn.stop_requested.is_set():
            turn.thread.prompts.pop()

    async def _run(self, turn: PlayedTurn, argv: list[str], prompt: str) -> None:
        stage = self._stage
        program = Program(
            argv,
            stage.cwd,
            stage.env,
            stage.scratch,
            prompt.encode(),
            stage.variables,
            stage.confinement,
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
            turn.thread.id = turn.thread.id or self._turn_record(turn).thread
            self._drop_aborted_prompt(turn)
            turn.end_event.set()

    def _turn_record(self, turn: PlayedTurn) -> ExecResult:
        return exec_result_of(self._recorder.trace, turn.key)
