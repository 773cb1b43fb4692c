"""The server under load: one that listens, one of the user's, or a program for each user."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.client.target.launch import launch
from harness.client.target.overrides import with_overrides
from harness.client.target.process import ServerProcess, environment
from harness.client.target.process_tree import MARK, kill_processes_of
from harness.client.target.profile import Profile, fill
from harness.client.target.program import find_program
from harness.client.target.run_folders import RunFolder, write_home_files
from harness.errors import UsageError

MAX_STDIO_USERS: Final = 64
"""Users that each have a server process of their own: more measure the machine, not the server."""


@dataclass(slots=True)
class LoadedServer:
    """A server that users reach at `address`, or by starting one of `programs` each.

    `process` is None if the user runs the server, or if there is one for each user.
    """

    address: str = ""
    programs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    process: ServerProcess | None = None

    @property
    def words(self) -> str:
        """Return how users reach it."""
        if self.address:
            return f"{self.address}, one server"
        return f"standard streams, {len(self.programs)} processes"


@asynccontextmanager
async def run_server(
    profile: Profile, folder: RunFolder, *, url: str, users: int, stdio: bool, model_url: str
) -> AsyncGenerator[LoadedServer]:
    """Run the server for the length of the block.

    It listens on a WebSocket if its profile has arguments for that, unless `stdio`. Raises
    `UsageError` if it cannot be started, or for too many processes.
    """
    if url:
        yield LoadedServer(url)
        return
    listening = with_overrides(profile, config={}, placeholders={}, several=not stdio)
    kind = listening.listening_kind()
    if kind is None:
        if users > MAX_STDIO_USERS:
            raise UsageError(
                f"over standard streams each of the {users} users starts a server; at most "
                f"{MAX_STDIO_USERS} (a server that listens on a WebSocket takes {{listen}} in its "
                "command)"
            )
        try:
            programs = [_program(profile, folder, model_url) for _ in range(users)]
            yield LoadedServer(programs=programs)
        finally:
            kill_processes_of(folder.path.name)
        return
    if kind != "ws":
        raise UsageError(f'users connect by WebSocket, and the profile says listen = "{kind}"')
    process, _ = await launch(listening, folder, profile.bounds, model_url=model_url)
    # Nobody reads the connection that found it ready, and a server may wait for who is slow.
    await process.transport.aclose()
    try:
        yield LoadedServer(process.address, process=process)
    finally:
        await process.stop(profile.bounds.stop)


def _program(profile: Profile, folder: RunFolder, model_url: str) -> dict[str, Any]:
    """Return how one user starts a server, with a home of its own."""
    home = folder.new_folder("home")
    values = {"model_url": model_url, "home": str(home), "cwd": str(home)}
    write_home_files(home, profile, values)
    variables = environment(fill(profile.env, values), home, profile.home_env)
    variables[MARK] = f"{folder.path.name}:{uuid.uuid4().hex}"
    variables["TMPDIR"] = str(folder.new_folder("tmp"))
    return {
        "command": find_program(fill(profile.command, values)),
        "env": variables,
        "stderr": str(Path(f"{home}.stderr")),
        "home": str(home),
    }
