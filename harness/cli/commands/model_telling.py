"""For each call of `harness model`: what the server asked, what it was told, and what is wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.model.call_words import (
    entry_line,
    nearest_texts,
    plan_of,
    short,
    told_lines,
    tool_names,
    unfit_words,
)
from harness.model.conversations import Conversation, Served
from harness.protocol.values import text
from harness.scenario.model_script import ModelScript
from harness.trace.excerpt import visible

Say = Callable[[str], None]

# So many new entries of an input are shown.
ENTRIES = 8


class Teller:
    """Says what happens on lines of their own, and keeps what was unexpected.

    `base` is the address of the service, once it has one; `warn` says what is wrong.
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

    def begins(self, conversation: Conversation) -> None:
        """Say which script a conversation gets, where there is more than one."""
        if not self.loop and len(self._script.scripts) < 2:
            return
        alias = f", the thread {conversation.alias}" if conversation.alias else ""
        self.say(f"conversation {conversation.number} begins{alias}")

    def asked(self, served: Served) -> None:
        """Say what is new in a call, and which step answers it."""
        model_name = text(served.call.body.get("model"))
        self._last = served.number
        self.say(
            f"call {served.number}" + (f" asks the model {short(model_name)}" if model_name else "")
        )
        if served.lost:
            lost = counted(served.lost, "earlier entry", "earlier entries")
            self.say(f"    {lost} of its input gone or rewritten")
        entries = [entry_line(entry) for entry in served.added]
        for line in entries[:ENTRIES]:
            self.say(f"    + {line}")
        if len(entries) > ENTRIES:
            self.say(f"    + {len(entries) - ENTRIES} more entries")
        if served.tools_changed:
            self.say(f"    tools: {tool_names([str(tool) for tool in served.offered])}")
        step = served.call.step
        if step is not None:
            self.say(f"    step {self._place(served)}: {plan_of(step)}")
        self._tell_problems(served, served.problems)
        for line in nearest_texts(served.call):
            self.say(f"    {line}")
        served.known_problems = len(served.problems)

    def answered(self, served: Served) -> None:
        """Say what a call was told."""
        call = served.call
        ended = call.ended
        before = f"call {served.number}: " if self._last != served.number else ""
        self._last = served.number
        if ended is None or not ended.completed or call.step is None:
            self.say(f"    {before}{call.told}")
        for line in told_lines(call.step) if call.step is not None else ():
            self.say(f"    {before}> {line}")
        late = [unfit_words(unfit) for unfit in served.conversation.model.unfit[served.unfit :]]
        self._tell_problems(served, [*late, *served.problems[served.known_problems :]])
        self.calls.append(self._as_json(served, late))

    def waits(self, gate: str) -> None:
        """Say that an answer waits at a gate, and how to open it."""
        self.say(f"    waits at the gate {gate}: Enter opens it, or")
        self.say(f"    curl -X POST {self.base}/gates/{gate}")

    def opened(self, gate: str) -> None:
        """Say that it goes on."""
        self.say(f"    the gate {gate} is open")

    def refused(self, what: str, why: str) -> None:
        """Say that a request was no call of this model."""
        self._unexpected(f"{what}: {why}", request=what)

    def forgotten(self, conversation: Conversation) -> None:
        """Say which steps of an old conversation were not used."""
        self.unused([conversation])

    def unused(self, conversations: list[Conversation]) -> None:
        """Say which steps no call has used."""
        for conversation in conversations:
            for steps in conversation.model.unplayed_steps.values():
                for step in steps:
                    self.unused_step(
                        conversation.alias, step, conversation.number if self.loop else 0
                    )

    def unused_step(self, alias: str, step: int, conversation: int = 0) -> None:
        """Say that no call has used a step."""
        line = self._script.line(alias, step)
        place = f"{self._script.path}:{line}"
        thread = f" of the thread {alias}" if alias and self._script.by_thread else ""
        of = f" of conversation {conversation}" if conversation else ""
        words = f"step {step + 1}{thread}{of} was not used ({place})"
        self._unexpected(words, step=step + 1, thread=alias, line=line)

    def _tell_problems(self, served: Served, problems: list[str]) -> None:
        for problem in problems:
            if served.call.step is None and problem.endswith("is not in the script"):
                problem = "the script has no step left for this call"
            self._unexpected(problem, call=served.number)

    def _unexpected(self, words: str, **where: Any) -> None:
        self.unexpected.append({"message": words, **where})
        self._warn(f"    unexpected: {visible(words)}")

    def _place(self, served: Served) -> str:
        alias, index = served.conversation.alias, served.call.index
        script = self._script.scripts.get(alias, [])
        line = self._script.line(alias, index)
        return f"{index + 1} of {len(script)} ({self._script.path.name}:{line})"

    def _as_json(self, served: Served, unfit: list[str]) -> dict[str, Any]:
        call = served.call
        return {
            "call": served.number,
            "conversation": served.conversation.number,
            "thread": served.conversation.alias,
            "step": call.index + 1 if call.step is not None else None,
            "model": text(call.body.get("model")),
            "input": [entry_line(entry) for entry in served.added],
            "tools": [str(tool) for tool in served.offered],
            "told": told_lines(call.step) if call.step is not None else [],
            "outcome": call.told,
            "problems": [*served.problems, *unfit],
        }


def counted(number: int, what: str, many: str = "") -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def environment_lines(url: str, key: str) -> Mapping[str, str]:
    """The variables by which servers are told of a model."""
    return {"PROVIDER_BASE_URL": url, "OPENAI_BASE_URL": url, "PROVIDER_API_KEY": key}
