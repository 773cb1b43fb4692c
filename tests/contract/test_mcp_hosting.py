"""The MCP servers that the harness plays: answers, recorded requests, and protected secrets.

The other side is the client of the public MCP SDK where that is enough, and raw bytes where a
hostile agent, or another process of this machine, speaks.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from harness.model import mcp_server
from harness.model.mcp_hosting import McpSettings, serve_mcp_servers
from harness.model.mcp_script import McpServer
from harness.trace.marks import MarkBody
from harness.trace.mcp_marks import (
    McpAnswer,
    McpConfigured,
    McpRequest,
    McpStarted,
    McpVariable,
    Possession,
)
from harness.trace.recorder import Recorder
from harness.trace.store import load, save

pytestmark = pytest.mark.socket
BOUND = 10
TINY = {"tools": {"add": "five"}, "args": ["--a b", ""], "env": {"SKY": "blue", "PATH": "/none"}}
DOCS = {"tools": {"find": "page 7"}, "transport": "http", "bearer_token_env_var": "DOCS_BEARER"}


def ask(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


CALL = ask("tools/call", name="add", arguments={"a": 1})


@asynccontextmanager
async def playing(
    folder: Path, **servers: dict[str, Any]
) -> AsyncGenerator[tuple[McpSettings, list[MarkBody]]]:
    """These servers, and what is noted of them."""
    parsed = {name: McpServer.model_validate(one) for name, one in servers.items()}
    marks: list[MarkBody] = []
    with anyio.fail_after(BOUND):
        async with serve_mcp_servers(parsed, lambda: folder) as desk:
            desk.servers.begin(marks.append)
            yield desk, marks


def of(marks: list[MarkBody], body: type[Any]) -> list[Any]:
    return [one for one in marks if isinstance(one, body)]


def transport(desk: McpSettings, server: str) -> dict[str, Any]:
    return desk.config["mcp_servers"][server]["transport"]


async def post(desk: McpSettings, message: Any, **headers: str) -> httpx.Response:
    """A message to the server at an address, with its token unless `headers` say otherwise."""
    headers = headers or {"authorization": f"Bearer {desk.env['DOCS_BEARER']}"}
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(transport(desk, "docs")["url"], content=raw, headers=headers)


@asynccontextmanager
async def program(desk: McpSettings, **env: str) -> AsyncGenerator[Any]:
    """The program of the server `tiny`, as an agent starts it; gives a function that asks it."""
    way = transport(desk, "tiny")
    async with await anyio.open_process(
        [way["command"], *way["args"]], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, lines = process.stdin, BufferedByteReceiveStream(process.stdout)

        async def say(*messages: Any) -> Any:
            """Send these; gives the answer to the last one, which is a request."""
            for one in messages:
                await stdin.send(
                    (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n"
                )
            while True:
                answer = json.loads(await lines.receive_until(b"\n", 10**6))
                if answer["id"] == messages[-1]["id"]:
                    return answer

        yield say
        await stdin.aclose()
        assert await process.wait() == 0


async def test_a_program_is_started_with_what_the_table_says(tmp_path: Path) -> None:
    async with playing(tmp_path, tiny=TINY) as (desk, marks):
        async with program(desk, SKY="blue", PATH="/other") as say:
            assert (await say(CALL))["result"]["content"] == [{"type": "text", "text": "five"}]
        [start] = of(marks, McpStarted)
        held = (McpVariable("SKY", Possession.SAME), McpVariable("PATH", Possession.OTHER))
        assert start == McpStarted(server="tiny", args=("--a b", ""), variables=held)
        [request], [answer] = of(marks, McpRequest), of(marks, McpAnswer)
        assert (request.tool, json.loads(request.arguments)) == ("add", {"a": 1})
        assert (answer.number, answer.texts) == (request.number, ("five",))


async def test_no_value_of_the_environment_leaves_the_program(tmp_path: Path) -> None:
    """This includes a variable that the table names and the agent fills otherwise."""
    async with playing(tmp_path, tiny=TINY, docs=DOCS) as (desk, marks):
        token = desk.env["DOCS_BEARER"]
        env = {"SKY": "the user's sky", "USERS_KEY": "the user's key", "ANY_NAME": token}
        async with program(desk, **env) as say:
            await say(CALL)
        assert of(marks, McpStarted)[0].tokens == ("DOCS_BEARER",)
        told = repr(marks)
        assert not [one for one in (*env.values(), "blue", "/none", "USERS_KEY") if one in told]


async def test_a_token_in_what_an_agent_says_is_masked(tmp_path: Path) -> None:
    async with playing(tmp_path, tiny=TINY, docs=DOCS) as (desk, marks):
        token = desk.env["DOCS_BEARER"]
        leaks = ask("tools/call", name=f"x{token}", arguments={token: token})
        async with program(desk) as say:
            assert "error" in await say(leaks)
            assert "error" in await say(ask(token))
        await post(desk, leaks, authorization=f"Basic {token}")
        assert token not in repr(marks)
        assert of(marks, McpRequest)[-1].token is Possession.OTHER


async def test_files_of_a_play_are_private(tmp_path: Path) -> None:
    async with playing(tmp_path, tiny=TINY):
        assert os.listdir(tmp_path) == ["told.json"]
        told = tmp_path / "told.json"
        assert told.stat().st_mode & 0o077 == 0
        assert "blue" not in told.read_text()


async def test_who_has_no_key_says_nothing_into_a_trace(tmp_path: Path) -> None:
    async with playing(tmp_path, tiny=TINY, docs=DOCS) as (desk, marks):
        port = json.loads((tmp_path / "told.json").read_text())["port"]
        for hello in (b"{}", b'{"server": "tiny", "key": "\\ud800"}', b"[[", b"\0" * 100):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(hello + b"\n" + json.dumps(CALL).encode() + b"\n")
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
        url = transport(desk, "docs")["url"]
        base = url.rsplit("/", 2)[0]
        async with httpx.AsyncClient(trust_env=False) as client:
            for path in ("/docs", "/key/docs", "/%ED%A0%80/docs", "/.well-known/x"):
                assert (await client.post(base + path, json=CALL)).status_code == 404
            assert (await client.get(url)).status_code == 405
        assert {type(one) for one in marks} == {McpConfigured}


async def test_an_address_wants_its_token(tmp_path: Path) -> None:
    async with playing(tmp_path, docs=DOCS) as (desk, marks):
        find = ask("tools/call", name="find", arguments={})
        token = desk.env["DOCS_BEARER"]
        for header in ("Bearer other", token, f"Basic {token}", f"Bearer {token}x", "Bearer"):
            assert (await post(desk, find, authorization=header)).status_code == 401
        assert (await post(desk, find, accept="*/*")).status_code == 401
        assert (await post(desk, find)).json()["result"]["content"][0]["text"] == "page 7"
        held = [one.token for one in of(marks, McpRequest)]
        assert held == [*[Possession.OTHER] * 5, Possession.NONE, Possession.SAME]
        assert [one.refused for one in of(marks, McpAnswer)] == [*[True] * 6, False]


HOSTILE = (
    b"[" * 100_000,
    b'{"id": 1}',
    b"null",
    b'"tools/call"',
    b'{"method": 7, "id": {}}',
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "method": "\\ud800", "id": "\\ud800", "params": "x"}',
    json.dumps(ask("tools/call", name=["add"], arguments=[1])).encode(),
    json.dumps(ask("tools/call", name="add\n{}", arguments={"a": "\x1b]0;x\x07"})).encode(),
    json.dumps(ask("tools/call", name="a" * 10_000, arguments={"a": "x" * 1_000_000})).encode(),
    b'{"method": "tools/call", "id": 1, "params": {"name": "add", "arguments": '
    + b'{"a":' * 900
    + b"1"
    + b"}" * 902,
)


@pytest.mark.parametrize("raw", HOSTILE, ids=range(len(HOSTILE)))
async def test_nothing_that_an_agent_sends_ends_the_play_or_spoils_the_trace(
    raw: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "play"
    folder.mkdir()
    async with playing(folder, tiny=TINY, docs=DOCS) as (desk, marks):
        async with program(desk) as say:
            assert (await say(raw, ask("ping", number=99)))["result"] == {}
        assert (await post(desk, raw)).status_code in (200, 202, 400)
        assert (await post(desk, ask("ping"))).json()["result"] == {}
        recorder = Recorder()
        for one in marks:
            recorder.mark(one)
        save(recorder.trace, tmp_path / "t.jsonl")
        assert [one.body for one in load(tmp_path / "t.jsonl").marks] == marks
        assert len(repr(marks)) < 4 * mcp_server.MAX_ARGUMENTS_CHARACTERS


async def test_a_play_notes_a_bounded_number_of_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "MAX_MESSAGES", 5)
    async with playing(tmp_path, docs=DOCS) as (desk, marks):
        answers = [(await post(desk, ask("ping"))).status_code for _ in range(8)]
        assert answers == [*[200] * 5, *[404] * 3]
        assert len(of(marks, McpRequest)) == 5


async def test_without_servers_nothing_is_opened(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    async with playing(tmp_path) as (desk, marks):
        if before:
            assert len(os.listdir("/proc/self/fd")) == before
        assert (desk.config, desk.env, marks, os.listdir(tmp_path)) == ({}, {}, [], [])


async def test_errors_leave_the_block_unchanged(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with playing(tmp_path, tiny=TINY, docs=DOCS):
            raise KeyError("mine")


async def test_a_program_ends_with_the_play(tmp_path: Path) -> None:
    async with playing(tmp_path, tiny=TINY) as (desk, _):
        way = transport(desk, "tiny")
        process = await anyio.open_process([way["command"], *way["args"]], env={})
        assert process.stdin is not None
        await process.stdin.send(json.dumps(ask("ping")).encode() + b"\n")
        assert process.stdout is not None
        assert b'"result"' in await process.stdout.receive()
    with anyio.fail_after(BOUND):
        assert await process.wait() == 0
