"""Choices of an SDK: how it starts the agent, and what its calls give and throw."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Choices, Observer, observes
from harness.judge.ledger.words import filled, kind, word
from harness.protocol.values import MISSING, arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call, Calls
from harness.trace.surfaces import SDK

_RUN, _STREAMED = "run", "runStreamed"
# What may stand between two texts of an input.
_JOINS: Final = {"\n\n": "an empty line", "\n": "a line break", " ": "a space", "": "nothing"}

# Python sets it for itself where no language is set, and the agent of the harness is Python.
_OF_PYTHON: Final = ("LC_CTYPE",)


class CallObserver(Observer):
    """Follows the turns of a play: `over` is asked of each that is over."""

    @property
    def calls(self) -> Calls:
        """The turns so far."""
        found: Calls = self.scene.view
        return found

    @listen(("over", _RUN), ("over", _STREAMED))
    def told(self, frame: Frame) -> Choices:
        """A turn is over."""
        call = self.calls.of(frame)
        return None if call is None else self.over(call, frame)

    def over(self, call: Call, end: Frame) -> Choices:
        """Return the choices of a turn; `end` is the message of its end."""
        raise NotImplementedError


def _client(call: Call, name: str) -> Any:
    return obj(obj(call.driver.json).get("agent")).get(name)


def _thread(call: Call) -> dict[str, Any]:
    return obj(obj(call.driver.json).get("thread"))


def _started(call: Call) -> dict[str, Any]:
    return obj(obj(call.started[0].json).get("started")) if call.started else {}


def _words(call: Call) -> list[str]:
    return [text(one) for one in arr(_started(call).get("argv"))]


def _env(call: Call) -> dict[str, str]:
    return {name: text(value) for name, value in obj(_started(call).get("env")).items()}


def _ending(end: Frame) -> str:
    """Return the end of a call: "resolves", "rejects with an AbortError"."""
    message = obj(end.json)
    if message.get("over") != "error":
        return "resolves" if message.get("over") == "result" else "ends"
    return f"throws {word(obj(message.get('error')).get('name', MISSING))}"


def _aborted(call: Call) -> str:
    return text(obj(call.asked.json).get("abort"))


@observes("sdk-child.way", "sdk-input.joined", "sdk-input.image-base", surface=SDK)
class Input(CallObserver):
    """The way of the input to the agent."""

    def over(self, call: Call, end: Frame) -> Iterator[Choice]:
        """One turn that was started."""
        if not call.started:
            return
        start, words, stdin = call.started[0], _words(call), text(_started(call).get("stdin"))
        first = words[0] if words and not words[0].startswith("-") else "no word"
        yield Choice("sdk-child.way", word(first), start, "the first word")
        asked = obj(call.asked.json).get("input")
        entries = [{"type": "text", "text": asked}] if isinstance(asked, str) else arr(asked)
        texts = [text(obj(one).get("text")) for one in entries if obj(one).get("type") == "text"]
        if any(texts):
            whole = all(one in stdin for one in texts)
            among = any(one in given for one in texts if one for given in words)
            said = "standard input" if whole else "its words" if among else "neither"
            yield Choice("sdk-child.way", said, start, "where the input is")
        if len(texts) > 1:
            where = stdin if texts[0] in stdin else " ".join(words)
            said = next((name for join, name in _JOINS.items() if join.join(texts) in where), "")
            yield Choice("sdk-input.joined", said or "something else", start)
        for one in entries:
            path = text(obj(one).get("path"))
            if path and not path.startswith("/"):
                absolute = any(given.startswith("/") and given.endswith(path) for given in words)
                said = "as it was given" if path in words else "made absolute" if absolute else ""
                yield Choice("sdk-input.image-base", said or "not among its words", start)


@observes(
    "sdk-client.base-url-way",
    "sdk-client.own-variables",
    "sdk-client.config-values",
    "sdk-client.config-keys",
    "sdk-client.config-order",
    surface=SDK,
)
class ClientOptions(CallObserver):
    """The way of the client's options to the agent."""

    def over(self, call: Call, end: Frame) -> Iterator[Choice]:
        """One turn that was started."""
        if not call.started:
            return
        start, words, env = call.started[0], _words(call), _env(call)
        for option, point, about in (
            ("baseUrl", "sdk-client.base-url-way", ""),
            ("apiKey", "sdk-client.own-variables", "for apiKey"),
        ):
            value = text(_client(call, option))
            if value:
                yield Choice(point, _carried(value, words, env), start, about)
        own = env.keys() - obj(_client(call, "env")).keys()
        own -= {*obj(obj(call.driver.json).get("process")), *_OF_PYTHON}
        given = {text(_client(call, name)) for name in ("baseUrl", "apiKey")}
        marks = sorted(name for name in own if env[name] and env[name] not in given)
        yield Choice("sdk-client.own-variables", ", ".join(map(word, marks)) or "none", start)
        yield from self._config(call, start, words)

    def _config(self, call: Call, start: Frame, words: list[str]) -> Iterator[Choice]:
        config = obj(_client(call, "config"))
        for key, value in config.items():
            found = [one for one in words if one.partition("=")[0] == key and "=" in one]
            option = _thread(call).get(key)
            if isinstance(option, str) and found:
                rest = words[words.index(found[0]) :]
                last = "the option comes last" if option in rest else "the override comes last"
                yield Choice("sdk-client.config-order", last, start)
                continue
            if isinstance(value, dict | list):
                continue
            yield Choice("sdk-client.config-keys", "passed on" if found else "left out", start)
            if found:
                written = found[0].partition("=")[2]
                yield Choice(
                    "sdk-client.config-values", _quoted(value, written), start, kind(value)
                )


def _carried(value: str, words: list[str], env: dict[str, str]) -> str:
    """Return what holds a value: "the variable NAME", "the override NAME", "a word of its own"."""
    named = [f"the variable {word(name)}" for name, one in env.items() if one == value]
    for one in words:
        key, equals, rest = one.partition("=")
        if value in rest and equals and not key.startswith("-"):
            named.append(f"the override {word(key)}")
        elif value == one:
            named.append("a word of its own")
    return ", ".join(sorted(set(named))) or "nothing"


def _quoted(value: Any, written: str) -> str:
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

    def over(self, call: Call, end: Frame) -> Iterator[Choice]:
        """One turn."""
        efforts = ("minimal", "low", "medium", "high", "xhigh")
        effort = text(_thread(call).get("modelReasoningEffort"))
        if effort and effort not in efforts:
            passed = any(effort in one for one in _words(call))
            said = "passed on" if passed else "left out" if call.started else _ending(end)
            yield Choice("sdk-thread-options.unknown", said, end)
        model = text(_thread(call).get("model"))
        if not call.started or not model:
            return
        said = "passed on" if model in _words(call) else "not passed on"
        if obj(call.driver.json).get("resume") is not None:
            yield Choice("sdk-agent.resume-options", said, call.started[0])
        elif call.number > 1:
            yield Choice("sdk-thread-options.every-turn", said, call.started[0])


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
    """Results and errors of a call, by what the agent wrote."""

    def over(self, call: Call, end: Frame) -> Iterator[Choice]:
        """One turn."""
        known = obj(end.json).get("threadId")
        when = "named by the agent" if self._named(call) else "not named yet"
        # How much an aborted call has read before is chance.
        if _aborted(call) != "during":
            yield Choice("sdk-thread.transitions", kind(known), end, f"the id, {when}")
        if _aborted(call):
            return
        types = [text(one.get("type")) for one in call.writes]
        result = obj(obj(end.json).get("result"))
        if result and not self._said(call):
            yield Choice("sdk-result.no-message", filled(result.get("finalResponse")), end)
        how = text(obj(call.asked.json).get("call"))
        if how == _RUN and not {"turn.completed", "turn.failed", "error"} & {*types}:
            usage = kind(result.get("usage", MISSING))
            yield Choice("sdk-result.usage-null", usage if result else _ending(end), end)
        if "turn.failed" in types:
            yield from self._failed(call, end, how)
        elif "error" in types:
            goes_on = "turn.completed" in types
            point = "sdk-event.retries" if goes_on else "sdk-event.failed-after-error"
            yield Choice(point, _ending(end), end, how)

    def _failed(self, call: Call, end: Frame, how: str) -> Iterator[Choice]:
        written = [one for one in call.writes if one.get("type") == "turn.failed"]
        said = text(obj(written[0].get("error")).get("message"))
        if how == _STREAMED:
            yield Choice("sdk-errors.streamed-throws", _ending(end), end)
            return
        thrown = text(obj(obj(end.json).get("error")).get("message"))
        same = "the words of turn.failed" if thrown == said else "those words and more"
        yield Choice("sdk-errors.messages", same if said in thrown else "its own words", end)

    def _named(self, call: Call) -> bool:
        before = [*self.calls.earlier(call), call]
        resumed = obj(call.driver.json).get("resume") is not None
        return resumed or any(
            one.get("type") == "thread.started" for each in before for one in each.writes
        )

    def _said(self, call: Call) -> bool:
        return any(obj(one.get("item")).get("type") == "agent_message" for one in call.writes)


@observes("sdk-abort.streamed", "sdk-abort.beforehand", surface=SDK)
class Aborts(CallObserver):
    """Effects of an aborted call."""

    def over(self, call: Call, end: Frame) -> Iterator[Choice]:
        """One turn whose signal was aborted."""
        how = text(obj(call.asked.json).get("call"))
        if _aborted(call) == "before":
            started = "the agent is started" if call.started else "nothing is started"
            yield Choice("sdk-abort.beforehand", f"{_ending(end)}, {started}", end, how)
        elif _aborted(call) == "during" and how == _STREAMED:
            yield Choice("sdk-abort.streamed", _ending(end), end)
