"""A provider that echoes the key: neither the client nor the rollout gets to see it.

Here are failures as a client meets them; in which forms a key is found is `test_secrets`' matter.
"""

import base64
import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest
from model_side import CREATED, CUT, ModelSide, Part, Reply, completed, event, over_a_socket, says
from session_peer import config, session

import reference_server
from reference_server.model import client
from reference_server.model.errors import BY_CODE, BY_KIND, BY_STATUS, DETAILS_LIMIT

KEY = 'sk-live/"Zq7\\pX%9+key'
HEADER = f"Authorization: Bearer {KEY}"
LOGIN = base64.b64encode(f"user:{KEY}".encode()).decode()
FORMS = {
    KEY,
    json.dumps(KEY)[1:-1],
    quote(KEY, safe=""),
    quote(KEY, safe="").lower(),
    base64.b64encode(KEY.encode()).decode().rstrip("="),
    LOGIN[8:-2],
}
ECHO = " ".join([HEADER, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode(), LOGIN])
# What is left of the key must be no piece of it either.
PIECES = {KEY[start : start + 5] for start in range(len(KEY) - 4)}

SETTINGS = replace(
    config(stream_idle_timeout_ms=1000), environment={"PROVIDER_API_KEY": KEY, "HOME": "/"}
)


def error_body(**fields: Any) -> bytes:
    return json.dumps({"error": {"message": ECHO, **fields}}).encode()


def failed(kind: str, code: str) -> Reply:
    error = {"code": code, "message": ECHO}
    where = {"response": {"error": error}} if kind == "response.failed" else {"error": error}
    return Reply([CREATED, event(kind, **where)])


STATUSES = [*BY_STATUS, 302, 404, 418, 500, 503]
REPLIES: dict[str, Reply] = {
    **{f"status {number}, JSON": Reply([error_body()], number) for number in STATUSES},
    **{f"status {number}, text": Reply([ECHO.encode()], number) for number in STATUSES},
    **{f"code {code}": failed("response.failed", code) for code in [*BY_CODE, *BY_KIND, "odd"]},
    "an error event": failed("error", "invalid_api_key"),
    "the code itself": Reply([event("response.failed", response={"error": {"code": ECHO}})]),
    "the code of a body": Reply([error_body(code=ECHO)], 400),
    "a redirect": Reply([], 302, {"location": f"https://h.invalid/?key={quote(KEY)}"}),
    "an incomplete answer": Reply(
        [event("response.incomplete", response={"incomplete_details": {"reason": ECHO}})]
    ),
    "no stream": Reply([ECHO.encode()], headers={"content-type": "text/html"}),
    "the type of no stream": Reply([b"x"], headers={"content-type": f"text/{KEY}"}),
    "an unknown encoding": Reply([b"x"], headers={"content-encoding": KEY}),
    "an encoded body": Reply([gzip.compress(error_body())], 500, {"content-encoding": "gzip"}),
    "a body of the whole request": Reply(
        [
            json.dumps(
                {"headers": {"authorization": f"Bearer {KEY}"}, "body": {"input": []}}
            ).encode()
        ],
        400,
    ),
}


def hold(where: str, text: str) -> None:
    """Check that a text holds nothing of the key."""
    found = [form for form in FORMS if form in text]
    assert not found, f"{where}: {text}"
    assert not [piece for piece in PIECES if piece in text], f"{where}: {text}"


async def told(home: Path, reply: Reply) -> str:
    """Let a turn fail, look for the key everywhere, and give the details of the failure."""
    async with session(home, [reply], settings=SETTINGS) as peer:
        end = await peer.run_turn(await peer.start_thread())
        assert end["status"] == "failed"
    hold_all(home, peer.seen)
    return end["error"]["message"] + "\n" + end["error"]["additionalDetails"]


def hold_all(home: Path, seen: list[dict[str, Any]]) -> None:
    for message in seen:
        hold("client", json.dumps(message))
        hold("client", repr(message))
    [rollout] = home.rglob("*.jsonl")
    hold("rollout", rollout.read_text("utf-8"))


@pytest.mark.parametrize("kind", REPLIES)
async def test_the_key_that_a_failure_echoes_is_kept_back(
    tmp_path: Path, kind: str, caplog
) -> None:
    assert "[key]" in await told(tmp_path, REPLIES[kind])
    hold("log", caplog.text)


@pytest.mark.parametrize("before", [0, 3, len(HEADER) // 2, len(HEADER) - 1])
async def test_a_cut_of_ours_leaves_no_half_of_the_key(tmp_path: Path, before: int) -> None:
    text = "." * (DETAILS_LIMIT - before) + HEADER + "." * 100
    await told(tmp_path, Reply([text.encode()], 400))


@pytest.mark.parametrize("length", [120, 170, 185, 199, 200, 210])
async def test_the_beginning_of_no_stream_leaves_no_half_of_the_key(
    tmp_path: Path, length: int
) -> None:
    text = ("." * length + KEY + "." * 3000).encode()
    page = Reply([text[:150], text[150:]], headers={"content-type": "text/html"})
    await told(tmp_path, page)


async def test_a_whole_page_keeps_its_last_letters(tmp_path: Path) -> None:
    # They begin the key, but nothing was cut off here.
    page = Reply([b"this is" + KEY[:1].encode()], headers={"content-type": "text/html"})
    assert (await told(tmp_path, page)).endswith("this iss")


@pytest.mark.parametrize("kept", range(1, len(KEY), 4))
async def test_the_end_of_what_is_kept_of_no_stream_leaves_no_half_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(client, "BEGINNING_BYTES", 100)
    text = ("." * (100 - kept) + KEY + "." * 100).encode()
    await told(tmp_path, Reply([text], headers={"content-type": "text/html"}))


@pytest.mark.parametrize("end", ["stalled", "cut", "too long"])
@pytest.mark.parametrize("kept", [1, 4, 12, len(KEY) - 1])
async def test_a_body_that_was_not_read_to_its_end_leaves_no_half_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, kept: int
) -> None:
    monkeypatch.setattr(client, "ERROR_BODY_TIME", 0.01)
    monkeypatch.setattr(client, "ERROR_BODY_LIMIT", 100)
    rest: Part = CUT if end == "cut" else anyio.Event()
    length = 100 if end == "too long" else 60
    text = ("." * (length - kept) + KEY[:kept]).encode()
    details = await told(tmp_path, Reply([text, rest], 400))
    assert details.endswith("." * (length - kept))


async def test_a_key_in_pieces_of_a_body_is_found(tmp_path: Path) -> None:
    pieces = [error_body()[at : at + 7] for at in range(0, len(error_body()), 7)]
    assert "[key]" in await told(tmp_path, Reply(pieces, 401))


@pytest.mark.parametrize("cause", [httpx.ConnectError, httpx.RemoteProtocolError, RuntimeError])
async def test_a_key_in_the_words_of_an_exception_is_kept_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: type[Exception], caplog
) -> None:
    def fail(*_: object) -> None:
        raise cause(f"illegal header line: {HEADER.encode()!r}")

    monkeypatch.setattr(ModelSide, "take", fail)
    assert "[key]" in await told(tmp_path, Reply())
    hold("log", caplog.text)


async def test_a_retry_tells_no_key_either(tmp_path: Path) -> None:
    provider = replace(SETTINGS.providers["mock"], request_max_retries=1, retry_delay_ms=0)
    settings = replace(SETTINGS, providers={"mock": provider})
    replies = [Reply([error_body()], 500), says("a")]
    async with session(tmp_path, replies, settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["status"] == "completed"
    assert len(peer.params_of("error")) == 1
    hold_all(tmp_path, peer.seen)


async def test_the_name_of_the_answering_model_tells_no_key(tmp_path: Path) -> None:
    reply = Reply([CREATED, completed()], headers={"openai-model": f"m {KEY}"})
    async with session(tmp_path, [reply], settings=SETTINGS) as peer:
        await peer.run_turn(await peer.start_thread())
    [rerouted] = peer.params_of("model/rerouted")
    assert rerouted["toModel"] == "m [key]"
    hold_all(tmp_path, peer.seen)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:Zq7pX9hush@127.0.0.1:1/v1",
        "http://me:Zq7/pX9hush@127.0.0.1:1/v1",
        "odd://me:Zq7pX9hush@127.0.0.1/v1",
        "http://me:Zq7pX9hush@127.0.0.1:99999/v1",
    ],
)
@pytest.mark.parametrize("what", ["base_url", "http_proxy"])
@pytest.mark.socket
async def test_the_password_of_an_address_is_in_no_failure(
    monkeypatch: pytest.MonkeyPatch, what: str, address: str
) -> None:
    if what == "http_proxy":
        monkeypatch.setenv("http_proxy", address)
        address = "http://model.invalid/v1"
    provider = replace(SETTINGS.providers["mock"], base_url=address)

    async def ignore(_: object) -> None:
        pass

    said: list[str] = []
    async with anyio.create_task_group() as tasks:
        models = client.ModelClient(tasks)
        try:
            await models.call(provider, {}, ignore)
        except client.ModelError as failure:
            said.append(str(failure))
        await models.close()
    assert len(said) == 1
    for piece in ("Zq7", "pX9", "hush"):
        assert piece not in said[0]


async def test_a_login_in_base_url_is_sent_where_there_is_no_key() -> None:
    side = ModelSide([says("a")])
    async with over_a_socket(side) as url, anyio.create_task_group() as tasks:
        models = client.ModelClient(tasks)
        address = url.replace("://", "://us%40er:pass@")
        provider = replace(SETTINGS.providers["mock"], base_url=address)

        async def ignore(_: object) -> None:
            pass

        await models.call(provider, {}, ignore)
        await models.close()
    assert side.headers[0]["authorization"] == f"Basic {base64.b64encode(b'us@er:pass').decode()}"


@pytest.mark.socket
@pytest.mark.slow
def test_standard_error_tells_no_key(tmp_path: Path) -> None:
    # A library's own log and a traceback: whatever is written goes through the same formatter.
    script = f"""
import logging
from reference_server.cli import app_server
basic = app_server.load_config
def load(*given, **more):
    found = basic(*given, **more)
    app_server.start_helper = speak
    return found
def speak():
    try:
        raise RuntimeError({ECHO!r})
    except RuntimeError:
        logging.getLogger("lib").exception("it failed with %s", {HEADER!r})
app_server.load_config = load
app_server.run([])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"",
        capture_output=True,
        timeout=20,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(reference_server.__file__).parents[1]),
            "AGENT_HOME": str(tmp_path),
            "PROVIDER_API_KEY": KEY,
        },
    )
    lines = done.stderr.decode()
    assert "it failed with Authorization: Bearer [key]" in lines
    hold("stderr", "\n".join(line for line in lines.splitlines() if "raise " not in line))
