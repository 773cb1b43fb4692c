"""A real server with secrets, and a scripted model and a client that try to steal them.

The server is a process of this user or, if that is root, also of an ordinary user. Its API keys are
in its environment, other secrets in the user's home and in the agent's home.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.abc import Process
from confined import IDENTITIES, ORDINARY, SECRET, Place, a_place
from model_side import ModelSide, Refused, Reply, over_a_socket
from session_peer import Peer

import reference_server
from tests.agent_process import open_agent

ROOT = Path(reference_server.__file__).parents[1]
KEY = "key-of-the-provider-0123456789"
KEYS = {
    "PROVIDER_API_KEY": KEY,
    "MY_MODEL": "key-that-is-called-my-model",
    "GITHUB_PAT": "pat-0123456789",
    "DATABASE_URL": "postgres://me:word-of-the-database@db/x",
}
"""Secrets in the server's environment, which commands must not see."""
CONFIG = """\
model = "test-model"
model_provider = "mock"
[model_providers.mock]
request_max_retries = 0
stream_max_retries = 0
[model_providers.other]
env_key = "MY_MODEL"
"""
BOUND = 20.0
CONFINING = {
    "readOnly": {"type": "readOnly", "access": {"type": "fullAccess"}},
    "workspaceWrite": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
}
OPEN = {"type": "dangerFullAccess"}
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")


SITE = Path(anyio.__file__).parents[1]
PATHS = f"{ROOT}{os.pathsep}{SITE}"
"""Import path of this project and its packages, for a Python in which they are not installed."""
_TRIES_ITSELF = """
import subprocess, sys, reference_server.server, pydantic
subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


@cache
def python_of(*become: str) -> str | None:
    """Return a Python that the user can run, or None; this one may be in a closed folder."""
    version = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for program in (sys.executable, version):
        env = {"PYTHONPATH": PATHS, "PATH": os.defpath}
        tried = subprocess.run(
            [*become, program, "-c", _TRIES_ITSELF], env=env, stderr=subprocess.DEVNULL
        )
        if tried.returncode == 0:
            return program
    return None


class ProcessTransport:
    """The client's side of a server's standard streams, as a transport for `Peer`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lines: list[bytes] = []
        self._rest = b""

    async def put(self, line: bytes) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(line + b"\n")

    async def take(self) -> bytes:
        assert self._process.stdout is not None
        while not self._lines:
            *self._lines, self._rest = (self._rest + await self._process.stdout.receive()).split(
                b"\n"
            )
        return self._lines.pop(0)


@dataclass
class Attack:
    """A server under attack; `told` is its standard error so far."""

    place: Place
    peer: Peer
    side: ModelSide
    process: Process
    told: bytearray

    async def thread(self, sandbox: dict[str, Any], policy: str, cwd: Path | None = None) -> str:
        """Start a thread and set the sandbox policy of its turns; return its id."""
        thread = await self.peer.start_thread(
            cwd=str(cwd or self.place.work), approvalPolicy=policy
        )
        self._under = {"sandboxPolicy": sandbox}
        return thread

    async def turn(
        self, thread: str, *replies: Reply | Refused, decision: Any = "decline", **params: Any
    ) -> list[dict[str, Any]]:
        """Run a turn, answer all its approval requests with `decision`, and return them."""
        self.side.replies[:] = list(replies)
        turn = await self.peer.start_turn(thread, "hi", **{**self._under, **params})
        asked: list[dict[str, Any]] = []

        def ends(message: dict[str, Any]) -> bool:
            params = message.get("params", {})
            if message.get("method") == "turn/completed":
                return params["turn"]["id"] == turn
            return "id" in message and params.get("turnId") == turn and message not in asked

        while (message := await self.peer.until(ends)).get("method") != "turn/completed":
            asked.append(message)
            await self.peer.decide(message, decision)
        return asked

    def everything_said(self) -> bytes:
        """Return all output of the server: to the client, the model, its log and its rollouts."""
        log = self.told.decode(errors="replace")
        said = [json.dumps(self.peer.seen), json.dumps(self.side.bodies), log]
        stored = [path for path in self.place.agent.rglob("*") if path.suffix == ".jsonl"]
        return "\n".join(said).encode() + b"".join(path.read_bytes() for path in stored)


@asynccontextmanager
async def attack(
    place: Place,
    *,
    config: str = CONFIG,
    before: Sequence[str] = (),
    around: Sequence[str] = (),
    start: Callable[..., Awaitable[Process]] = open_agent,
    **variables: str,
) -> AsyncGenerator[Attack]:
    """Start a server at a place; the words `before` precede its command line.

    The words `around` come first, and run as this user even if the server runs as another. A test
    about imports gives `anyio.open_process` as `start`.
    """
    side = ModelSide([])
    (place.agent / "config.toml").write_text(config)
    async with over_a_socket(side) as address, anyio.create_task_group() as tasks:
        process = await start(
            [
                *around,
                *place.become,
                *before,
                python_of(*place.become) or "",
                "-m",
                "reference_server",
                "app-server",
            ],
            cwd=place.base,
            env={
                **place.variables,
                "PYTHONPATH": PATHS,
                "AGENT_HOME": str(place.agent),
                "PROVIDER_BASE_URL": address,
                "NO_PROXY": "*",
                **KEYS,
                **variables,
            },
        )
        told = bytearray()

        async def listen() -> None:
            assert process.stderr is not None
            with contextlib.suppress(anyio.ClosedResourceError):
                async for piece in process.stderr:
                    told.extend(piece)

        tasks.start_soon(listen)
        try:
            peer = Peer(cast("Any", ProcessTransport(process)), cast("Any", None), side)
            yield Attack(place, peer, side, process, told)
            assert process.stdin is not None
            await process.stdin.aclose()
            with anyio.fail_after(BOUND):
                await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()
            tasks.cancel_scope.cancel()


@contextmanager
def places(request: pytest.FixtureRequest) -> Generator[Place]:
    """Yield a place; the body of a fixture that is parametrised by IDENTITIES."""
    with a_place(ordinary=request.param != "this user") as place:
        if python_of(*place.become) is None:
            pytest.skip("another user can run no Python here: its folder is closed to others")
        yield place


def another_users(place: Place, name: str, content: bytes) -> Path:
    """Create a file of another user outside the workspace, which commands cannot read, even as
    root, since they have no capabilities."""
    path = place.outside / "another" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    for one, mode in ((path, 0o600), (path.parent, 0o755)):
        os.chown(one, ORDINARY, ORDINARY)
        one.chmod(mode)
    return path


__all__ = ["IDENTITIES", "KEYS", "SECRET", "Attack", "another_users", "attack", "places"]
