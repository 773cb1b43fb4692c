"""The client's steps of a scenario whose turns are processes of `agent exec`."""

import json
import re
from typing import Any, Final

from harness.scenario.from_trace.exec_story import ExecStory, Process
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.setup import TraceHead
from harness.trace.marks import Setup, StepBegins

Step = dict[str, Any]
# The player's marker before a thread's first text, which identifies the thread's calls.
_MARKER: Final = re.compile(r"\[thread \S+ [0-9a-f]{8}\] ")
_DEFAULT_SETTINGS: Final = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
_OPTION_OF_PARAM: Final = {"approvalPolicy": "approval_policy", "sandbox": "sandbox", "cwd": "cwd"}


class ExecSide:
    """Converter of processes to steps (`setup`, `client`), with aliases of turns and threads."""

    def __init__(
        self,
        story: ExecStory,
        conversion: Conversion,
        model: ModelSide,
        head: TraceHead,
        *,
        is_recording: bool,
    ) -> None:
        self.settings: dict[str, Any] = {}
        self.setup: list[Step] = []
        self.client: list[Step] = []
        self.turns: dict[tuple[str, str], str] = {}
        self.threads: dict[str, str] = {}
        self._story = story
        self._conversion = conversion
        self._model = model
        self._is_recording = is_recording
        if head.has_steps:
            self._steps_of_head(head)
        else:
            self._infer_steps()

    def _steps_of_head(self, head: TraceHead) -> None:
        """Add the steps that the traced run recorded."""
        steps = self.client
        for mark in self._story.marks:
            if isinstance(mark.body, Setup):
                steps = self.setup if mark.body.active else self.client
            if not isinstance(mark.body, StepBegins):
                continue
            step, alias = head.begin_step(mark.body), head.alias
            requests = [
                (process, process.request)
                for process in self._story.processes
                if process.request is not None
            ]
            if step:
                steps.append(step)
            elif mark.body.name == "start_thread":
                first = next(
                    (process for process, requested in requests if requested.of == alias), None
                )
                steps.append(self._start_thread_step(alias, first))
            elif mark.body.name == "start_turn":
                of_turn = next(
                    (process for process, requested in requests if requested.turn == alias), None
                )
                if of_turn is not None and of_turn.request is not None:
                    steps.append(self._start_turn_step(alias, of_turn.request.of, of_turn))

    def _infer_steps(self) -> None:
        """Infer steps: start each thread and turn, and wait for turns that end before the next."""
        processes = self._story.processes
        waiting: list[tuple[str, Process]] = []
        for number, process in enumerate(processes):
            thread = self.threads.get(process.thread)
            if thread is None:
                thread = "t" if not self.threads else f"t{len(self.threads) + 1}"
                self.client.append(self._start_thread_step(thread, process))
            alias = "u" if not number else f"u{number + 1}"
            self.client.append(self._start_turn_step(alias, thread, process))
            waiting.append((alias, process))
            until = processes[number + 1].first_seq if number + 1 < len(processes) else None
            for entry in list(waiting):
                ends = entry[1].last_seq
                if until is None or (ends is not None and ends <= until):
                    waiting.remove(entry)
                    self._add_end(*entry)

    def _add_end(self, alias: str, process: Process) -> None:
        """Add the wait for a turn's end, with an interrupt if the caller ended its process."""
        status = process.turn.status if process.turn is not None else ""
        if process.was_ended and not status:
            calls = [
                call
                for call in self._model.calls.get(process.thread, ())
                if call.turn is process.turn
            ]
            if calls:
                gate = f"gate-{alias}"
                last = max((part.seq for part in calls[-1].parts), default=process.first_seq)
                calls[-1].holds[last + 1] = gate
                self.client.append({"wait": {"gate": gate}})
            else:
                self._conversion.add_note(
                    f"turn {alias} was told to end; when, the trace does not tell"
                )
            self.client.append({"interrupt": {"turn": alias}})
        self.client.append({"wait": {"turn": alias, **({"status": status} if status else {})}})

    def _start_thread_step(self, alias: str, process: Process | None) -> Step:
        params: dict[str, Any] = {}
        if process is not None:
            self.threads[process.thread] = alias
            for name, word in _OPTION_OF_PARAM.items():
                value = process.options.get(word)
                if (
                    value
                    and value != _DEFAULT_SETTINGS.get(name)
                    and not (name == "cwd" and self._is_working_folder(value))
                ):
                    params[name] = self._story.with_placeholders(value)
                    if name == "cwd":
                        self._conversion.require_folder(value)
            model = process.options.get("model")
            if model and self._is_recording:
                self._conversion.add_note(f"the model {model} is left to the target")
            elif model:
                params["model"] = model
        return {"start_thread": {"as": alias, **({"params": params} if params else {})}}

    def _is_working_folder(self, folder: str) -> bool:
        """Return whether programs are started in this folder anyway."""
        return folder.rstrip("/") in self._story.cwds

    def _start_turn_step(self, alias: str, thread: str, process: Process) -> Step:
        self.turns[process.thread, process.connection] = alias
        prompt = _MARKER.sub("", process.prompt, count=1)
        images = [
            {"type": "localImage", "path": self._story.with_placeholders(image)}
            for image in process.images
        ]
        for path in process.images:
            self._conversion.require_image(path)
        body: Step = {"thread": thread, "as": alias}
        if images or self._story.with_placeholders(prompt) != prompt:
            body["input"] = [
                {"type": "text", "text": self._story.with_placeholders(prompt)},
                *images,
            ]
        else:
            body["text"] = prompt
        if process.request is not None and process.request.schema:
            body["params"] = {"outputSchema": json.loads(process.request.schema)}
        elif file := process.options.get("schema_file"):
            self._conversion.add_note(
                f"what is in the schema {file} is not in the trace; it is left out"
            )
        return {"start_turn": body}
