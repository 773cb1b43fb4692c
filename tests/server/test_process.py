"""`agent app-server` as a process: streams, signals, exit status, scenarios, imports."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reference_server
from reference_server.cli import main
from reference_server.config.keys import KEYS
from reference_server.transport.lines import LINE_LIMIT

pytestmark = [pytest.mark.socket, pytest.mark.slow]

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20
Spawn = Callable[..., subprocess.Popen[bytes]]

SCENARIO = """\
title: A reply in two pieces
model:
  - reply:
      - message: {deltas: ["Hel", "lo"]}
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hi, as: u}
  - wait: {turn: u, status: completed}
"""
HOLDING = SCENARIO.replace('"lo"]}', '{hold: never}, "lo"]}')


@pytest.fixture
def spawn(tmp_path) -> Iterator[Spawn]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "reference_server", "app-server", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(tmp_path),
                "AGENT_HOME": str(tmp_path / "home"),
                **environment,
            },
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def say(process: subprocess.Popen[bytes], *messages: dict | bytes) -> None:
    assert process.stdin is not None
    for message in messages:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        process.stdin.write(line + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> dict:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def hear_until(process: subprocess.Popen[bytes], method: str) -> dict:
    while (message := hear(process)).get("method") != method:
        pass
    return message["params"]


START = {"id": 1, "method": "thread/start", "params": {}}
TURN = {
    "id": 2,
    "method": "turn/start",
    "params": {"threadId": "thr_1", "input": [{"type": "text", "text": "hi"}]},
}


def scenario_file(tmp_path: Path, text: str = SCENARIO) -> str:
    path = tmp_path / "one.scenario.yaml"
    path.write_text(text)
    return str(path)


def test_the_end_of_input_is_a_clean_end(spawn: Spawn) -> None:
    process = spawn()
    out, err = process.communicate(b'{"id":1,"method":"initialize","params":{}}\n', BOUND)
    assert (process.returncode, err) == (0, b"")
    [line] = out.splitlines()
    assert json.loads(line)["id"] == 1


def test_a_scenario_plays_the_model_without_any_address(spawn: Spawn, tmp_path) -> None:
    process = spawn("--scenario", scenario_file(tmp_path))
    say(process, START, TURN)
    assert hear_until(process, "turn/completed")["turn"]["status"] == "completed"
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_the_end_of_input_ends_a_running_turn_and_keeps_its_rollout(spawn: Spawn, tmp_path) -> None:
    process = spawn("--scenario", scenario_file(tmp_path, HOLDING))
    say(process, START, TURN)
    hear_until(process, "item/agentMessage/delta")
    out, _ = process.communicate(timeout=BOUND)
    assert process.returncode == 0
    last = json.loads(out.splitlines()[-1])
    assert last["params"]["turn"]["status"] == "interrupted"
    [rollout] = (tmp_path / "home" / "sessions").rglob("*.jsonl")
    types = [json.loads(line)["type"] for line in rollout.read_text().splitlines()]
    assert types[-1] == "turn-completed"


def test_a_kill_in_the_middle_reads_as_interrupted_afterwards(spawn: Spawn, tmp_path) -> None:
    process = spawn("--scenario", scenario_file(tmp_path, HOLDING))
    say(process, START, TURN)
    hear_until(process, "item/agentMessage/delta")
    process.kill()
    process.communicate()
    after = spawn()
    say(
        after,
        {
            "id": 5,
            "method": "thread/read",
            "params": {"threadId": "thr_1", "includeTurns": True},
        },
    )
    thread = hear(after)["result"]["thread"]
    assert thread["status"] == {"type": "notLoaded"}
    [turn] = thread["turns"]
    assert (turn["status"], turn["error"]) == ("interrupted", None)
    assert [item["type"] for item in turn["items"]] == ["userMessage"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_clean_end_also_during_a_turn(spawn: Spawn, tmp_path, number) -> None:
    process = spawn("--scenario", scenario_file(tmp_path, HOLDING))
    say(process, START, TURN)
    hear_until(process, "item/agentMessage/delta")
    process.send_signal(number)
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out.splitlines()[-1])["method"] == "turn/completed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_further_signal_cuts_the_end_short(spawn: Spawn, tmp_path, number) -> None:
    process = spawn("--scenario", scenario_file(tmp_path, HOLDING))
    say(process, START, TURN)
    hear_until(process, "item/agentMessage/delta")
    while process.poll() is None:
        process.send_signal(number)
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out.splitlines()[-1])["method"] == "turn/completed"


def test_a_reader_that_goes_away_is_a_quiet_end(spawn: Spawn) -> None:
    process = spawn()
    assert process.stdout is not None
    process.stdout.close()
    say(process, START)
    assert process.stdin is not None
    process.wait(BOUND)
    assert process.stderr is not None
    assert (process.returncode, process.stderr.read()) == (0, b"")


def test_nothing_but_messages_is_on_standard_output(spawn: Spawn) -> None:
    process = spawn()
    say(process, b"noise", b"", b"[1]", START)
    messages = [hear(process) for _ in range(4)]
    assert [m.get("id") for m in messages[:3]] == [None, None, 1]
    assert messages[3]["method"] == "thread/started"


def test_a_line_of_100_mb_costs_one_error(spawn: Spawn) -> None:
    process = spawn()
    assert process.stdin is not None
    block = b"x" * 1_000_000
    for _ in range(100):
        process.stdin.write(block)
    say(process, b"", START)
    error, answer = hear(process), hear(process)
    assert error["id"] is None
    assert str(LINE_LIMIT) in error["error"]["message"]
    assert answer["id"] == 1


def test_two_servers_in_one_home_share_no_id(spawn: Spawn) -> None:
    both = [spawn(), spawn()]
    ids: list[str] = []
    for _ in range(6):
        for process in both:
            say(process, START)
            ids.append(hear(process)["result"]["thread"]["id"])
            hear_until(process, "thread/started")
    assert len(set(ids)) == 12


def test_initialize_can_be_required(spawn: Spawn) -> None:
    process = spawn("--require-initialize")
    say(process, START)
    assert hear(process)["error"]["message"] == "Not initialized"


def test_a_bad_scenario_is_one_line_with_its_place(spawn: Spawn, tmp_path) -> None:
    path = scenario_file(tmp_path, SCENARIO + "bogus: 1\n")
    process = spawn("--scenario", path)
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, out) == (2, b"")
    [line] = err.decode().splitlines()
    assert line.startswith(f"{path}:9:1: ")


def test_a_bad_config_is_one_line_with_its_place(spawn: Spawn, tmp_path) -> None:
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    config.write_text("\nmodel = 1\n")
    process = spawn()
    out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, out) == (2, b"")
    assert err.decode() == f"{config}:2:9: `model` must be a string, not 1\n"


def test_a_mistake_in_the_configuration_tells_no_secret(spawn: Spawn, tmp_path) -> None:
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    address = "http://me:passw@h.invalid/?key=0123-4567-89ab"
    config.write_text(f'[model_providers.a]\nbase_url = ["{address}"]\n')
    _, err = spawn(PROVIDER_API_KEY="0123-4567-89ab").communicate(timeout=BOUND)
    assert err.decode() == (
        f"{config}:2:12: `base_url` must be an address that begins with http:// or https://; "
        "this provider cannot be used\n"
    )


def test_a_key_without_effect_is_a_line_at_the_start_and_the_server_serves(
    spawn: Spawn, tmp_path
) -> None:
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    config.write_text('\nsandbx_mode = "read-only"\nother = 1\n')
    process = spawn()
    out, err = process.communicate(json.dumps(START).encode() + b"\n", BOUND)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[0])["id"] == 1
    assert err.decode().splitlines() == [
        f"{config}:2:1: there is no key `sandbx_mode` here; did you mean `sandbox_mode`?",
        f"{config}:3:1: there is no key `other` here; it has no effect; there are: "
        f"{', '.join(sorted(KEYS['']))}",
    ]


def test_slow_modules_are_not_imported_for_the_first_answer() -> None:
    script = (
        "import sys, reference_server.cli.app_server;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        text=True,
        timeout=BOUND,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
    )
    imported = set(done.stdout.split())
    assert "pydantic" in imported
    slow = {"httpx", "httpcore", "typer", "rich", "click", "yaml", "starlette", "email", "argparse"}
    assert not imported & slow
    harness = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, reference_server.cli.app_server;"
            "print(*(n for n in sys.modules if n.startswith('harness.')))",
        ],
        capture_output=True,
        check=True,
        text=True,
        timeout=BOUND,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
    )
    names = set(harness.stdout.split()) - {"harness.protocol"}
    assert {".".join(name.split(".")[:3]) for name in names} == {"harness.protocol.wire"}


def test_the_handshake_is_answered_before_the_rest_is_imported() -> None:
    script = """
import sys
from reference_server.cli import main
main(["app-server"])
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        input='{"method":"initialize","id":1,"params":{"clientInfo":{"name":"x"}}}\n',
        capture_output=True,
        check=True,
        text=True,
        timeout=BOUND,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(ROOT / "no-home")},
    )
    assert json.loads(done.stdout)["result"]["userAgent"].startswith("agent/")
    imported = set(done.stderr.split())
    assert "reference_server.handlers.initialize" in imported
    ours = {name for name in imported if name.startswith(("reference_server.", "harness."))}
    later = ("reference_server.engine", "reference_server.model", "reference_server.rollout")
    assert not [name for name in ours if name.startswith((*later, "reference_server.session"))]
    assert not imported & {"importlib.metadata", "tomllib", "reference_server.services"}
    assert "harness.protocol.wire.item" not in ours


def test_the_command_says_what_it_can(capsys) -> None:
    assert main(["--help"]) == 0
    assert "app-server" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"agent {reference_server.VERSION}\n"
    assert main([]) == 2
    assert main(["fly"]) == 2
    assert "no command `fly`" in capsys.readouterr().err


def test_the_version_is_the_projects() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == reference_server.VERSION


def test_a_worker_thread_that_never_ends_does_not_keep_the_server(spawn: Spawn, tmp_path) -> None:
    (home := tmp_path / "home").mkdir()
    with (home / "counters").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = spawn()
        say(process, {"id": 1, "method": "initialize", "params": {}})
        hear(process)
        say(process, START)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, err) == (0, b"")
    assert b"result" not in out
