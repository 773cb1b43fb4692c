"""`agent app-server --scenario … --program FILE`: an executable that a client starts."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from staged import GREETING
from test_stage_process import BOUND, REQUESTS, agent, ended, over_stdio

from tests.agent_process import run_agent

pytestmark = [pytest.mark.socket, pytest.mark.slow]

ODD_NAME = "co'd ex\"$(touch made)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "greeting.scenario.yaml").write_text(GREETING, "utf-8")
    return tmp_path


@contextmanager
def stage(
    folder: Path, name: str = "my-agent", *options: str, scenario: str = "greeting.scenario.yaml"
) -> Generator["subprocess.Popen[bytes]"]:
    """Run a stage with a program, until its socket listens."""
    words = ("--scenario", scenario, "--program", name, "--json", "out.json", *options)
    with agent(folder, *words) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode().rstrip("\n")
        assert line == f"program at {folder / name}"
        yield process


@contextmanager
def started(
    folder: Path, *words: str, name: str = "my-agent", env: Mapping[str, str] | None = None
) -> Generator["subprocess.Popen[bytes]"]:
    pipe = subprocess.PIPE
    command = [str(folder / name), *words]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=env or {}, cwd=folder
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def verdicts(folder: Path, process: "subprocess.Popen[bytes]") -> list[tuple[str, list[str]]]:
    """End the stage; return the scenario and the problems of each connection of its report."""
    process.send_signal(signal.SIGTERM)
    ended(process)
    report: dict[str, Any] = json.loads((folder / "out.json").read_text("utf-8"))
    return [(each["scenario"], each["problems"]) for each in report["connections"]]


@pytest.mark.parametrize("name", ["my-agent", ODD_NAME], ids=["plain", "odd"])
def test_each_start_is_a_judged_connection(folder: Path, name: str) -> None:
    with stage(folder, name) as process:
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700
        for words in (
            ["app-server"],
            ["--config", "model=x", "app-server", "--listen", "stdio://", "--strict-config"],
        ):
            with started(folder, *words, name=name) as client:
                heard = over_stdio(client, REQUESTS)
                assert ended(client) == (0, [])
            model = next(one for one in heard if one.get("id") == 2)["result"]["model"]
            assert (model == "x") is ("model=x" in words), "settings count for one start alone"
        assert verdicts(folder, process) == [("greeting", [])] * 2
    assert not (folder / name).exists()
    assert not (folder / "made").exists()
    assert [one.name for one in folder.glob("*agent-stage-*")] == []


def test_several_scenarios_are_played_in_turn(folder: Path) -> None:
    (folder / "other.scenario.yaml").write_text(GREETING, "utf-8")
    with stage(folder, scenario=".") as process:
        for _ in range(2):
            with started(folder, "app-server") as client:
                over_stdio(client, REQUESTS)
                ended(client)
        assert verdicts(folder, process) == [("greeting", []), ("other", [])]


def test_found_by_path_it_answers_as_the_agent(folder: Path) -> None:
    with stage(folder):
        for word, text in (("--version", "agent 0."), ("--help", "usage: agent")):
            done = subprocess.run(
                ["my-agent", word],
                env={"PATH": str(folder)},
                capture_output=True,
                encoding="utf-8",
                timeout=BOUND,
                check=True,
            )
            assert done.stdout.startswith(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["app-server", "--lisen", "x"], "agent app-server: there is no option --lisen; did you"),
        (["app-server", "--listen", "ws://x"], "agent app-server: --listen: invalid choice"),
        (["-x", "app-server"], "agent: there is no option -x before the command"),
        (["nothing"], "agent: there is no command `nothing`"),
    ],
)
def test_wrong_usage_is_one_message(folder: Path, words: list[str], message: str) -> None:
    with stage(folder), started(folder, *words) as client:
        status, [line] = ended(client)
        assert (status, line[: len(message)]) == (2, message)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_client_that_kills_it_is_judged_all_the_same(folder: Path, number: int) -> None:
    with stage(folder) as process:
        with started(folder, "app-server") as client:
            over_stdio(client, REQUESTS)
            client.send_signal(number)
            assert ended(client) == (-number, [])
        assert process.stderr is not None
        assert process.stderr.readline() == b"connection 1 (greeting): GREEN\n"
        assert verdicts(folder, process) == [("greeting", [])]


def test_a_client_that_is_killed_leaves_no_process(folder: Path) -> None:
    reader, writer = os.pipe()
    with stage(folder) as process:
        script = '"$0" app-server <&3 & echo $!; exec cat >/dev/null'
        with subprocess.Popen(
            ["/bin/sh", "-c", f"exec 3<&0; {script}", str(folder / "my-agent")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Every process of the client holds this end.
            pass_fds=[writer],
        ) as client:
            os.close(writer)
            assert client.stdout is not None
            assert client.stdout.readline().strip().isdigit()
            client.kill()
        assert os.read(reader, 1) == b"", "all processes have ended"
        os.close(reader)
        process.kill()


def test_the_end_of_the_stage_ends_its_programs(folder: Path) -> None:
    with stage(folder) as process, started(folder, "app-server") as client:
        heard = over_stdio(client, REQUESTS)
        assert heard[-1]["params"]["turn"]["status"] == "completed"
        process.send_signal(signal.SIGTERM)
        assert client.stdout is not None
        client.stdout.read()
        assert client.wait(BOUND) == 0


def test_a_stage_ends_with_its_input(folder: Path) -> None:
    with stage(folder, "my-agent", "--end-with-input") as process:
        with started(folder, "app-server") as client:
            over_stdio(client, REQUESTS)
            assert process.stdin is not None
            process.stdin.write(b"unread\n")
            process.stdin.flush()
            assert ended(client) == (0, [])
        status, said = ended(process)
    assert (status, said[-1]) == (0, "1 connection(s), 0 RED")
    assert not (folder / "my-agent").exists()


def test_an_input_without_an_end_is_refused(folder: Path) -> None:
    words = ("--scenario", "greeting.scenario.yaml", "--program", "my-agent", "--end-with-input")
    done = run_agent(
        [sys.executable, "-m", "reference_server", "app-server", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        b"--end-with-input: standard input must be a pipe\n",
    )
    assert not (folder / "my-agent").exists()


def test_a_program_of_a_killed_stage_says_so_and_is_replaced(folder: Path) -> None:
    with stage(folder) as process:
        process.kill()
        process.wait(BOUND)
    with started(folder, "app-server") as client:
        status, [line] = ended(client)
    assert status == 1
    assert "the server of this program has ended" in line
    with stage(folder), started(folder, "app-server") as client:
        over_stdio(client, REQUESTS)
        assert ended(client) == (0, [])


def test_another_file_is_not_replaced(folder: Path) -> None:
    (folder / "my-agent").write_text("#!/bin/sh\n", "utf-8")
    words = ("--scenario", "greeting.scenario.yaml", "--program", "my-agent")
    with agent(folder, *words) as process:
        assert ended(process) == (
            2,
            [f"--program {folder}/my-agent: there is another file; give a new name"],
        )
    with agent(folder, *words[:3], "no/my-agent") as process:
        assert ended(process)[0] == 2
    assert (folder / "my-agent").read_text("utf-8") == "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--program", "x"), "agent app-server: --program needs --scenario"),
        (
            ("--program", "x", "--listen", "stdio", "--scenario", "y"),
            "agent app-server: --program: clients start",
        ),
    ],
)
def test_options_that_do_not_go_together(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    with agent(folder, *words) as process:
        status, [line] = ended(process)
    assert (status, line[: len(message)]) == (2, message)


def test_a_long_temporary_folder_is_no_obstacle(folder: Path) -> None:
    long = folder / ("x" * 100)
    long.mkdir()
    (long / "greeting.scenario.yaml").write_text(GREETING, "utf-8")
    with stage(long) as process:
        with started(long, "app-server") as client:
            over_stdio(client, REQUESTS)
            assert ended(client) == (0, [])
        assert verdicts(long, process) == [("greeting", [])]


def test_one_named_codex_speaks_as_codex_does(folder: Path) -> None:
    with stage(folder, "codex") as process:
        with started(folder, "--version", name="codex") as client:
            assert client.communicate(timeout=BOUND)[0].startswith(b"codex-cli 0.")
        with started(folder, "app-server", name="codex") as client:
            thread = over_stdio(client, REQUESTS[:2], until="thread/started")[-1]
            assert thread["params"]["thread"]["cliVersion"]
            ended(client)
        [(_, problems)] = verdicts(folder, process)
    assert problems == ["greeting.scenario.yaml:3: model step 1 was never played: no call came"]
