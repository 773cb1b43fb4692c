"""What `harness model` says: for each call what the server asked and was told, and what is wrong.

Here: a call as a few short lines. What a server sent is shown on one line each, cut, without
control characters. Not here: the service (backend.service), its start and end (model).
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.backend.asks import DynamicCall, McpCall, Patch, Run, UpdatePlan, ViewImage
from harness.backend.conversations import Conversation, Served
from harness.backend.parts import Disconnect, Hold, Malformed, Message, Part, PlanItem, Reasoning
from harness.backend.play import Unfit
from harness.backend.script import ModelStep
from harness.backend.tools import intent_of, lines_to_add
from harness.scenario.model_script import ModelScript
from harness.trace.excerpt import visible
from harness.trace.values import arr, obj, text

Say = Callable[[str], None]

# So many characters of a text, new entries of an input, and names of tools are shown.
WIDTH, ENTRIES, TOOLS = 100, 8, 12
# Longer texts are not searched for what is most like an expected one.
LONGEST = 2000


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
        asked = text(served.call.body.get("model"))
        self._last = served.number
        self.say(f"call {served.number}" + (f" asks the model {_short(asked)}" if asked else ""))
        if served.lost:
            lost = counted(served.lost, "earlier entry", "earlier entries")
            self.say(f"    {lost} of its input gone or rewritten")
        entries = [entry_line(one) for one in served.added]
        for line in entries[:ENTRIES]:
            self.say(f"    + {line}")
        if len(entries) > ENTRIES:
            self.say(f"    + {len(entries) - ENTRIES} more entries")
        if served.tools_changed:
            self.say(f"    tools: {_tools([str(one) for one in served.offered])}")
        step = served.call.step
        if step is not None:
            self.say(f"    step {self._place(served)}: {plan_of(step)}")
        self._tell_problems(served, served.problems)
        for line in _nearest(served):
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
        late = [_unfit_words(one) for one in served.conversation.model.unfit[served.unfit :]]
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
        for one in conversations:
            for steps in one.model.unplayed_steps.values():
                for step in steps:
                    self.unused_step(one.alias, step, one.number if self.loop else 0)

    def unused_step(self, alias: str, step: int, conversation: int = 0) -> None:
        """Say that no call has used a step."""
        line = self._script.line(alias, step)
        where = f"{self._script.path}:{line}"
        thread = f" of the thread {alias}" if alias and self._script.by_thread else ""
        of = f" of conversation {conversation}" if conversation else ""
        words = f"step {step + 1}{thread}{of} was not used ({where})"
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
            "input": [entry_line(one) for one in served.added],
            "tools": [str(one) for one in served.offered],
            "told": told_lines(call.step) if call.step is not None else [],
            "outcome": call.told,
            "problems": [*served.problems, *unfit],
        }


def entry_line(entry: Any) -> str:
    """An entry of a call's input on one line."""
    members = obj(entry)
    kind, role = text(members.get("type")), text(members.get("role"))
    if role:
        return f"{role}: {_short(_content(members.get('content')))}"
    if kind.endswith("_call_output"):
        output = members.get("output")
        shown = output if isinstance(output, str) else _content(output)
        return f"output of {text(members.get('call_id'))}: {_short(shown)}"
    if kind.endswith("_call"):
        given = members.get("arguments", members.get("input", members.get("action", "")))
        shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        name = text(members.get("name")) or kind
        return f"call {text(members.get('call_id'))} of {name}: {_short(shown)}"
    if kind == "reasoning":
        return f"reasoning: {_short(_content(members.get('summary')))}"
    return _short(json.dumps(entry, ensure_ascii=False))


def plan_of(step: ModelStep) -> str:
    """What a step is about to say, in a word each."""
    if step.fail is not None:
        fail = step.fail
        return f"fails with status {fail.status}" if fail.status else "fails by an error event"
    names = [next(iter(type(one).model_fields)) for one in step.reply or []]
    return ", ".join(names) if names else "an empty reply"


def told_lines(step: ModelStep) -> list[str]:
    """What a step says, a line for each part."""
    if step.fail is not None:
        return [f"{plan_of(step)}: {_short(step.fail.message)}"]
    return [_part_line(one) for one in step.reply or []]


def _part_line(part: Part) -> str:
    match part:
        case Message(message=body) | PlanItem(plan_item=body):
            name = "message" if isinstance(part, Message) else "plan"
            said = "".join(one for one in body.deltas if isinstance(one, str))
            count = sum(isinstance(one, str) for one in body.deltas)
            return f"{name}: {_short(said)}" + (f" (in {count} deltas)" if count > 1 else "")
        case Reasoning(reasoning=body):
            blocks = [*body.summary, *body.raw]
            said = " ".join(
                one if isinstance(one, str) else "".join(d for d in one if isinstance(d, str))
                for one in blocks
            )
            return f"reasoning: {_short(said)}"
        case Hold(hold=gate):
            return f"hold: {gate}"
        case Disconnect():
            return "disconnect"
        case Malformed():
            return f"malformed: {len(part.malformed.raw)} bytes"
        case Run() | Patch() | UpdatePlan() | McpCall() | DynamicCall() | ViewImage():
            intent, values = intent_of(part)
            given = {name: value for name, value in values.items() if value is not None}
            only = next(iter(given.values())) if len(given) == 1 else given
            shown = only if isinstance(only, str) else json.dumps(only, ensure_ascii=False)
            return f"{intent}: {_short(shown)}"
        case _:
            dumped = part.model_dump(mode="json", exclude_none=True, by_alias=True)
            name, value = next(iter(dumped.items()))
            return f"{name}: {_short(json.dumps(value, ensure_ascii=False))}"


def _nearest(served: Served) -> list[str]:
    """Of each text that a call should contain and does not, the text of it that is most alike."""
    step = served.call.step
    if step is None or step.expect is None:
        return []
    texts = list(dict.fromkeys(_texts(served.call.body.get("input"))))
    lines: list[str] = []
    for wanted in step.expect.input_contains:
        for one in [wanted] if isinstance(wanted, str) else wanted:
            if not any(one in said for said in texts):
                near = difflib.get_close_matches(one, texts, n=1, cutoff=0.4)
                lines += [
                    f"nearest to {_short(one)} is {_short(near[0])}" for near in [near] if near
                ]
    return lines


def _texts(value: Any) -> Iterator[str]:
    """Every text within a value, long ones left out: comparing them takes long."""
    if isinstance(value, str) and len(value) <= LONGEST:
        yield value
    for one in arr(value) or obj(value).values():
        yield from _texts(one)


def _unfit_words(unfit: Unfit) -> str:
    offered = _tools([str(one) for one in unfit.offered])
    if unfit.lacks:
        return f"{unfit.intent} needs {unfit.lacks}, which no offered tool has ({offered})"
    return (
        f"{unfit.intent}: the server offered no tool for it ({offered}); if one of them is it, add "
        f"to a profile and give that by --target: {lines_to_add(unfit.intent)}"
    )


def _tools(names: list[str]) -> str:
    shown = ", ".join(visible(one) for one in names[:TOOLS])
    more = f" and {len(names) - TOOLS} more" if len(names) > TOOLS else ""
    return (shown + more) or "none"


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [
        text(obj(one).get("text")) or f"[{text(obj(one).get('type')) or 'something'}]"
        for one in arr(content)
    ]
    return " ".join(texts)


def _short(said: str) -> str:
    """A text in quotes on one line, cut to `WIDTH`."""
    shown = visible(json.dumps(said[: 2 * WIDTH], ensure_ascii=False))
    if len(said) <= WIDTH:
        return shown
    return f"{visible(json.dumps(said[:WIDTH], ensure_ascii=False))} … ({len(said)} characters)"


def counted(number: int, what: str, many: str = "") -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def environment_lines(url: str, key: str) -> Mapping[str, str]:
    """The variables by which servers are told of a model."""
    return {"PROVIDER_BASE_URL": url, "OPENAI_BASE_URL": url, "PROVIDER_API_KEY": key}
