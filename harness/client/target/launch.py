"""The start of a profile's server, and the first connection to it."""

from pathlib import Path

from harness.client.target.connecting import free_address
from harness.client.target.process import ServerProcess, environment, start
from harness.client.target.profile import Bounds, Listening, Profile, fill
from harness.client.target.program import find_program
from harness.client.target.run_folders import RunFolder, write_home_files
from harness.errors import TargetError


async def launch(
    profile: Profile, folder: RunFolder, bounds: Bounds, *, model_url: str, home: Path | None = None
) -> tuple[ServerProcess, Path]:
    """Start the server of a profile and connect to it; return the process and its home.

    `home` is that of a server that ended; without it a new one is made. Raises `UsageError` if the
    server cannot be started, `TargetError` if it cannot be reached; it is then ended.
    """
    is_restart, home = home is not None, home or folder.new_folder("home")
    values = {"model_url": model_url, "home": str(home), "cwd": str(home)}
    listening = profile.listening_kind()
    if listening is not None:
        values["listen"] = free_address(listening, folder.new_folder("listen"))
    if not is_restart:
        write_home_files(home, profile, values)
    process = await start(
        find_program(fill(profile.command, values)),
        cwd=Path.cwd(),
        env=environment(
            fill(profile.env, values), home, profile.home_env, confined=profile.is_confined
        ),
        stderr=folder.path / f"{home.name}.stderr",
        owner=folder.path.name,
        home=home,
        temporary=folder.new_folder("tmp"),
        address=_dial_address(listening, values.get("listen", "")),
        confinement=profile.confinement(folder.path),
    )
    if process.address:
        await _connect(process, bounds)
    return process, home


def _dial_address(listening: Listening | None, address: str) -> str:
    """Return the address to connect to, with the protocol that is spoken there."""
    return f"ws+{address}" if listening == "ws-unix" else address


async def _connect(process: ServerProcess, bounds: Bounds) -> None:
    """Make the first connection; end the server if that fails."""
    try:
        await process.connect(bounds.start)
    except BaseException as error:
        await process.stop(bounds.stop)
        if not isinstance(error, TargetError):
            raise
        output = process.stderr_tail(600).strip()
        printed = f"; the end of what it printed: {output}" if output else "; it printed nothing"
        raise TargetError(f"{error}{printed}") from error
