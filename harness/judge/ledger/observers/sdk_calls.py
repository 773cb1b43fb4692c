"""Choices of an SDK: the start of the agent, and the results and errors of its calls."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Choices, Observer, observes
from harness.judge.ledger.words import type_word, word
from harness.protocol.spec.sdk_options import LISTED_VALUES
from harness.protocol.values import MISSING, arr, json_type, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call, Calls
from harness.trace.surfaces import SDK

_RUN, _STREAMED = "run", "runStreamed"
# Names of the separators between two texts of an input.
_SEPARATORS: Final = {"\n\n": "an empty line", "\n": "a line break", " ": "a space", "": "nothing"}

# Python sets these if no language is set, and the scripted agent is a Python program.
_PYTHON_VARIABLES: Final = ("LC_CTYPE",)


class CallObserver(Observer):
    """An observer of the calls of a play: `on_call_ended` handles the end of each."""

    @property
    def calls(self) -> Calls:
        """The turns so far."""
        view: Calls = self.scene.view
        return view

    @listen(("over", _RUN), ("over", _STREAMED))
    def on_end(self, frame: Frame) -> Choices:
        """Return the choices of a call that has ended, None if its start is unknown."""
        call = self.calls.call_of(frame)
        return None if call is None else self.on_call_ended(call, frame)

    def on_call_ended(self, call: Call, end: Frame) -> Choices:
        """Return the choices of a call; `end` is the message of its end."""
        raise NotImplementedError


def _client(call: Call, name: str) -> Any:
    return obj(obj(call.driver.json).get("agent")).get(name)


def _thread(call: Call) -> dict[str, Any]:
    return obj(obj(call.driver.json).get("thread"))


def _start(call: Call) -> dict[str, Any]:
    return obj(obj(call.starts[0].json).get("started")) if call.starts else {}


def _words(call: Call) -> list[str]:
    return [text(word) for word in arr(_start(call).get("argv"))]


def _env(call: Call) -> dict[str, str]:
    return {name: text(value) for name, value in obj(_start(call).get("env")).items()}


def _ending(end: Frame) -> str:
    """Return the end of a call: "resolves", "ends" (a stream) or "throws AbortError"."""
    message = obj(end.json)
    if message.get("over") != "error":
        return "resolves" if message.get("over") == "result" else "ends"
    return f"throws {word(obj(message.get('error')).get('name', MISSING))}"


def _abort_time(call: Call) -> str:
    return text(obj(call.request.json).get("abort"))


@observes("sdk-child.way", "sdk-input.joined", "sdk-input.image-base", surface=SDK)
class Input(CallObserver):
    """The ways by which the input reaches the agent."""

    def on_call_ended(self, call: Call, end: Frame) -> Iterator[Choice]:
        """Yield the carrier of the input, the joint of its texts, and the paths of images."""
        if not call.starts:
            return
        start, words, stdin = call.starts[0], _words(call), text(_start(call).get("stdin"))
        first = words[0] if words and not words[0].startswith("-") else "no word"
        yield Choice("sdk-child.way", word(first), start, "the first word")
        call_input = obj(call.request.json).get("input")
        entries = (
            [{"type": "text", "text": call_input}]
            if isinstance(call_input, str)
            else arr(call_input)
        )
        texts = [
            text(obj(entry).get("text")) for entry in entries if obj(entry).get("type") == "text"
        ]
        if any(texts):
            on_stdin = all(user_text in stdin for user_text in texts)
            in_words = any(
                user_text in given for user_text in texts if user_text for given in words
            )
            value = "standard input" if on_stdin else "its words" if in_words else "neither"
            yield Choice("sdk-child.way", value, start, "where the input is")
        if len(texts) > 1:
            carrier = stdin if texts[0] in stdin else " ".join(words)
            value = next(
                (name for join, name in _SEPARATORS.items() if join.join(texts) in carrier), ""
            )
            yield Choice("sdk-input.joined", value or "something else", start)
        for entry in entries:
            path = text(obj(entry).get("path"))
            if path and not path.startswith("/"):
                absolute = any(given.startswith("/") and given.endswith(path) for given in words)
                value = "as it was given" if path in words else "made absolute" if absolute else ""
                yield Choice("sdk-input.image-base", value or "not among its words", start)


@observes(
    "sdk-client.base-url-way",
    "sdk-client.own-variables",
    "sdk-client.config-values",
    "sdk-client.config-keys",
    "sdk-client.config-order",
    surface=SDK,
)
class ClientOptions(CallObserver):
    """The ways by which the client's options reach the agent."""

    def on_call_ended(self, call: Call, end: Frame) -> Iterator[Choice]:
        """Yield the carriers of the base URL and key, other variables, and config overrides."""
        if not call.starts:
            return
        start, words, env = call.starts[0], _words(call), _env(call)
        for option, point, situation in (
            ("baseUrl", "sdk-client.base-url-way", ""),
            ("apiKey", "sdk-client.own-variables", "for apiKey"),
        ):
            value = text(_client(call, option))
            if value:
                yield Choice(point, _carriers(value, words, env), start, situation)
        own = env.keys() - obj(_client(call, "env")).keys()
        own -= {*obj(obj(call.driver.json).get("process")), *_PYTHON_VARIABLES}
        given = {text(_client(call, name)) for name in ("baseUrl", "apiKey")}
        marks = sorted(name for name in own if env[name] and env[name] not in given)
        yield Choice("sdk-client.own-variables", ", ".join(map(word, marks)) or "none", start)
        yield from self._config(call, start, words)

    def _config(self, call: Call, start: Frame, words: list[str]) -> Iterator[Choice]:
        config = obj(_client(call, "config"))
        for key, value in config.items():
            matching = [
                argument
                for argument in words
                if argument.partition("=")[0] == key and "=" in argument
            ]
            option = _thread(call).get(key)
            if isinstance(option, str) and matching:
                rest = words[words.index(matching[0]) :]
                last = "the option comes last" if option in rest else "the override comes last"
                yield Choice("sdk-client.config-order", last, start)
                continue
            if isinstance(value, dict | list):
                continue
            yield Choice("sdk-client.config-keys", "passed on" if matching else "left out", start)
            if matching:
                written = matching[0].partition("=")[2]
                yield Choice(
                    "sdk-client.config-values", _quotes(value, written), start, json_type(value)
                )


def _carriers(value: str, words: list[str], env: dict[str, str]) -> str:
    """Return the carriers of a value: "the override KEY, the variable NAME"; "nothing" for none."""
    carriers = [f"the variable {word(name)}" for name, item in env.items() if item == value]
    for argument in words:
        key, equals, rest = argument.partition("=")
        if value in rest and equals and not key.startswith("-"):
            carriers.append(f"the override {word(key)}")
        elif value == argument:
            carriers.append("a word of its own")
    return ", ".join(sorted(set(carriers))) or "nothing"


def _quotes(value: Any, written: str) -> str:
    if not isinstance(value, str):
        return "plain"
    if written == value:
        return "as it is"
    quote = written[:1] if written[:1] == written[-1:] else ""
    return {'"': "in double quotes", "'": "in single quotes"}.get(quote, "in another form")


@observes(
    "sdk-thread-options.unknown",
    "sdk-thread-options.every-turn",
    "sdk-agent.resume-options",
    surface=SDK,
)
class ThreadOptions(CallObserver):
    """The effect of a thread's options."""

    def on_call_ended(self, call: Call, end: Frame) -> Iterator[Choice]:
        """Yield whether an unknown effort, and the model, are passed on to the agent."""
        effort = text(_thread(call).get("modelReasoningEffort"))
        if effort and effort not in LISTED_VALUES["modelReasoningEffort"]:
            passed = any(effort in word for word in _words(call))
            value = "passed on" if passed else "left out" if call.starts else _ending(end)
            yield Choice("sdk-thread-options.unknown", value, end)
        model = text(_thread(call).get("model"))
        if not call.starts or not model:
            return
        value = "passed on" if model in _words(call) else "not passed on"
        if obj(call.driver.json).get("resume") is not None:
            yield Choice("sdk-agent.resume-options", value, call.starts[0])
        elif call.number > 1:
            yield Choice("sdk-thread-options.every-turn", value, call.starts[0])


@observes(
    "sdk-result.no-message",
    "sdk-result.usage-null",
    "sdk-thread.transitions",
    "sdk-errors.messages",
    "sdk-errors.streamed-throws",
    "sdk-event.retries",
    "sdk-event.failed-after-error",
    surface=SDK,
)
class Results(CallObserver):
    """Results and errors of a call, depending on the events that the agent wrote."""

    def on_call_ended(self, call: Call, end: Frame) -> Iterator[Choice]:
        """Yield the type of the thread id, and choices shown by the result or error.

        Of a call aborted beforehand, yield only the type; of one aborted while it runs, nothing.
        """
        thread_id = obj(end.json).get("threadId")
        situation = "named by the agent" if self._has_thread(call) else "not named yet"
        # An aborted call may or may not have read the event with the id.
        if _abort_time(call) != "during":
            yield Choice(
                "sdk-thread.transitions", json_type(thread_id), end, f"the id, {situation}"
            )
        if _abort_time(call):
            return
        types = [text(event.get("type")) for event in call.writes]
        result = obj(obj(end.json).get("result"))
        if result and not self._has_message(call):
            yield Choice("sdk-result.no-message", type_word(result.get("finalResponse")), end)
        method = text(obj(call.request.json).get("call"))
        if method == _RUN and not {"turn.completed", "turn.failed", "error"} & {*types}:
            usage = json_type(result.get("usage", MISSING))
            yield Choice("sdk-result.usage-null", usage if result else _ending(end), end)
        if "turn.failed" in types:
            yield from self._failure(call, end, method)
        elif "error" in types:
            goes_on = "turn.completed" in types
            point = "sdk-event.retries" if goes_on else "sdk-event.failed-after-error"
            yield Choice(point, _ending(end), end, method)

    def _failure(self, call: Call, end: Frame, method: str) -> Iterator[Choice]:
        failures = [event for event in call.writes if event.get("type") == "turn.failed"]
        message = text(obj(failures[0].get("error")).get("message"))
        if method == _STREAMED:
            yield Choice("sdk-errors.streamed-throws", _ending(end), end)
            return
        thrown = text(obj(obj(end.json).get("error")).get("message"))
        same = "the words of turn.failed" if thrown == message else "those words and more"
        yield Choice("sdk-errors.messages", same if message in thrown else "its own words", end)

    def _has_thread(self, call: Call) -> bool:
        before = [*self.calls.earlier_calls(call), call]
        resumed = obj(call.driver.json).get("resume") is not None
        return resumed or any(
            event.get("type") == "thread.started" for each in before for event in each.writes
        )

    def _has_message(self, call: Call) -> bool:
        return any(obj(event.get("item")).get("type") == "agent_message" for event in call.writes)


@observes("sdk-abort.streamed", "sdk-abort.beforehand", surface=SDK)
class Aborts(CallObserver):
    """Effects of an aborted call."""

    def on_call_ended(self, call: Call, end: Frame) -> Iterator[Choice]:
        """Yield the end of a call aborted beforehand, with whether the agent was started.

        Of calls aborted while they run, yield only the end of a streamed one.
        """
        method = text(obj(call.request.json).get("call"))
        if _abort_time(call) == "before":
            started = "the agent is started" if call.starts else "nothing is started"
            yield Choice("sdk-abort.beforehand", f"{_ending(end)}, {started}", end, method)
        elif _abort_time(call) == "during" and method == _STREAMED:
            yield Choice("sdk-abort.streamed", _ending(end), end)
