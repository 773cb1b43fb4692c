"""`harness model`: the scripted model as a separate service, for debugging a server."""

import contextlib
import errno
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.cli.commands.model_log import Say, Teller, environment_lines, pluralize
from harness.cli.end_signals import received_signals
from harness.client.target.profile import Profile, load_profile
from harness.errors import UsageError
from harness.model.service import ModelService
from harness.model.tools import ToolRow
from harness.scenario.identity import SUFFIX
from harness.scenario.model_script import ModelScript, load_model_script

# The API key printed for servers to send; it is not checked.
KEY = "harness-key"
_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL_INTERFACES = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of the command. Port 0 is a free one; `target` is a profile's name."""

    script: str
    host: str = "127.0.0.1"
    port: int = 0
    once: bool = False
    loop: bool = False
    open_gates: bool = False
    target: str = "spec"
    timing: bool = False


def serve(options: ModelOptions, say: Say, warn: Say) -> tuple[int, dict[str, Any]]:
    """Serve until a signal comes; return the exit status and the report.

    The status is 1 if something was unexpected or a step was not used. Raises `UsageError` if the
    options contradict each other, the script cannot be read or the address cannot be bound.
    """
    if options.once and options.loop:
        raise UsageError("--once ends with the script and --loop begins it again; give one of them")
    script, profile = _load_script(options), load_profile(options.target)
    return anyio.run(_serve, options, script, profile, say, warn)


def _load_script(options: ModelOptions) -> ModelScript:
    """Return the script of a scenario, or of the scenario that a recording makes."""
    path = Path(options.script)
    if not options.script.endswith(".jsonl"):
        if options.timing:
            raise UsageError(f"--timing recorded: {path} is not a recording (FILE.jsonl)")
        return load_model_script(options.script)
    from harness.cli.commands.from_trace import from_trace, write_scenario

    recorded = from_trace(path, timing=options.timing)
    with TemporaryDirectory() as folder:
        made = write_scenario(recorded, Path(folder) / f"{path.stem}{SUFFIX}")
        return replace(load_model_script(str(made)), name=path.name)


async def _serve(
    options: ModelOptions, script: ModelScript, profile: Profile, say: Say, warn: Say
) -> tuple[int, dict[str, Any]]:
    teller = Teller(script, say, warn, loop=options.loop)
    service: ModelService | UsageError | None = None
    with received_signals(_END_SIGNALS) as signals:
        # An exception raised within a task group would come out as a group.
        async with anyio.create_task_group() as tasks:
            service = _service(tasks, options, script, profile, teller)
            if isinstance(service, ModelService):
                await _serve_until_end(tasks, service, options, script, teller, signals)
    if not isinstance(service, ModelService):
        raise service or RuntimeError("nothing was served")
    return _print_summary(service, script, teller, say)


async def _serve_until_end(
    tasks: TaskGroup,
    service: ModelService,
    options: ModelOptions,
    script: ModelScript,
    teller: Teller,
    signals: AsyncIterator[signal.Signals],
) -> None:
    ended = anyio.Event()

    async def until_signalled() -> None:
        async for _ in signals:
            break
        ended.set()

    async def until_played() -> None:
        await service.wait_until_played()
        ended.set()

    teller.base = service.url.removesuffix("/v1")
    try:
        await service.listen(listening=True)
        _greet(service, options, script, teller.say)
        if options.open_gates:
            service.gates.open_all()
        else:
            tasks.start_soon(_open_gates_by_key, service)
        tasks.start_soon(until_signalled)
        if options.once:
            tasks.start_soon(until_played)
        await ended.wait()
    finally:
        await service.close()
        tasks.cancel_scope.cancel()


def _service(
    tasks: TaskGroup, options: ModelOptions, script: ModelScript, profile: Profile, teller: Teller
) -> ModelService | UsageError:
    """Return the service bound to its address, or the error why it cannot be."""
    try:
        return ModelService(
            tasks,
            script.scripts,
            teller,
            host="127.0.0.1" if options.host == "localhost" else options.host,
            port=options.port,
            loop=options.loop,
            tools=[ToolRow(**tool.row()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )
    except OSError as error:
        return UsageError(_bind_error(options, error))


def _bind_error(options: ModelOptions, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--port {options.port}: something listens on {options.host}:{options.port} already; "
            "end it, or give another port (0 for any free one)"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"--host {options.host}: no address of this machine; give 127.0.0.1"
    option_words = f"--host {options.host} --port {options.port}"
    return f"{option_words}: cannot listen there: {error.strerror or error}"


def _greet(service: ModelService, options: ModelOptions, script: ModelScript, say: Say) -> None:
    steps = pluralize(sum(map(len, script.scripts.values())), "step")
    threads = f" for {len(script.scripts)} threads" if len(script.scripts) > 1 else ""
    say(f"the model of {script.name} ({steps}{threads}) is at {service.url}")
    say("start the server with:")
    for name, value in environment_lines(service.url, KEY).items():
        say(f"  export {name}={value}")
    if script.ignored_parts:
        parts = ", ".join(script.ignored_parts)
        say(f"not played, since this is the model alone: {parts} (harness scenario show)")
    if options.host in _ALL_INTERFACES:
        say("every machine that reaches this one can call it")
    gates = sorted(
        {gate for steps in script.scripts.values() for step in steps for gate in step.gates()}
    )
    if gates and not options.open_gates:
        say(f"gates: {', '.join(gates)}")
    say("Ctrl-C ends it" if not options.once else "it ends with its script")


async def _open_gates_by_key(service: ModelService) -> None:
    """Open, at each Enter, the gate whose name was typed, or else the one that has waited longest.

    Only in the foreground of a terminal: in the background, reading would stop the process.
    """
    while _has_terminal():
        await anyio.wait_readable(0)
        if not _has_terminal():
            return
        line = os.read(0, 4096).decode("utf-8", "replace")
        if not line:
            return
        for name in line.splitlines():
            waiting = service.gates.waiting
            if name.strip():
                service.gates.open(name.strip())
            elif waiting:
                service.gates.open(waiting[0])


def _has_terminal() -> bool:
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _print_summary(
    service: ModelService, script: ModelScript, teller: Teller, say: Say
) -> tuple[int, dict[str, Any]]:
    say("")
    teller.report_unused(service.conversations.all)
    for alias in service.conversations.waiting_aliases:
        for step, model_step in enumerate(script.scripts[alias]):
            if model_step.when is None:
                teller.report_unused_step(alias, step)
    red = bool(teller.unexpected)
    things = pluralize(len(teller.unexpected), "thing")
    say(f"{pluralize(service.calls, 'call')}, {things} unexpected")
    say(f"verdict: {'RED' if red else 'GREEN'}")
    return int(red), {
        "verdict": "RED" if red else "GREEN",
        "script": script.name,
        "url": service.url,
        "calls": teller.calls,
        "unexpected": teller.unexpected,
    }


@contextlib.contextmanager
def report_file(path: str) -> Generator[Callable[[dict[str, Any]], None]]:
    """Yield a function that writes the report to `path`; it writes nothing if `path` is "".

    The file is replaced atomically. Raises `UsageError`, at the start if possible, if it cannot
    be written.
    """
    if not path:
        yield lambda _report: None
        return
    file = Path(path).expanduser()
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        if file.is_dir():
            raise UsageError(f"--json {path}: it is a folder; name a file")
        part.touch()
    except OSError as error:
        raise UsageError(f"--json {path}: it cannot be written: {error.strerror}") from error

    def write(report: dict[str, Any]) -> None:
        try:
            part.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            part.replace(file)
        except OSError as error:
            raise UsageError(f"--json {path}: it cannot be written: {error.strerror}") from error

    try:
        yield write
    finally:
        part.unlink(missing_ok=True)
