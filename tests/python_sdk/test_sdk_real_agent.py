"""The SDK with our own `agent`: real runs, a model on loopback, sessions on disk."""

import asyncio
import base64
import http.server
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_agents import until
from pydantic import BaseModel

from agent_sdk import (
    AbortError,
    AbortSignal,
    Agent,
    CommandExecutionItem,
    FileChangeItem,
    ItemCompletedEvent,
    ItemStartedEvent,
    LocalImageInput,
    ProcessError,
    TextInput,
    Thread,
    TurnFailedError,
    TurnFailedEvent,
)
from tests.processes import COMMANDS

pytestmark = [pytest.mark.socket, pytest.mark.anyio, pytest.mark.slow]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class Model:
    """A model on loopback that says one thing: what it was asked, and how it answers."""

    says: str = "Hello"
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    address: str = ""

    def answer(self) -> bytes:
        message = {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "content": [{"type": "output_text", "text": self.says}],
        }
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        events = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        ]
        return b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
        )


@pytest.fixture
def model() -> Iterator[Model]:
    told = Model()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.asked.append(json.loads(body))
            told.keys.append(self.headers["Authorization"])
            good = told.status == 200
            data = told.answer() if good else b'{"error":{"message":"key refused"}}'
            self.send_response(told.status)
            self.send_header("Content-Type", "text/event-stream" if good else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield told
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Real:
    """Our `agent` with a home of its own, and a working directory for it."""

    folder: Path
    work: Path

    def agent(self, **options: Any) -> Agent:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "AGENT_HOME": str(self.home)}
        env |= options.pop("env", {})
        return Agent(agent_path=self.program(), env=env, **options)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def program(self) -> Path:
        """`agent`; where there is a scenario, with its model."""
        script, path = self.folder / "one.scenario.yaml", self.folder / "agent"
        played = f'--scenario "{script}" ' if script.exists() else ""
        path.write_text(f'#!/bin/sh\nshift\nexec "{COMMANDS}/agent" exec {played}"$@"\n')
        path.chmod(0o755)
        return path

    def thread(self, *, of: Agent | None = None, **options: Any) -> Thread:
        agent = of or self.agent()
        return agent.start_thread(working_directory=self.work, skip_git_repo_check=True, **options)

    def plays(self, *replies: str) -> None:
        """The model is a scenario's, and replies so."""
        steps = "".join(f"  - reply: {one}\n" for one in replies)
        (self.folder / "one.scenario.yaml").write_text(
            f"title: One turn\nmodel:\n{steps}client:\n  - start_thread: {{as: t}}\n"
            "  - start_turn: {thread: t, text: hi, as: u}\n"
            "  - wait: {turn: u, status: completed}\n"
        )


@pytest.fixture
def real(tmp_path: Path) -> Real:
    (tmp_path / "work").mkdir()
    return Real(tmp_path, tmp_path / "work")


async def test_the_key_and_the_address_reach_the_model(real: Real, model: Model) -> None:
    agent = real.agent(base_url=model.address, api_key="sk-of-the-test")
    result = await real.thread(of=agent).run("What now?")
    assert (result.final_response, len(result.items)) == ("Hello", 1)
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 3)
    assert model.keys == ["Bearer sk-of-the-test"]
    assert "What now?" in json.dumps(model.asked[0]["input"])


async def test_a_thread_goes_on_and_is_resumed_with_what_was_said(real: Real, model: Model) -> None:
    agent = real.agent(base_url=model.address)
    thread = real.thread(of=agent)
    await thread.run("the first words")
    first = thread.id or ""
    await thread.run("the second words")
    assert thread.id == first != ""
    resumed = agent.resume_thread(first, working_directory=real.work, skip_git_repo_check=True)
    await resumed.run("the third words")
    assert resumed.id == first
    said = json.dumps(model.asked[-1]["input"])
    assert all(f"the {number} words" in said for number in ("first", "second", "third"))
    assert [path for path in real.home.rglob("*.jsonl") if first in path.name] != []


async def test_the_settings_of_a_thread_reach_the_model(real: Real, model: Model) -> None:
    thread = real.thread(
        of=real.agent(base_url=model.address), model="large", model_reasoning_effort="high"
    )
    await thread.run("x")
    assert model.asked[0]["model"] == "large"
    assert model.asked[0]["reasoning"]["effort"] == "high"


class Weather(BaseModel):
    city: str
    degrees: int | None = None


async def test_a_schema_reaches_the_model_and_its_answer_is_an_instance(
    real: Real, model: Model
) -> None:
    model.says = '{"city": "Oslo", "degrees": 4}'
    thread = real.thread(of=real.agent(base_url=model.address))
    result = await thread.run("How warm is it?", output_schema=Weather)
    assert result.parse() == Weather(city="Oslo", degrees=4)
    given = model.asked[0]["text"]["format"]
    assert (given["type"], given["schema"]["required"]) == ("json_schema", ["city", "degrees"])


async def test_images_and_texts_reach_the_model(
    real: Real, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(real.folder)
    (real.folder / "-a b.png").write_bytes(PIXEL)
    thread = real.thread(of=real.agent(base_url=model.address))
    await thread.run([TextInput("one"), LocalImageInput("-a b.png"), TextInput("--two")])
    said = json.dumps(model.asked[0]["input"])
    assert "one\\n\\n--two" in said
    assert base64.b64encode(PIXEL).decode() in said


async def test_a_refused_key_rejects_the_turn_with_the_message(real: Real, model: Model) -> None:
    model.status = 401
    agent = real.agent(base_url=model.address, api_key="sk-of-the-test")
    with pytest.raises(TurnFailedError, match=r"401|refused") as told:
        await real.thread(of=agent).run("x")
    assert "sk-of-the-test" not in str(told.value) + told.value.stderr
    events = [event async for event in real.thread(of=agent).run_streamed("x")]
    assert isinstance(events[-1], TurnFailedEvent)


async def test_the_environment_is_only_what_was_given(
    real: Real, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-of-the-parent")
    await real.thread(of=real.agent(base_url=model.address)).run("x")
    assert model.keys == [None]


async def test_commands_and_patches_are_items(real: Real) -> None:
    real.plays(
        '[{run: "echo done"}]',
        '[{patch: {add: {a.txt: "hi\\n"}}}]',
        "[{message: {deltas: [ok]}}]",
    )
    thread = real.thread(sandbox_mode="workspace-write", approval_policy="never")
    events = [event async for event in thread.run_streamed("x")]
    started = [event.item for event in events if isinstance(event, ItemStartedEvent)]
    done = [event.item for event in events if isinstance(event, ItemCompletedEvent)]
    command = next(item for item in done if isinstance(item, CommandExecutionItem))
    assert (command.exit_code, command.aggregated_output.strip()) == (0, "done")
    assert any(isinstance(item, CommandExecutionItem) for item in started)
    change = next(item for item in done if isinstance(item, FileChangeItem))
    assert [Path(one.path).name for one in change.changes] == ["a.txt"]
    assert (real.work / "a.txt").read_text() == "hi\n"


async def test_an_abort_ends_the_command_that_the_agent_runs(real: Real) -> None:
    marked = real.work / "started"
    real.plays('[{run: "touch started; sleep 60"}]', "[{message: {deltas: [ok]}}]")
    stop = AbortSignal()
    thread = real.thread(sandbox_mode="danger-full-access", approval_policy="never")
    turn = asyncio.ensure_future(thread.run("x", signal=stop))
    await until(marked.exists)
    stop.abort()
    with pytest.raises(AbortError):
        await turn
    assert _living_in(real.work) == []


def _living_in(folder: Path) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if Path(os.readlink(process / "cwd")) == folder:
                    found.append((process / "cmdline").read_text())
            except OSError:
                continue
    return found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"working_directory": "missing"}, "missing"),
        ({"additional_directories": ["missing"]}, "missing"),
        ({"skip_git_repo_check": False}, "git"),
    ],
)
@pytest.mark.parametrize("prompt", ["x", "x" * 1_000_000], ids=["short", "long"])
async def test_an_early_failure_is_told_in_the_agent_s_words(
    real: Real, options: dict[str, Any], words: str, prompt: str
) -> None:
    real.plays("[{message: {deltas: [ok]}}]")
    given: dict[str, Any] = {"working_directory": real.work, "skip_git_repo_check": True, **options}
    with pytest.raises(ProcessError, match=words) as told:
        await real.agent().start_thread(**given).run(prompt)
    assert told.value.exit_code


async def test_a_thread_that_nobody_knows_is_no_new_thread(real: Real) -> None:
    real.plays("[{message: {deltas: [ok]}}]")
    thread = real.agent().resume_thread(
        "019c0000-0000-7000-8000-000000000000",
        working_directory=real.work,
        skip_git_repo_check=True,
    )
    with pytest.raises(ProcessError, match="019c0000"):
        await thread.run("x")


async def test_a_thousand_kilobytes_of_prompt_arrive(real: Real, model: Model) -> None:
    prompt = "ab\u2028\r\n" * 200_000 + "end"
    await real.thread(of=real.agent(base_url=model.address)).run(prompt)
    assert prompt in [
        part["text"]
        for item in model.asked[0]["input"]
        for part in item.get("content", [])
        if "text" in part
    ]


async def test_a_configuration_with_odd_keys_is_understood(real: Real, model: Model) -> None:
    agent = real.agent(
        config={
            "model_provider": "a b.c",
            "model_providers": {"a b.c": {"base_url": model.address, "env_key": "OTHER"}},
        },
        env={"OTHER": "sk-other"},
    )
    await real.thread(of=agent).run("x")
    assert model.keys == ["Bearer sk-other"]
