"""Rules on the options, the input and the environment that an SDK passes to the agent's binary.

The specification shows only for `config` by which arguments a value is passed; for all others the
rules check that the value arrives.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from harness.judge.base import Outcome, Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import (
    SdkRule,
    agent_start,
    argv,
    env,
    option,
    reached_agent,
    schema_reached_agent,
    turn_option,
)
from harness.judge.rules.shared.violations import Member, root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.sdk_options import LISTED_VALUES
from harness.protocol.values import MISSING, arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call

# The options whose value is a string: owner, name, requirement.
TEXT_OPTIONS: Final = (
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

    The binary is the scripted agent. Left open: how often it starts, whether a process serves
    several turns, other programs started beside it, and whether a value that the specification does
    not list is refused before anything is started.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        if obj(call.request.json).get("abort") == "before" or call.number != 1:
            return
        if option(call, "agent", "agentPathOverride") is None:
            return
        if call.starts:
            yield Witness(call.subject, call.frames)
            return
        if obj(end.json).get("over") == "error" and _has_unlisted_value(call):
            return
        path = root_member(call.driver, "agent", "agentPathOverride")
        expected = "the agent was started; it never was"
        over, clauses = root_member(end, "over"), ("sdk-client.path",)
        yield wrong(call.subject, call.frames, over, expected, also=(path,), clauses=clauses)


def _has_unlisted_value(call: Call) -> bool:
    values = {name: option(call, "thread", name) for name in LISTED_VALUES}
    return any(
        value is not None and value not in LISTED_VALUES[name] for name, value in values.items()
    )


@rule(
    "sdk-child.options",
    title="The values of the options reach the agent",
    level=Level.MUST,
    surface="sdk",
)
class Options(SdkRule):
    """Judges each option whose value is a string: the agent gets it at its start.

    It may be in its arguments, its environment, its input or be its current directory. Options of
    the thread are judged in its first turn. Left open: which argument or variable, later turns,
    resumed threads, and the effect of an unlisted value.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start = agent_start(call)
        if start is None:
            return
        first = call.number == 1 and obj(call.driver.json).get("resume") is None
        for owner, name, clause in TEXT_OPTIONS:
            value = option(call, owner, name)
            if isinstance(value, str) and value and (owner == "agent" or first):
                field = root_member(call.driver, owner, name)
                yield _judge_arrival(
                    call, start, value, field, clause, arrived=reached_agent(call, value)
                )
        folders = arr(option(call, "thread", "additionalDirectories")) if first else []
        for place, folder in enumerate(folders):
            field = root_member(call.driver, "thread", "additionalDirectories", place)
            arrived = reached_agent(call, text(folder))
            yield _judge_arrival(
                call, start, folder, field, "sdk-thread-options.directories", arrived=arrived
            )


def _judge_arrival(
    call: Call, start: Member, value: Any, field: Member, clause: str, *, arrived: bool
) -> Outcome:
    if arrived:
        return Witness(f"{call.subject}, {field.name}", call.frames)
    expected = f"{literal(value)} in the agent's words, environment, input or folder"
    return wrong(
        f"{call.subject}, {field.name}",
        call.frames,
        start,
        expected,
        also=(field,),
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

    The agent's arguments or variables must differ, else it cannot know the option. That also holds
    for an SDK whose option is true by default. Left open: how the agent gets it, and an option that
    is false, which may equal the default.
    """

    def begin(self) -> None:
        super().begin()
        self._plain: dict[str, Call] = {}

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        thread = obj(obj(call.driver.json).get("thread"))
        start = agent_start(call)
        if start is None or call.number != 1:
            return
        switches = ("skipGitRepoCheck", "networkAccessEnabled")
        other_options = {key: value for key, value in thread.items() if key not in switches}
        agent = obj(obj(call.driver.json).get("agent"))
        client = {key: value for key, value in agent.items() if key != "agentPathOverride"}
        group = repr((client, other_options, obj(call.request.json).get("input")))
        switched_on = {key: thread[key] for key in switches if thread.get(key) is True}
        if not switched_on:
            self._plain.setdefault(group, call)
            return
        plain = self._plain.get(group)
        if plain is None or len(switched_on) != 1:
            return
        if _words_and_variables(plain) != _words_and_variables(call):
            yield Witness(call.subject, (*plain.frames, *call.frames))
        else:
            name = next(iter(switched_on))
            expected = f"something else than without {name}"
            field = root_member(call.driver, "thread", name)
            frames = (*plain.frames, *call.frames)
            yield wrong(call.subject, frames, start.part("argv"), expected, also=(field,))


def _words_and_variables(call: Call) -> tuple[list[str], dict[str, Any]]:
    return argv(call), env(call)


@rule(
    "sdk-child.input",
    title="The text of the input and the paths of its images reach the agent",
    level=Level.MUST,
    surface="sdk",
)
class InputPassed(SdkRule):
    """Judges the input of each turn: a string, or entries of the types text and local_image.

    Each text is in the agent's input or arguments, each path in its arguments or input, or the end
    of it if it is relative. Left open: how several are combined, and entries of other types.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start = agent_start(call)
        if start is None:
            return
        for field, value in _input_texts(root_member(call.request, "input")):
            arrived = reached_agent(call, value)
            yield _judge_arrival(call, start, value, field, _input_clause(field), arrived=arrived)


def _input_texts(entries: Member) -> Iterator[tuple[Member, str]]:
    if isinstance(entries.value, str):
        yield entries, entries.value
    for place, entry in enumerate(arr(entries.value)):
        for kind, name in (("text", "text"), ("local_image", "path")):
            if obj(entry).get("type") == kind and text(obj(entry).get(name)):
                yield entries.part(place, name), text(obj(entry).get(name))


def _input_clause(entry: Member) -> str:
    last = entry.path[-1]
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
    """Judges outputSchema: its JSON is an argument of the agent, or in a file that one names.

    Left open: the names of the file and of the argument, and whether the file remains afterwards.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        schema, start = turn_option(call, "outputSchema"), agent_start(call)
        if schema is None or start is None:
            return
        field = root_member(call.request, "options", "outputSchema")
        arrived = schema_reached_agent(call, schema)
        yield _judge_arrival(
            call, start, schema, field, "sdk-turn-options.output-schema", arrived=arrived
        )


@rule(
    "sdk-child.config",
    title="config becomes --config overrides with dotted paths",
    level=Level.MUST,
    surface="sdk",
)
class ConfigPassed(SdkRule):
    """Judges each string, number or boolean of config, nested or not: --config, then path=value.

    The path is joined by dots. Left open: spaces, quotes of the value, further overrides, their
    order, keys that need quotes, and values of other types.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        config, start = option(call, "agent", "config"), agent_start(call)
        if start is None or config is None:
            return
        words = argv(call)
        overrides = [next_word for word, next_word in pairwise(words) if word in _CONFIG_FLAGS]
        overrides += [word.partition("=")[2] for word in words if word.startswith("--config=")]
        for path, value in _leaves(obj(config)):
            field = root_member(call.driver, "agent", "config", *path)
            arrived = any(_sets_value(override, ".".join(path), value) for override in overrides)
            yield _judge_arrival(call, start, value, field, "sdk-client.config", arrived=arrived)


_CONFIG_FLAGS: Final = ("--config", "-c")


def _leaves(config: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    # Not recursive: a driver may nest as deeply as JSON can be read.
    tables: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), config)]
    while tables:
        path, table = tables.pop()
        tables += [((*path, key), obj(value)) for key, value in table.items() if obj(value)]
        yield from (
            ((*path, key), value)
            for key, value in table.items()
            if isinstance(value, str | int | float)
        )


def _sets_value(override: str, path: str, value: Any) -> bool:
    key, _, value_text = override.partition("=")
    expected = str(value).lower() if isinstance(value, bool) else str(value)
    return key.strip().replace('"', "") == path and value_text.strip().strip("\"'") == expected


@rule(
    "sdk-child.env",
    title="env is the environment of the agent, and nothing of the process's own",
    level=Level.MUST,
    surface="sdk",
)
class EnvGiven(SdkRule):
    """Judges the agent's variables if env is given: those in it, and none of the driver's own.

    The play sets marker variables in the driver's process. Left open: variables that the SDK sets
    itself, such as for apiKey, and those that a system adds to every process.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        variables, start = option(call, "agent", "env"), agent_start(call)
        if start is None or not isinstance(variables, dict):
            return
        subject, agent_env = call.subject, env(call)
        for name, value in obj(variables).items():
            field = start.part("env", name)
            option_field = root_member(call.driver, "agent", "env", name)
            if agent_env.get(name) == value:
                yield Witness(f"{subject}, {name}", call.frames)
            else:
                yield wrong(
                    f"{subject}, {name}",
                    call.frames,
                    field,
                    literal(value),
                    also=(option_field,),
                    clauses=("sdk-client.env",),
                )
        for name in obj(obj(call.driver.json).get("process")):
            if name in obj(variables):
                continue
            field = start.part("env", name)
            if field.value is MISSING:
                yield Witness(f"{subject}, {name}", call.frames)
            else:
                yield wrong(
                    f"{subject}, {name}",
                    call.frames,
                    field,
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
    """Judges that the agent has the variables that the play set for the driver, without env.

    This follows from the clause on env: SHOULD. sdk-child.key judges PROVIDER_API_KEY.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start = agent_start(call)
        if start is None or option(call, "agent", "env") is not None:
            return
        for name, value in obj(obj(call.driver.json).get("process")).items():
            if name == KEY_VARIABLE:
                continue
            field = start.part("env", name)
            if field.value == value:
                yield Witness(f"{call.subject}, {name}", call.frames)
            else:
                yield wrong(f"{call.subject}, {name}", call.frames, field, literal(value))


KEY_VARIABLE: Final = "PROVIDER_API_KEY"


@rule(
    "sdk-child.key",
    title="Without apiKey the key comes from PROVIDER_API_KEY",
    level=Level.MUST,
    surface="sdk",
)
class KeyFromEnvironment(SdkRule):
    """Judges turns without apiKey and without env, if the driver has PROVIDER_API_KEY.

    The value of that variable reaches the agent, in its environment or its arguments. Left open:
    which takes precedence if both are given.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start, process = agent_start(call), obj(obj(call.driver.json).get("process"))
        key = text(process.get(KEY_VARIABLE))
        if start is None or not key or option(call, "agent", "apiKey") is not None:
            return
        if option(call, "agent", "env") is not None:
            return
        field = root_member(call.driver, "process", KEY_VARIABLE)
        yield _judge_arrival(
            call, start, key, field, "sdk-client.api-key-variable", arrived=reached_agent(call, key)
        )


@rule(
    "sdk-child.key-hidden",
    title="The API key is not among the words of the agent's start",
    level=Level.INFO,
    surface="sdk",
)
class KeyHidden(SdkRule):
    """Judges turns with apiKey: it is in no argument, since every user of a machine can read those.

    The specification does not say how the key reaches the agent; this is the project's choice.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        key, start = option(call, "agent", "apiKey"), agent_start(call)
        if start is None or not isinstance(key, str) or not key:
            return
        for place, word in enumerate(argv(call)):
            if key in word:
                field = start.part("argv", place)
                yield wrong(call.subject, call.frames, field, "nothing of the key")
                return
        yield Witness(call.subject, call.frames)


@rule(
    "sdk-child.resumed",
    title="A later turn passes the thread's id to the agent",
    level=Level.MUST,
    surface="sdk",
)
class Resumed(SdkRule):
    """Judges turns of a resumed thread, and turns after the first: the agent gets the thread's id.

    Left open: by which argument, and a thread whose first turn had no thread_id.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start, earlier = agent_start(call), self.calls.earlier_calls(call)
        thread_ids = [
            text(event.get("thread_id"))
            for earlier_call in earlier
            for event in earlier_call.writes
            if event.get("type") == "thread.started"
        ]
        thread_id = text(obj(call.driver.json).get("resume")) or next(filter(None, thread_ids), "")
        if (
            start is None
            or not thread_id
            or any(earlier_call.starts == [] for earlier_call in earlier)
        ):
            return
        clause = "sdk-thread.consecutive-turns" if earlier else "sdk-agent.resume-thread"
        field = root_member(call.request, "turn") if earlier else root_member(call.driver, "resume")
        yield _judge_arrival(
            call, start, thread_id, field, clause, arrived=reached_agent(call, thread_id)
        )
