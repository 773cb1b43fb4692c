"""The default script: a model that needs no script, and does what a word of the prompt says.

`WORDS` lists the words. It answers any number of turns in any number of threads, so somebody can
click around in a client without a scenario of his own.
"""

import re
from collections.abc import Mapping
from typing import Any

from harness.model.model import Call, ScriptedModel
from harness.model.script import ModelStep
from harness.model.wire import asking
from harness.model.wire.responses import ResponsesEncoder
from harness.protocol.values import arr, obj

COMPACT_TOKENS = 100_000
"""The limit of the context's tokens at which the server compacts the history."""
WORDS: Mapping[str, str] = {
    "echo": "say the prompt back, in several deltas; also without any of these words",
    "tool": "run a harmless command",
    "approval": "run a command that needs the user's approval",
    "long": "say many deltas, for two seconds",
    "failing": "fail the turn",
    "compacting": "run a command, then compact the history",
}
_WORD = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)
_LONG_DELTAS = 200
_PAUSE_SECONDS = 0.01
_MAX_ECHO_DELTAS = 50
_MAX_OUTPUT_CHARACTERS = 500
_SUMMARY = "The default script's summary of what was said."
_COMMAND = "echo hello from the default script"


class DefaultModel(ScriptedModel):
    """Model whose answer to a call follows from the call alone."""

    def __init__(self) -> None:
        super().__init__([], ResponsesEncoder())

    def _assign(self, body: dict[str, Any]) -> tuple[Call, ModelStep]:
        step = ModelStep.model_validate(answer_to(body))
        call = Call(number=len(self.calls) + 1, body=body, thread="", index=0, step=step)
        self.calls.append(call)
        return call, step


def answer_to(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model step that answers a call, as in a scenario."""
    if not arr(body.get("tools")):
        # A server that makes a summary offers no tools for it.
        return _message(_SUMMARY)
    prompt, output = _last_prompt(body)
    if _SUMMARY in prompt:
        return _message("The history was compacted.")
    match = _WORD.search(prompt)
    word = match[1].lower() if match else "echo"
    if output is not None:
        return _message("The result of the command: ", output[:_MAX_OUTPUT_CHARACTERS])
    match word:
        case "tool":
            return {"reply": [{"run": _COMMAND}]}
        case "approval":
            reason = "the prompt asks for an approval"
            run = {"command": _COMMAND, "escalate": True, "reason": reason}
            return {"reply": [{"run": run}]}
        case "long":
            return {"reply": [{"message": {"deltas": _long_deltas()}}]}
        case "failing":
            return {"fail": {"status": 400, "message": "the prompt says that the turn fails"}}
        case "compacting":
            return {"reply": [{"run": _COMMAND}, {"usage": {"input": COMPACT_TOKENS}}]}
        case _:
            return _message(*_pieces(prompt))


def _message(*deltas: str) -> dict[str, Any]:
    return {"reply": [{"message": {"deltas": list(deltas)}}]}


def _pieces(prompt: str) -> list[str]:
    """Return a text as deltas of one or more words."""
    words = re.findall(r"\s*\S+\s*", prompt) or [prompt or "(an empty prompt)"]
    size = -(-len(words) // _MAX_ECHO_DELTAS)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _long_deltas() -> list[Any]:
    pause = {"delay": {"seconds": _PAUSE_SECONDS}}
    texts = [f"This is sentence {number}. " for number in range(1, _LONG_DELTAS + 1)]
    return [delta for sentence in texts for delta in (sentence, pause)]


def _last_prompt(body: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text of the last user message, and the output of the last tool after it."""
    output: str | None = None
    entries = [] if isinstance(body.get("input"), str) else arr(body.get("input"))
    for entry in map(obj, reversed(entries)):
        if entry.get("role") == "user":
            return "\n".join(asking.user_texts({"input": [entry]})), output
        if output is None:
            output = next(iter(asking.outputs({"input": [entry]}).values()), None)
    return "\n".join(asking.user_texts(body)), output
