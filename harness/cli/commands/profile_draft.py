"""A first profile of a server: its settings, tools, names and capabilities, with comments."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from harness.cli.commands.doctor import TURN
from harness.client.target.profile import builtin_names, load_profile
from harness.client.target.settings_files import format_of
from harness.client.target.tomltext import dotted_key, steps_of
from harness.model.tools import BUILT_IN_ROWS
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.run import Run
from harness.play.session.capability_prober import (
    absent_after_probe,
    offered_after_probe,
)
from harness.play.session.server_name import server_name
from harness.play.session.servers import SetupFailed
from harness.protocol.releases import short_release
from harness.protocol.values import arr, obj, text
from harness.scenario.loader import Loaded, load_text

# Intent -> words in a tool's name, the parameters that can hold its main value, and that value.
_TOOL_WORDS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "run": (
        r"exec|shell|bash|terminal|command|run|cmd",
        ("command", "cmd", "script", "line", "commandLine", "input", "code"),
        "command",
    ),
    "patch": (r"patch|diff", ("patch", "input", "diff", "text", "content"), "patch"),
    "update_plan": (r"plan|todo", ("plan", "todos", "steps", "items"), "plan"),
    "view_image": (r"image|picture", ("path", "file", "file_path", "filePath"), "path"),
}
_WELL_KNOWN = {row.name for row in BUILT_IN_ROWS}
_ERROR_INFO = re.compile(r'"(\w+ErrorInfo)\\*"')
_USUAL_ERROR_INFO = "agentErrorInfo"
_RELEASE = re.compile(r"\d+(?:\.\d+)+[-+.\w]*")
_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a person about a server.

    `settings` is a file in its home, `model_key` the key in it that holds the model's address,
    `home_env` the variable that names the home; "" for none.
    """

    name: str
    command: str
    settings: str = ""
    model_key: str = ""
    home_env: str = ""


@dataclass(slots=True)
class Observed:
    """Observations of a server: its name, offered tools, features, and renamed members."""

    server: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    offered: set[str] = field(default_factory=set[str])
    absent: set[str] = field(default_factory=set[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    has_called_model: bool = False


def observe(config: Config, *, probes: Sequence[Loaded]) -> Observed:
    """Play a plain turn and the probes. Raises `SetupFailed` if the server cannot be used."""
    observed = Observed()
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(config.profile, config.book, base=config.base, worker="draft")
        ) as bench,
    ):
        try:
            run = portal.call(bench.run, load_text(TURN, name="draft"))
            _note_turn(observed, run)
            if observed.has_called_model:
                for probe in probes:
                    run = portal.call(bench.run, probe)
                    observed.absent |= absent_after_probe(probe, run, config.profile)
                    observed.offered |= offered_after_probe(probe, run)
                    _note_names(observed, run)
        except SetupFailed:
            # `doctor`, which ran before, says why.
            return observed
    observed.offered -= observed.absent
    return observed


def _note_turn(observed: Observed, run: Run) -> None:
    observed.server = server_name(run.trace)
    if run.model.calls:
        observed.has_called_model = True
        observed.tools = [obj(tool) for tool in arr(run.model.calls[0].body.get("tools"))]


def _note_names(observed: Observed, run: Run) -> None:
    """Keep the name of the member that says why a turn failed, if it is not the usual one."""
    for frame in run.trace.frames:
        for name in _ERROR_INFO.findall(frame.text(4000)) if frame.from_target else ():
            if name != _USUAL_ERROR_INFO:
                observed.names[f"TurnError.{_USUAL_ERROR_INFO}"] = name


def head_lines(answers: Answers) -> Iterator[str]:
    """Yield the part of the profile that a person's answers give."""
    yield f"name = {json.dumps(answers.name)}"
    yield f"command = {json.dumps(answers.command, ensure_ascii=False)}"
    if answers.home_env:
        yield f"home_env = {json.dumps(answers.home_env)}"


def settings_lines(answers: Answers) -> Iterator[str]:
    """Yield the settings file of the server with the model's address, and its use by scenarios."""
    if not answers.settings or not answers.model_key:
        return
    file = dotted_key((answers.settings,))
    steps = steps_of(answers.model_key)
    form = format_of(answers.settings, {}, {})
    yield ""
    yield f"# Written into its home, as {form}; {{home}} and {{cwd}} can stand in values too."
    yield f"[{'.'.join(['home', file, *(dotted_key((step,)) for step in steps[:-1])])}]"
    yield f'{dotted_key(steps[-1:])} = "{{model_url}}"'
    yield ""
    yield "# Scenarios ask for settings under the names of the specification; say here which key of"
    yield "# the file each one is (or env.NAME). Scenarios with others are NOT_APPLICABLE."
    yield "[settings]"
    yield f"file = {json.dumps(answers.settings)}"
    yield ""
    yield "[settings.names]"
    for name in ("model_providers.mock.request_max_retries", "mcp_servers"):
        yield f'# {name} = "KEY"'


def draft_lines(answers: Answers, observed: Observed, capabilities: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the profile; `capabilities` are all that there are."""
    yield "# Begun by `harness profile new`. All keys: harness docs profiles"
    yield from head_lines(answers)
    if observed.server:
        yield f"title = {json.dumps(observed.server, ensure_ascii=False)}"
    yield ""
    yield from _capability_lines(observed, capabilities)
    if observed.names:
        yield ""
        yield "# Members that have another name than in the specification."
        yield "[names]"
        for name, wire in observed.names.items():
            yield f"{dotted_key((name,))} = {json.dumps(wire)}"
    if not answers.settings:
        yield ""
        yield "# From `spec` it inherits the variables PROVIDER_BASE_URL and OPENAI_BASE_URL, and a"
        yield "# config.toml in its home. Settings of its own, in JSON, YAML, dotenv, TOML or text:"
        yield '# [home."settings.json".llm]'
        yield '# baseUrl = "{model_url}"'
    yield from settings_lines(answers)
    yield from _tool_lines(observed.tools)
    yield from _version_lines(observed.server)


def _capability_lines(observed: Observed, capabilities: Sequence[str]) -> Iterator[str]:
    yield "# Each feature is tried once; what fails is NOT_APPLICABLE. A list is a promise instead:"
    yield "# then a feature that is listed and missing is a failure."
    yield 'capabilities = "probe"'
    promised = ["core", *sorted(observed.offered)]
    if observed.has_called_model:
        yield "# Seen by the probes:"
        yield from _wrap_comment("# capabilities = [", [json.dumps(one) for one in promised], "]")
        yield from _wrap_comment("# Not offered: ", sorted(observed.absent) or ["none"], "")
        rest = sorted({*capabilities} - {*promised} - observed.absent)
        yield from _wrap_comment("# Only their scenarios show: ", rest or ["none"], "")


def _wrap_comment(start: str, words: Sequence[str], end: str) -> Iterator[str]:
    line = start
    for number, word in enumerate(words):
        piece = word + (", " if number < len(words) - 1 else end)
        if len(line) + len(piece) > _WIDTH and line != start:
            yield line.rstrip()
            line = "#   "
        line += piece
    yield line.rstrip()


def _tool_lines(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each tool whose intent its name and parameters show; else a comment."""
    taken: set[str] = set()
    for tool in tools:
        name = text(tool.get("name")) or text(tool.get("type")) or "?"
        properties = [*obj(obj(tool.get("parameters")).get("properties"))]
        words = f"# {name}({', '.join(properties)})"
        intent, parameter = _intent_of(name, properties)
        yield ""
        if name in _WELL_KNOWN:
            yield f"{words}: called by the built-in rows"
            taken |= {row.intent for row in BUILT_IN_ROWS if row.name == name}
        elif not intent or intent in taken:
            yield f"{words}: not called; a row with its intent changes that"
        else:
            taken.add(intent)
            yield f"{words}: by its name and parameters; correct it if it is not that"
            yield "[[tools]]"
            yield f'intent = "{intent}"'
            yield f"name = {json.dumps(name)}"
            value = _TOOL_WORDS[intent][2]
            yield f'arguments = {{ {dotted_key((parameter,))} = "{{{value}}}" }}'


def _intent_of(name: str, properties: Sequence[str]) -> tuple[str, str]:
    """Return the intent that a tool serves and the parameter for its value, "" if none is seen."""
    for intent, (words, parameters, _) in _TOOL_WORDS.items():
        parameter = next((one for one in parameters if one in properties), "")
        if parameter and re.search(words, name, re.IGNORECASE):
            return intent, parameter
    return "", ""


def _version_lines(server: str) -> Iterator[str]:
    release = _RELEASE.search(server)
    if release is None:
        return
    yield ""
    yield "# It says its release. With this the profile can have rows for some releases (`since`,"
    yield "# `until`; harness docs profiles#releases), and is stored apart for each."
    yield "# [version]"
    yield f"# pattern = '{re.escape(server[: release.start()])}(\\d[\\w.+-]*)'"
    yield f'# oldest = "{release[0]}"'
    yield f'# newest = "{release[0]}"'


def family_hint(answers: Answers, observed: Observed) -> str:
    """Return the built-in profile of several releases that fits a server, "" if none does."""
    words = f"{answers.command} {observed.server}"
    for name in builtin_names():
        profile = load_profile(name)
        edition = profile.edition
        if edition is not None and not edition.is_named:
            release = profile.version.find_release(observed.server)
            if release and re.search(rf"\b{name}\b", words, re.IGNORECASE):
                own = f"{name}-{short_release(release)}"
                return f"a built-in profile fits it: --target {name} (or {own})"
    return ""


def default_name(command: str) -> str:
    """Return a profile's name from a command: its script's, else its program's."""
    words = [word for word in shlex.split(command) if not word.startswith("-")]
    scripts = [word for word in words[1:] if Path(word).suffix in (".py", ".js", ".ts", ".sh")]
    stem = Path((scripts or words or ["server"])[0]).stem
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-") or "server"
