"""Parser of a typed line: a request, a raw message, an answer, or a command."""

import json
import re
from dataclasses import dataclass
from typing import Any

from harness.cli.connect.fields import DECISIONS, Fields
from harness.errors import UsageError
from harness.protocol.values import obj
from harness.trace.nearest import nearest

COMMANDS = {
    ":answer": "JSON: answer the oldest question with this result; :answer error TEXT refuses it",
    ":fields": "METHOD: the members of its params, by the book",
    ":gate": "NAME: open a gate of the model's script; without a name those that are waited at",
    ":help": "these commands",
    ":model": "what the model says next; :model say TEXT, run COMMAND, or SCENARIO",
    ":quit": "end the server, judge what it still owes, and say what was found (Ctrl-D)",
    ":restart": "end the server and start it again over the same home",
    ":save": "FILE: write the trace, for harness check and harness show",
    ":show": "the last messages; :show N the whole message N; :show findings",
    ":stderr": "the end of what the server wrote to standard error",
    ":wait": "until nothing is under way, or the server asks something",
}
# Abbreviation in a request -> its meaning.
SHORT = {"text": "input: [{type: text, text: …}]"}
_PAIR = re.compile(r"([A-Za-z_][\w.]*)=")


@dataclass(frozen=True, slots=True)
class Request:
    """A request by its method; `params` is None if none were given."""

    method: str
    params: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Raw:
    """A line that is sent as it is."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to the oldest question: a decision, a result, or a refusal."""

    decision: str = ""
    result: Any = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the text after it."""

    name: str
    rest: str


Line = Request | Raw | Answer | Command


def parse_line(line: str, fields: Fields) -> Line | None:
    """Parse a line; None if it is empty or a comment. Raises `UsageError` if it is not valid."""
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    if line.startswith(":"):
        return _command(line)
    if line.startswith("{"):
        return Raw(line.encode("utf-8", "surrogateescape"))
    if line in DECISIONS:
        return Answer(decision=line)
    method, _, rest = line.partition(" ")
    if method not in fields.methods and "/" not in method:
        known_words = [*fields.methods, *DECISIONS, *COMMANDS]
        near = nearest(method, known_words) or nearest(f":{method}", known_words)
        hint = f"did you mean {near}?" if near else "Tab lists the methods, :help the commands"
        raise UsageError(f"{method!r} is no method, answer or command; {hint}")
    return Request(method, params_of(rest.strip()))


def params_of(text: str) -> dict[str, Any] | None:
    """Parse params: a JSON object, or `name=value` pairs; None if there are none.

    Raises `UsageError` for any other text.
    """
    if not text:
        return None
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(
                f"the params are no JSON: {error.msg} at character {error.pos + 1}"
            ) from error
        except RecursionError:
            raise UsageError("the params are nested too deep") from None
        return obj(value)
    pairs = list(_PAIR.finditer(text))
    pairs = [pair for pair in pairs if pair.start() == 0 or text[pair.start() - 1] == " "]
    if not pairs or pairs[0].start():
        raise UsageError(f"{text[:60]!r}: expected a JSON object, or name=value pairs")
    params: dict[str, Any] = {}
    for index, pair in enumerate(pairs):
        end = pairs[index + 1].start() if index + 1 < len(pairs) else len(text)
        _put(params, pair[1], text[pair.end() : end].strip())
    return params


def _put(params: dict[str, Any], name: str, written: str) -> None:
    if name == "text":
        value = _value(written)
        words = value if isinstance(value, str) else written
        params["input"] = [{"type": "text", "text": words}]
        return
    *above, last = name.split(".")
    for step in above:
        params = params.setdefault(step, {})
        if not isinstance(params, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{name}: {step} has a value already, and is no object")
    params[last] = _value(written)


def _value(written: str) -> Any:
    """Return the parsed JSON, or the text itself if it is not valid JSON."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def _command(line: str) -> Command | Answer:
    name, _, rest = line.partition(" ")
    rest = rest.strip()
    full = [command for command in COMMANDS if command.startswith(name)]
    if name not in COMMANDS and len(full) == 1 and len(name) > 1:
        name = full[0]
    if name not in COMMANDS:
        near = nearest(name, COMMANDS)
        hint = f"did you mean {near}?" if near else ":help lists them"
        raise UsageError(f"{name} is no command; {hint}")
    if name != ":answer":
        return Command(name, rest)
    if rest.startswith("error"):
        return Answer(refusal=rest.removeprefix("error").strip() or "refused by hand")
    if rest in DECISIONS:
        return Answer(decision=rest)
    try:
        return Answer(result=json.loads(rest))
    except ValueError as error:
        raise UsageError(f":answer: expected the result as JSON, or a decision: {error}") from error
