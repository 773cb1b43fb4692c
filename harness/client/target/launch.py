"""Starts the server of a profile and connects to it."""

from pathlib import Path

from harness.client.target.place import RunFolder, furnish
from harness.client.target.process import ServerProcess, environment, start
from harness.client.target.profile import Bounds, Listening, Profile, fill
from harness.client.target.program import find_program
from harness.client.target.ready import free_address
from harness.errors import TargetError


async def launch(
    profile: Profile, folder: RunFolder, bounds: Bounds, *, model_url: str, home: Path | None = None
) -> tuple[ServerProcess, Path]:
    """Start the server of a profile and connect to it; gives the process and its home.

    `home` is that of a server that ended; without it a new one is made. Raises `UsageError`, and
    `TargetError` where the server cannot be reached.
    """
    furnished, home = home is not None, home or folder.fresh("home")
    values = {"model_url": model_url, "home": str(home), "cwd": str(home)}
    listening = profile.listening()
    if listening is not None:
        values["listen"] = free_address(listening, folder.fresh("listen"))
    if not furnished:
        furnish(home, profile, values)
    process = await start(
        find_program(fill(profile.command, values)),
        cwd=Path.cwd(),
        env=environment(fill(profile.env, values), home, profile.home_env),
        stderr=folder.path / f"{home.name}.stderr",
        owner=folder.path.name,
        home=home,
        temporary=folder.fresh("tmp"),
        address=_dialled(listening, values.get("listen", "")),
    )
    if process.address:
        await _connect(process, bounds)
    return process, home


def _dialled(listening: Listening | None, told: str) -> str:
    """The address to connect to, with the protocol that is spoken there."""
    return f"ws+{told}" if listening == "ws-unix" else told


async def _connect(process: ServerProcess, bounds: Bounds) -> None:
    """Make the first connection; end the server if that fails."""
    try:
        await process.connect(bounds.start)
    except BaseException as error:
        await process.stop(bounds.stop)
        if not isinstance(error, TargetError):
            raise
        said = process.stderr_tail(600).strip()
        printed = f"; the end of what it printed: {said}" if said else "; it printed nothing"
        raise TargetError(f"{error}{printed}") from error
