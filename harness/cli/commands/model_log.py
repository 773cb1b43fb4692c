"""The log of `harness model`: the request and answer of each call, and unexpected events."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.model.call_words import (
    describe_missing_tool,
    entry_line,
    nearest_texts,
    part_lines,
    shorten,
    step_summary,
    tool_names,
)
from harness.model.conversations import Conversation, ServedCall
from harness.model.encoder import RESPONSES_API
from harness.protocol.escapes import visible
from harness.protocol.values import text
from harness.scenario.model_script import ModelScript

Say = Callable[[str], None]

# New input entries printed per call.
MAX_ENTRIES_SHOWN = 8


class Teller:
    """Listener that prints the events of a model service and collects the unexpected ones.

    `base` is the address of the service, once it has one; `warn` prints the unexpected.
    """

    def __init__(self, script: ModelScript, say: Say, warn: Say, *, loop: bool) -> None:
        self.unexpected: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.loop = loop
        self._script = script
        self.base = ""
        self.say = say
        self._warn = warn
        self._last = 0

    def on_conversation(self, conversation: Conversation) -> None:
        """Print that a conversation begins, unless the whole script is for a single one."""
        if not self.loop and len(self._script.scripts) < 2:
            return
        alias = f", the thread {conversation.alias}" if conversation.alias else ""
        self.say(f"conversation {conversation.number} begins{alias}")

    def on_call(self, served: ServedCall) -> None:
        """Print the new entries of a call, the step that answers it, and its problems."""
        model_name = text(served.call.body.get("model"))
        self._last = served.number
        self.say(
            f"call {served.number}"
            + (f" asks the model {shorten(model_name)}" if model_name else "")
            + (f" by {served.call.wire}" if served.call.wire != RESPONSES_API else "")
        )
        if served.lost_entries:
            lost = pluralize(served.lost_entries, "earlier entry", "earlier entries")
            self.say(f"    {lost} of its input gone or rewritten")
        entries = [entry_line(entry) for entry in served.new_entries]
        for line in entries[:MAX_ENTRIES_SHOWN]:
            self.say(f"    + {line}")
        if len(entries) > MAX_ENTRIES_SHOWN:
            self.say(f"    + {len(entries) - MAX_ENTRIES_SHOWN} more entries")
        if served.tools_changed:
            self.say(f"    tools: {tool_names([str(tool) for tool in served.tools])}")
        step = served.call.step
        if step is not None:
            self.say(f"    step {self._place(served)}: {step_summary(step)}")
        self._tell_problems(served, served.problems)
        for line in nearest_texts(served.call):
            self.say(f"    {line}")
        served.problems_before = len(served.problems)

    def on_answer(self, served: ServedCall) -> None:
        """Print the answer of a call and its late problems, and record the call."""
        call = served.call
        ended = call.end
        before = f"call {served.number}: " if self._last != served.number else ""
        self._last = served.number
        if ended is None or not ended.is_complete or call.step is None:
            self.say(f"    {before}{call.outcome_text}")
        for line in part_lines(call.step) if call.step is not None else ():
            self.say(f"    {before}> {line}")
        late = [
            describe_missing_tool(unfit)
            for unfit in served.conversation.model.missing_tools[served.missing_tools_before :]
        ]
        self._tell_problems(served, [*late, *served.problems[served.problems_before :]])
        self.calls.append(self._as_json(served, late))

    def on_gate_reached(self, gate: str) -> None:
        """Print that an answer waits at a gate, and how to open it."""
        self.say(f"    waits at the gate {gate}: Enter opens it, or")
        self.say(f"    curl -X POST {self.base}/gates/{gate}")

    def on_gate_opened(self, gate: str) -> None:
        """Print that a gate is open."""
        self.say(f"    the gate {gate} is open")

    def on_refused_request(self, request: str, reason: str) -> None:
        """Record and print a request that is not a valid call of this model."""
        self._report_unexpected(f"{request}: {reason}", request=request)

    def on_forgotten(self, conversation: Conversation) -> None:
        """Record and print the unused steps of an old conversation."""
        self.report_unused([conversation])

    def report_unused(self, conversations: list[Conversation]) -> None:
        """Record and print the steps that no call has used."""
        for conversation in conversations:
            for steps in conversation.model.unplayed_steps.values():
                for step in steps:
                    self.report_unused_step(
                        conversation.alias, step, conversation.number if self.loop else 0
                    )

    def report_unused_step(self, alias: str, step: int, conversation: int = 0) -> None:
        """Record and print a step that no call has used."""
        line = self._script.line_of(alias, step)
        place = f"{self._script.path}:{line}"
        thread = f" of the thread {alias}" if alias and self._script.by_thread else ""
        of = f" of conversation {conversation}" if conversation else ""
        words = f"step {step + 1}{thread}{of} was not used ({place})"
        self._report_unexpected(words, step=step + 1, thread=alias, line=line)

    def _tell_problems(self, served: ServedCall, problems: list[str]) -> None:
        for problem in problems:
            if served.call.step is None and problem.endswith("is not in the script"):
                problem = "the script has no step left for this call"
            self._report_unexpected(problem, call=served.number)

    def _report_unexpected(self, words: str, **place: Any) -> None:
        self.unexpected.append({"message": words, **place})
        self._warn(f"    unexpected: {visible(words)}")

    def _place(self, served: ServedCall) -> str:
        alias, index = served.conversation.alias, served.call.index
        script = self._script.scripts.get(alias, [])
        line = self._script.line_of(alias, index)
        return f"{index + 1} of {len(script)} ({self._script.path.name}:{line})"

    def _as_json(self, served: ServedCall, unfit: list[str]) -> dict[str, Any]:
        call = served.call
        return {
            "call": served.number,
            "conversation": served.conversation.number,
            "thread": served.conversation.alias,
            "step": call.index + 1 if call.step is not None else None,
            "model": text(call.body.get("model")),
            "input": [entry_line(entry) for entry in served.new_entries],
            "tools": [str(tool) for tool in served.tools],
            "told": part_lines(call.step) if call.step is not None else [],
            "outcome": call.outcome_text,
            "problems": [*served.problems, *unfit],
        }


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """Return for example `1 call` or `2 calls`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def environment_lines(url: str, key: str) -> Mapping[str, str]:
    """Return the environment variables that point a server to the model at `url`."""
    return {"PROVIDER_BASE_URL": url, "OPENAI_BASE_URL": url, "PROVIDER_API_KEY": key}
