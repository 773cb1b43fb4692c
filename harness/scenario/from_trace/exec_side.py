"""The client's steps of a scenario whose turns are processes of `agent exec`."""

import json
import re
from typing import Any, Final

from harness.scenario.from_trace.exec_story import ExecStory, Process
from harness.scenario.from_trace.given import Given
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.told_items import Workshop
from harness.trace.marks import Setup, StepBegins

Step = dict[str, Any]
# What the player says before a thread's first words, to tell the calls of threads apart.
_MARKER: Final = re.compile(r"\[thread \S+ [0-9a-f]{8}\] ")
_USUAL: Final = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
_PARAMS: Final = {"approvalPolicy": "approval_policy", "sandbox": "sandbox", "cwd": "cwd"}


class ExecSide:
    """Makes the steps: `setup` and `client`. `turns` and `threads` are their names."""

    def __init__(
        self, story: ExecStory, shop: Workshop, model: ModelSide, given: Given, *, recorded: bool
    ) -> None:
        self.settings: dict[str, Any] = {}
        self.setup: list[Step] = []
        self.client: list[Step] = []
        self.turns: dict[tuple[str, str], str] = {}
        self.threads: dict[str, str] = {}
        self._story = story
        self._shop = shop
        self._model = model
        self._recorded = recorded
        if given.exact:
            self._as_given(given)
        else:
            self._inferred()

    def _as_given(self, given: Given) -> None:
        """The steps of the run, one by one."""
        steps = self.client
        for mark in self._story.marks:
            if isinstance(mark.body, Setup):
                steps = self.setup if mark.body.active else self.client
            if not isinstance(mark.body, StepBegins):
                continue
            whole, alias = given.begins(mark.body), given.alias
            asked = [(one, one.asked) for one in self._story.processes if one.asked is not None]
            if whole:
                steps.append(whole)
            elif mark.body.name == "start_thread":
                first = next((one for one, by in asked if by.of == alias), None)
                steps.append(self._thread(alias, first))
            elif mark.body.name == "start_turn":
                found = next((one for one, by in asked if by.turn == alias), None)
                if found is not None and found.asked is not None:
                    steps.append(self._turn(alias, found.asked.of, found))

    def _inferred(self) -> None:
        """A thread before its first turn; each turn waited for where the next comes after it."""
        processes = self._story.processes
        waiting: list[tuple[str, Process]] = []
        for number, process in enumerate(processes):
            thread = self.threads.get(process.thread)
            if thread is None:
                thread = "t" if not self.threads else f"t{len(self.threads) + 1}"
                self.client.append(self._thread(thread, process))
            alias = "u" if not number else f"u{number + 1}"
            self.client.append(self._turn(alias, thread, process))
            waiting.append((alias, process))
            until = processes[number + 1].begins if number + 1 < len(processes) else None
            for one in list(waiting):
                ends = one[1].ends
                if until is None or (ends is not None and ends <= until):
                    waiting.remove(one)
                    self._over(*one)

    def _over(self, alias: str, process: Process) -> None:
        """The end of a turn, which may be that its process was told to end."""
        status = process.turn.status if process.turn is not None else ""
        if process.cut and not status:
            calls = [
                one for one in self._model.calls.get(process.thread, ()) if one.turn is process.turn
            ]
            if calls:
                gate = f"gate-{alias}"
                last = max((part.seq for part in calls[-1].parts), default=process.begins)
                calls[-1].holds[last + 1] = gate
                self.client.append({"wait": {"gate": gate}})
            else:
                self._shop.note(f"turn {alias} was told to end; when, the trace does not tell")
            self.client.append({"interrupt": {"turn": alias}})
        self.client.append({"wait": {"turn": alias, **({"status": status} if status else {})}})

    def _thread(self, alias: str, process: Process | None) -> Step:
        params: dict[str, Any] = {}
        if process is not None:
            self.threads[process.thread] = alias
            for name, word in _PARAMS.items():
                said = process.said.get(word)
                if said and said != _USUAL.get(name) and not (name == "cwd" and self._at(said)):
                    params[name] = self._story.placed(said)
                    if name == "cwd":
                        self._shop.folder(said)
            model = process.said.get("model")
            if model and self._recorded:
                self._shop.note(f"the model {model} is left to the target")
            elif model:
                params["model"] = model
        return {"start_thread": {"as": alias, **({"params": params} if params else {})}}

    def _at(self, folder: str) -> bool:
        """Return whether a folder is the one in which programs are started anyway."""
        return folder.rstrip("/") in self._story.cwds

    def _turn(self, alias: str, thread: str, process: Process) -> Step:
        self.turns[process.thread, process.connection] = alias
        prompt = _MARKER.sub("", process.prompt, count=1)
        images = [{"type": "localImage", "path": self._story.placed(one)} for one in process.images]
        for one in process.images:
            self._shop.image(one)
        body: Step = {"thread": thread, "as": alias}
        if images or self._story.placed(prompt) != prompt:
            body["input"] = [{"type": "text", "text": self._story.placed(prompt)}, *images]
        else:
            body["text"] = prompt
        if process.asked is not None and process.asked.schema:
            body["params"] = {"outputSchema": json.loads(process.asked.schema)}
        elif file := process.said.get("schema_file"):
            self._shop.note(f"what is in the schema {file} is not in the trace; it is left out")
        return {"start_turn": body}
