"""`harness model`: the scripted model as a service of its own, for who sits in a debugger."""

import contextlib
import errno
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from harness.cli.commands.model_telling import Say, Teller, counted, environment_lines
from harness.client.target.profile import Profile, load_profile
from harness.errors import UsageError
from harness.model.service import ModelService
from harness.model.tools import ToolRow
from harness.scenario.model_script import ModelScript, model_script

# The key that servers are to send; nobody looks at it.
KEY = "harness-key"
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EVERY = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command. Port 0 is a free one; `target` is a profile's name."""

    script: str
    host: str = "127.0.0.1"
    port: int = 0
    once: bool = False
    loop: bool = False
    open_gates: bool = False
    target: str = "spec"


def serve(wanted: Wanted, say: Say, warn: Say) -> tuple[int, dict[str, Any]]:
    """Serve until a signal comes; gives the exit status and the report.

    1 where something was unexpected or a step was not used. Raises `UsageError`.
    """
    if wanted.once and wanted.loop:
        raise UsageError("--once ends with the script and --loop begins it again; give one of them")
    script, profile = model_script(wanted.script), load_profile(wanted.target)
    return anyio.run(_serve, wanted, script, profile, say, warn)


async def _serve(
    wanted: Wanted, script: ModelScript, profile: Profile, say: Say, warn: Say
) -> tuple[int, dict[str, Any]]:
    teller = Teller(script, say, warn, loop=wanted.loop)
    service: ModelService | UsageError | None = None
    with anyio.open_signal_receiver(*_ENDS) as signals:
        # What is raised within a task group comes out of it in a group.
        async with anyio.create_task_group() as tasks:
            service = _service(tasks, wanted, script, profile, teller)
            if isinstance(service, ModelService):
                await _until_the_end(tasks, service, wanted, script, teller, signals)
    if not isinstance(service, ModelService):
        raise service or RuntimeError("nothing was served")
    return _over(service, script, teller, say)


async def _until_the_end(
    tasks: TaskGroup,
    service: ModelService,
    wanted: Wanted,
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
        await service.played()
        ended.set()

    teller.base = service.url.removesuffix("/v1")
    try:
        await service.listen(listening=True)
        _greet(service, wanted, script, teller.say)
        if wanted.open_gates:
            service.gates.open_all()
        else:
            tasks.start_soon(_keys, service)
        tasks.start_soon(until_signalled)
        if wanted.once:
            tasks.start_soon(until_played)
        await ended.wait()
    finally:
        await service.close()
        tasks.cancel_scope.cancel()


def _service(
    tasks: TaskGroup, wanted: Wanted, script: ModelScript, profile: Profile, teller: Teller
) -> ModelService | UsageError:
    """The service, bound to its address, or why it cannot be."""
    try:
        return ModelService(
            tasks,
            script.scripts,
            teller,
            host="127.0.0.1" if wanted.host == "localhost" else wanted.host,
            port=wanted.port,
            loop=wanted.loop,
            tools=[ToolRow(**tool.model_dump()) for tool in profile.tools],
            outcomes={str(name): texts for name, texts in profile.outcomes.items()},
            loose=profile.capabilities == "probe",
        )
    except OSError as error:
        return UsageError(_why_not_bound(wanted, error))


def _why_not_bound(wanted: Wanted, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"--port {wanted.port}: something listens on {wanted.host}:{wanted.port} already; "
            "end it, or give another port (0 for any free one)"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"--host {wanted.host}: no address of this machine; give 127.0.0.1"
    option_words = f"--host {wanted.host} --port {wanted.port}"
    return f"{option_words}: cannot listen there: {error.strerror or error}"


def _greet(service: ModelService, wanted: Wanted, script: ModelScript, say: Say) -> None:
    steps = counted(sum(map(len, script.scripts.values())), "step")
    threads = f" for {len(script.scripts)} threads" if len(script.scripts) > 1 else ""
    say(f"the model of {script.name} ({steps}{threads}) is at {service.url}")
    say("start the server with:")
    for name, value in environment_lines(service.url, KEY).items():
        say(f"  export {name}={value}")
    if script.left_out:
        parts = ", ".join(script.left_out)
        say(f"not set up, since this is the model alone: {parts} (harness scenario show)")
    if wanted.host in _EVERY:
        say("every machine that reaches this one can call it")
    gates = sorted(
        {gate for steps in script.scripts.values() for step in steps for gate in step.gates()}
    )
    if gates and not wanted.open_gates:
        say(f"gates: {', '.join(gates)}")
    say("Ctrl-C ends it" if not wanted.once else "it ends with its script")


async def _keys(service: ModelService) -> None:
    """Open the gate that waits longest at each Enter, or the one whose name is typed before it.

    Only in a terminal, and only while we are in its foreground: reading would stop us otherwise.
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


def _over(
    service: ModelService, script: ModelScript, teller: Teller, say: Say
) -> tuple[int, dict[str, Any]]:
    say("")
    teller.unused(service.conversations.all)
    for alias in service.conversations.waiting:
        for step, model_step in enumerate(script.scripts[alias]):
            if model_step.when is None:
                teller.unused_step(alias, step)
    red = bool(teller.unexpected)
    say(f"{counted(service.calls, 'call')}, {counted(len(teller.unexpected), 'thing')} unexpected")
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
    """Open the report, "" for none, before anything is served.

    It is written beside its place and moved there whole. Raises `UsageError`.
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
