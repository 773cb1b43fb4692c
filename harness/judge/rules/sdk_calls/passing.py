"""Rules on what an SDK passes on to the agent's binary: options, input, environment.

By which words or variables a value gets there the text shows for `config` alone; of all others it
is asked whether the value is there.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from harness.judge.base import Outcome, Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import (
    SdkRule,
    argv,
    env,
    given,
    option,
    reached,
    schema_reached,
    turn_option,
)
from harness.judge.rules.shared.violations import Member, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call

# The options whose value is a text, by whose they are, and the requirement of each.
TEXTS: Final = (
    ("agent", "baseUrl", "sdk-client.base-url"),
    ("agent", "apiKey", "sdk-client.api-key"),
    ("thread", "workingDirectory", "sdk-thread-options.working-directory"),
    ("thread", "sandboxMode", "sdk-thread-options.sandbox-mode"),
    ("thread", "model", "sdk-thread-options.model"),
    ("thread", "modelReasoningEffort", "sdk-thread-options.effort"),
    ("thread", "webSearchMode", "sdk-thread-options.web-search"),
    ("thread", "approvalPolicy", "sdk-thread-options.approval"),
)


@rule(
    "sdk-child.started",
    title="A turn starts the binary that agentPathOverride names",
    level=Level.MUST,
    surface="sdk",
)
class Started(SdkRule):
    """Judges the first turn of a thread, unless it was aborted beforehand: the agent was started.

    The binary is the scripted agent. Left open: how often it is started, whether a process serves
    several turns, and what is started beside it.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        if obj(call.asked.json).get("abort") == "before" or call.number != 1:
            return
        if option(call, "agent", "agentPathOverride") is None:
            return
        if call.started:
            yield Witness(call.subject, call.frames)
            return
        path = whole(call.driver, "agent", "agentPathOverride")
        expected = "the agent was started; it never was"
        yield wrong(call.subject, call.frames, whole(over, "over"), expected, also=(path,))


@rule(
    "sdk-child.options",
    title="What the options say reaches the agent",
    level=Level.MUST,
    surface="sdk",
)
class Options(SdkRule):
    """Judges each option whose value is a text: it stands in what the agent was started with.

    In its words, its environment, its input or as its current directory. Those of the thread are
    judged in its first turn. Left open: which word or variable, later turns, resumed threads, and
    what becomes of a value that the text does not list.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start = given(call)
        if start is None:
            return
        first = call.number == 1 and obj(call.driver.json).get("resume") is None
        for whose, name, clause in TEXTS:
            value = option(call, whose, name)
            if isinstance(value, str) and value and (whose == "agent" or first):
                asked = whole(call.driver, whose, name)
                yield _arrived(call, start, value, asked, clause, there=reached(call, value))
        folders = arr(option(call, "thread", "additionalDirectories")) if first else []
        for place, folder in enumerate(folders):
            asked = whole(call.driver, "thread", "additionalDirectories", place)
            there = reached(call, text(folder))
            yield _arrived(
                call, start, folder, asked, "sdk-thread-options.directories", there=there
            )


def _arrived(
    call: Call, start: Member, value: Any, asked: Member, clause: str, *, there: bool
) -> Outcome:
    if there:
        return Witness(f"{call.subject}, {asked.name}", call.frames)
    expected = f"{literal(value)} somewhere in what the agent is started with"
    return wrong(
        f"{call.subject}, {asked.name}",
        call.frames,
        start,
        expected,
        also=(asked,),
        clauses=(clause,),
    )


@rule(
    "sdk-child.switches",
    title="skipGitRepoCheck and networkAccessEnabled reach the agent",
    level=Level.MUST,
    surface="sdk",
)
class Switches(SdkRule):
    """Judges turns of two threads that differ in a boolean option alone.

    The agent cannot do what it is not told: its words or variables differ. That holds as well for
    an SDK whose option is true where it is left out. Left open: how the agent is told, and an
    option that is false, which may be the same as one that is left out.
    """

    def begin(self) -> None:
        super().begin()
        self._plain: dict[str, Call] = {}

    def turn(self, call: Call, over: Frame) -> Outcomes:
        thread = obj(obj(call.driver.json).get("thread"))
        start = given(call)
        if start is None or call.number != 1:
            return
        switches = ("skipGitRepoCheck", "networkAccessEnabled")
        rest = {key: value for key, value in thread.items() if key not in switches}
        agent = obj(obj(call.driver.json).get("agent"))
        client = {key: value for key, value in agent.items() if key != "agentPathOverride"}
        likeness = repr((client, rest, obj(call.asked.json).get("input")))
        said = {key: thread[key] for key in switches if thread.get(key) is True}
        if not said:
            self._plain.setdefault(likeness, call)
            return
        plain = self._plain.get(likeness)
        if plain is None or len(said) != 1:
            return
        if _told(plain) != _told(call):
            yield Witness(call.subject, (*plain.frames, *call.frames))
        else:
            name = next(iter(said))
            expected = f"something else than without {name}"
            asked = whole(call.driver, "thread", name)
            frames = (*plain.frames, *call.frames)
            yield wrong(call.subject, frames, start.part("argv"), expected, also=(asked,))


def _told(call: Call) -> tuple[list[str], dict[str, Any]]:
    return argv(call), env(call)


@rule(
    "sdk-child.input",
    title="The text of the input and the paths of its images reach the agent",
    level=Level.MUST,
    surface="sdk",
)
class InputPassed(SdkRule):
    """Judges the input of each turn: a string, or entries of the types text and local_image.

    Each text stands in the agent's input or words, each path in its words or input, or the end of
    it where it is relative. Left open: how several are put together, and entries of other types.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start = given(call)
        if start is None:
            return
        for where, value in _inputs(whole(call.asked, "input")):
            arrived = reached(call, value)
            yield _arrived(call, start, value, where, _clause(where), there=arrived)


def _inputs(where: Member) -> Iterator[tuple[Member, str]]:
    if isinstance(where.value, str):
        yield where, where.value
    for place, entry in enumerate(arr(where.value)):
        for kind, name in (("text", "text"), ("local_image", "path")):
            if obj(entry).get("type") == kind and text(obj(entry).get(name)):
                yield where.part(place, name), text(obj(entry).get(name))


def _clause(where: Member) -> str:
    last = where.path[-1]
    return {"path": "sdk-input.local-image", "text": "sdk-input.text"}.get(
        str(last), "sdk-input.forms"
    )


@rule(
    "sdk-child.schema",
    title="The output schema reaches the agent",
    level=Level.MUST,
    surface="sdk",
)
class SchemaPassed(SdkRule):
    """Judges outputSchema: its JSON is in a file that a word of the agent names, or a word.

    Left open: the name of the file and of the word, and what is left of the file afterwards.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        schema, start = turn_option(call, "outputSchema"), given(call)
        if schema is None or start is None:
            return
        asked = whole(call.asked, "options", "outputSchema")
        there = schema_reached(call, schema)
        yield _arrived(call, start, schema, asked, "sdk-turn-options.output-schema", there=there)


@rule(
    "sdk-child.config",
    title="config becomes --config overrides with dotted paths",
    level=Level.MUST,
    surface="sdk",
)
class ConfigPassed(SdkRule):
    """Judges each text, number or boolean of config, nested or not: --config, then path=value.

    The path is joined by dots. Left open: spaces, quotes of the value, further overrides, their
    order, keys that need quotes, and values of other types.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        config, start = option(call, "agent", "config"), given(call)
        if start is None or config is None:
            return
        words = argv(call)
        overrides = [after for word, after in pairwise(words) if word in _FLAGS]
        overrides += [word.partition("=")[2] for word in words if word.startswith("--config=")]
        for path, value in _leaves(obj(config)):
            asked = whole(call.driver, "agent", "config", *path)
            there = any(_says(one, ".".join(path), value) for one in overrides)
            yield _arrived(call, start, value, asked, "sdk-client.config", there=there)


_FLAGS: Final = ("--config", "-c")


def _leaves(config: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in config.items():
        if isinstance(value, dict):
            yield from (((key, *path), leaf) for path, leaf in _leaves(obj(value)))
        elif isinstance(value, str | int | float):
            yield (key,), value


def _says(override: str, path: str, value: Any) -> bool:
    key, _, said = override.partition("=")
    wanted = str(value).lower() if isinstance(value, bool) else str(value)
    return key.strip().replace('"', "") == path and said.strip().strip("\"'") == wanted


@rule(
    "sdk-child.env",
    title="env is the environment of the agent, and nothing of the process's own",
    level=Level.MUST,
    surface="sdk",
)
class EnvGiven(SdkRule):
    """Judges the agent's variables where env is given: those in it, and none that marks ours.

    The play sets variables of the driver's own process to look for. Left open: variables that the
    SDK sets by itself, such as for apiKey, and what a system adds to every process.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        wanted, start = option(call, "agent", "env"), given(call)
        if start is None or not isinstance(wanted, dict):
            return
        subject, there = call.subject, env(call)
        for name, value in obj(wanted).items():
            where = start.part("env", name)
            asked = whole(call.driver, "agent", "env", name)
            if there.get(name) == value:
                yield Witness(f"{subject}, {name}", call.frames)
            else:
                yield wrong(
                    f"{subject}, {name}",
                    call.frames,
                    where,
                    literal(value),
                    also=(asked,),
                    clauses=("sdk-client.env",),
                )
        for name in obj(obj(call.driver.json).get("process")):
            if name in obj(wanted):
                continue
            where = start.part("env", name)
            if where.value is MISSING:
                yield Witness(f"{subject}, {name}", call.frames)
            else:
                yield wrong(
                    f"{subject}, {name}",
                    call.frames,
                    where,
                    "not there, since env is given and the process's own is not inherited",
                    clauses=("sdk-client.env-not-inherited",),
                )


@rule(
    "sdk-child.env-inherited",
    title="Without env the agent has the process's own environment",
    level=Level.SHOULD,
    surface="sdk",
)
class EnvInherited(SdkRule):
    """Judges the variables that the play set for the driver, where env is not given.

    It follows from what is said of env: SHOULD. Of PROVIDER_API_KEY sdk-child.key judges more.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start = given(call)
        if start is None or option(call, "agent", "env") is not None:
            return
        for name, value in obj(obj(call.driver.json).get("process")).items():
            if name == KEY:
                continue
            where = start.part("env", name)
            if where.value == value:
                yield Witness(f"{call.subject}, {name}", call.frames)
            else:
                yield wrong(f"{call.subject}, {name}", call.frames, where, literal(value))


KEY: Final = "PROVIDER_API_KEY"


@rule(
    "sdk-child.key",
    title="Without apiKey the key comes from PROVIDER_API_KEY",
    level=Level.MUST,
    surface="sdk",
)
class KeyFromEnvironment(SdkRule):
    """Judges turns without apiKey and without env, where the driver has that variable.

    Its value reaches the agent, in its environment or its words. Left open: which counts where
    both are given.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start, process = given(call), obj(obj(call.driver.json).get("process"))
        key = text(process.get(KEY))
        if start is None or not key or option(call, "agent", "apiKey") is not None:
            return
        if option(call, "agent", "env") is not None:
            return
        asked = whole(call.driver, "process", KEY)
        yield _arrived(
            call, start, key, asked, "sdk-client.api-key-variable", there=reached(call, key)
        )


@rule(
    "sdk-child.key-hidden",
    title="The API key is not among the words of the agent's start",
    level=Level.INFO,
    surface="sdk",
)
class KeyHidden(SdkRule):
    """Judges turns with apiKey: everybody on the machine can read the words of a process.

    The text does not say how the key reaches the agent: our choice.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        key, start = option(call, "agent", "apiKey"), given(call)
        if start is None or not isinstance(key, str) or not key:
            return
        for place, word in enumerate(argv(call)):
            if key in word:
                where = start.part("argv", place)
                yield wrong(call.subject, call.frames, where, "nothing of the key")
                return
        yield Witness(call.subject, call.frames)


@rule(
    "sdk-child.resumed",
    title="A later turn tells the agent which thread it is of",
    level=Level.MUST,
    surface="sdk",
)
class Resumed(SdkRule):
    """Judges turns of a resumed thread, and turns after the first: the thread's id is there.

    Left open: by which word, and a thread of whose first turn no thread_id came.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start, earlier = given(call), self.calls.earlier(call)
        told = [
            text(event.get("thread_id"))
            for one in earlier
            for event in one.writes
            if event.get("type") == "thread.started"
        ]
        known = text(obj(call.driver.json).get("resume")) or next(filter(None, told), "")
        if start is None or not known or any(one.started == [] for one in earlier):
            return
        clause = "sdk-thread.consecutive-turns" if earlier else "sdk-agent.resume-thread"
        asked = whole(call.asked, "turn") if earlier else whole(call.driver, "resume")
        yield _arrived(call, start, known, asked, clause, there=reached(call, known))
