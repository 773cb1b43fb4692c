"""Modules that a server imports for its first turn, and how the interpreter is set meanwhile."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_side import says

import reference_server
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.tool_provider import ToolProvider
from reference_server.engine.tools.tool_definitions import offers
from reference_server.late_imports import SWITCH_SECONDS, fast_imports
from reference_server.session.server_requests import ServerRequests

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 60
MAX_MODULES = 410
"""Limit of imported modules, the standard library and pydantic included."""
NOT_OURS = ("httpx", "httpcore", "h11", "mcp", "yaml", "sqlite3", "email", "http", "argparse")
NOT_OF_THE_SERVER = ("exec.process", "exec.sandbox", "index.index", "index.database", "cli.exec")
NO_PACKAGES = ("engine.tools.s", "skills.", "patch.", "mcp.", "oauth.", "oneshot.", "mcp_command.")
# The client's and the model's side: the server runs in a thread's stead, its requests come one
# after the other.
PLAYED = """
import json, os, socket, sys, threading
ours, theirs = os.pipe(), os.pipe()
words = os.dup(1)
os.dup2(ours[0], 0), os.dup2(theirs[1], 1)
listener = socket.create_server(("127.0.0.1", 0))
os.environ["PROVIDER_BASE_URL"] = "http://127.0.0.1:%d/v1" % listener.getsockname()[1]
answer = open(sys.argv[1], "rb").read()

def model():
    connection, _ = listener.accept()
    while b'"input"' not in connection.recv(1 << 16):
        pass
    connection.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n\\r\\n" + answer)
    connection.close()

def client():
    answers = os.fdopen(theirs[0])
    def say(**message):
        os.write(ours[1], json.dumps(message).encode() + b"\\n")
    def hear(wanted):
        for line in answers:
            if wanted(message := json.loads(line)):
                return message
    say(id=1, method="initialize", params={"clientInfo": {"name": "x"}})
    hear(lambda message: message.get("id") == 1)
    status = ""
    if sys.argv[2] == "turn":
        say(id=2, method="thread/start", params={"cwd": os.getcwd()})
        thread = hear(lambda message: message.get("id") == 2)["result"]["thread"]["id"]
        text = [{"type": "text", "text": "hi"}]
        say(id=3, method="turn/start", params={"threadId": thread, "input": text})
        ended = hear(lambda message: message.get("method") == "turn/completed")
        status = ended["params"]["turn"]["status"]
    else:
        say(id=2, method="there/isNone", params={})
        hear(lambda message: message.get("id") == 2)
    os.close(ours[1])
    return status

def played(statuses):
    statuses.append(client())

threading.Thread(target=model, daemon=True).start()
statuses = []
player = threading.Thread(target=played, args=[statuses], daemon=True)
player.start()
from reference_server.cli import main
main(["app-server"])
player.join()
from harness.protocol.wire.base import WireModel
built = [one.__name__ for one in WireModel.__subclasses__() if one.__pydantic_complete__]
os.write(words, json.dumps([statuses[0], built, *sys.modules]).encode())
"""


def imported_by(session: str, tmp_path: Path) -> tuple[str, list[str], list[str]]:
    """Play a session to its end: the status of its turn, the models built, the modules imported."""
    answer = tmp_path / "answer"
    answer.write_bytes(b"".join(part for part in says("Hello.").parts if isinstance(part, bytes)))
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, str(answer), session],
        capture_output=True,
        text=True,
        check=True,
        timeout=BOUND,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )
    status, built, *imported = json.loads(done.stdout)
    return status, built, imported


@pytest.mark.slow
@pytest.mark.socket
def test_a_session_with_a_plain_turn_imports_nothing_that_it_does_not_use(tmp_path) -> None:
    status, built, imported = imported_by("turn", tmp_path)
    assert status == "completed"
    assert "reference_server.engine.turn" in imported
    assert not {name for name in imported if name.partition(".")[0] in NOT_OURS}
    ours = {name.removeprefix("reference_server.") for name in imported}
    assert not ours & {*NOT_OF_THE_SERVER}
    assert not [name for name in ours if name.startswith(NO_PACKAGES)]
    handlers = {name.removeprefix("handlers.") for name in ours if name.startswith("handlers.")}
    assert handlers == {"registry", "initialize", "thread", "turn"}
    harness = {name for name in imported if name.startswith("harness.")} - {"harness.protocol"}
    assert {name for name in harness if not name.startswith("harness.protocol.wire")} == set()
    assert not harness & {
        f"harness.protocol.wire.{name}" for name in ("approval", "review", "skills")
    }
    assert len(imported) <= MAX_MODULES
    # What is only written is never validated.
    assert "TurnStartParams" in built
    assert not [name for name in built if name.endswith(("Notification", "Result", "Item"))]


@pytest.mark.slow
@pytest.mark.socket
def test_a_session_without_a_thread_imports_no_services(tmp_path) -> None:
    _, _, imported = imported_by("greeting", tmp_path)
    ours = [name for name in imported if name.startswith("reference_server.")]
    later = ("engine", "model", "rollout", "session", "services", "handlers.thread")
    assert not [one for one in ours if one.split(".", 1)[1].startswith(later)]


def test_offered_tools_can_be_carried_out(tmp_path) -> None:
    tools = ToolProvider(Home(tmp_path), Config(), ServerRequests())
    offered = [offer["name"] for offer in tools.offers() if "name" in offer]
    assert offered == tools.toolbox.names


@pytest.mark.parametrize("setting", ["live", "disabled"])
def test_the_search_on_the_web_is_offered_where_it_is_switched_on(setting) -> None:
    kinds = [offer["type"] for offer in offers(Config(web_search=setting))]
    assert ("web_search" in kinds) is (setting == "live")


def test_the_collector_and_the_switch_between_threads_are_as_before_after_two_servers() -> None:
    usual = sys.getswitchinterval()
    first, second = fast_imports(), fast_imports()
    with first:
        assert (gc.isenabled(), sys.getswitchinterval()) == (False, pytest.approx(SWITCH_SECONDS))
        second.__enter__()
    second.__exit__(None, None, None)
    assert (gc.isenabled(), sys.getswitchinterval()) == (True, pytest.approx(usual))
