"""Odd surroundings of a server's process: closed streams, folders that are not there, locales.

For each: exactly one clear message where one is due, never a traceback, never silence.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from model_side import says
from session_peer import session

import reference_server
from reference_server.cli import surroundings
from reference_server.cli.surroundings import UsageError, find_home

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20
REQUESTS = b'{"id":1,"method":"thread/start","params":{}}\n'
NOT_UTF8 = os.fsdecode(b"na\xffme")


class Ended:
    """Output and exit status of a server's process."""

    def __init__(self, done: "subprocess.CompletedProcess[bytes]") -> None:
        self.status = done.returncode
        self.messages: list[dict[str, Any]] = [
            json.loads(line) for line in done.stdout.splitlines()
        ]
        self.stderr = done.stderr.decode()

    @property
    def refusal(self) -> str:
        """The error answer to the request."""
        return next(m for m in self.messages if m.get("id") == 1)["error"]["message"]


def run(tmp_path: Path, shell: str = 'exec "$@"', **environment: str) -> Ended:
    """Run a server for one request, through a piece of shell."""
    given = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "AGENT_HOME": str(tmp_path / "home"),
        **environment,
    }
    command = ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "reference_server", "app-server"]
    return Ended(
        subprocess.run(
            command, input=REQUESTS, capture_output=True, timeout=BOUND, cwd=tmp_path, env=given
        )
    )


def one_line(ended: Ended) -> str:
    [line] = ended.stderr.splitlines()
    assert (ended.status, ended.messages) == (2, [])
    return line


@pytest.mark.socket
@pytest.mark.slow
class TestAProcess:
    @pytest.mark.parametrize(("closed", "name"), [("<&-", "input"), (">&-", "output")])
    def test_without_its_streams_it_does_not_start(self, tmp_path, closed: str, name: str) -> None:
        line = one_line(run(tmp_path, f'exec "$@" {closed}'))
        assert f"standard {name} is closed" in line

    def test_without_standard_error_it_serves(self, tmp_path) -> None:
        ended = run(tmp_path, 'exec "$@" 2>&-')
        assert ended.status == 0
        assert [m.get("id", m.get("method")) for m in ended.messages] == [1, "thread/started"]

    def test_without_standard_error_a_bad_configuration_is_its_status(self, tmp_path) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "config.toml").write_text("model = 1")
        ended = run(tmp_path, 'exec "$@" 2>&-')
        assert (ended.status, ended.messages) == (2, [])

    def test_without_any_stream_it_ends(self, tmp_path) -> None:
        assert run(tmp_path, 'exec "$@" <&- >&- 2>&-').status == 2

    def test_a_home_that_is_a_file_is_said_so(self, tmp_path) -> None:
        (tmp_path / "file").touch()
        line = one_line(run(tmp_path, AGENT_HOME=str(tmp_path / "file")))
        assert f"{tmp_path / 'file'} is no folder; set AGENT_HOME" in line

    @pytest.mark.parametrize("path", ["/dev/null/home", "/" + "x" * 300])
    def test_a_home_that_cannot_be_is_said_so(self, tmp_path, path: str) -> None:
        line = one_line(run(tmp_path, AGENT_HOME=path))
        assert line.startswith(f"{path}/config.toml:1:1: cannot be read: ")

    def test_a_home_that_cannot_be_made_refuses_threads(self, tmp_path) -> None:
        ended = run(tmp_path, AGENT_HOME="/proc/none/home")
        assert ended.status == 0
        assert "/proc/none" in ended.refusal
        assert len(ended.stderr.splitlines()) == 1

    def test_a_home_whose_name_is_not_utf8_is_said_so(self, tmp_path) -> None:
        line = one_line(run(tmp_path, AGENT_HOME=str(tmp_path / NOT_UTF8)))
        assert "not UTF-8" in line
        assert "set AGENT_HOME" in line

    def test_a_folder_that_was_deleted_before_is_asked_for(self, tmp_path) -> None:
        ended = run(tmp_path, 'mkdir gone && cd gone && rmdir ../gone && exec "$@"')
        assert ended.status == 0
        assert "name an absolute one" in ended.refusal
        assert ended.stderr == ""

    def test_a_relative_home_in_a_deleted_folder_is_said_so(self, tmp_path) -> None:
        gone = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
        line = one_line(run(tmp_path, gone, AGENT_HOME="home"))
        assert "AGENT_HOME (home) is relative" in line

    def test_a_folder_whose_name_is_not_utf8_is_told(self, tmp_path) -> None:
        (tmp_path / NOT_UTF8).mkdir()
        ended = run(tmp_path, 'cd na* && exec "$@"')
        assert ended.status == 0
        assert "not UTF-8" in ended.refusal
        assert ended.stderr == ""

    @pytest.mark.parametrize("path", ["", None])
    def test_without_a_path_it_serves(self, tmp_path, path: str | None) -> None:
        shell = 'unset PATH; exec "$@"' if path is None else 'PATH= exec "$@"'
        ended = run(tmp_path, shell)
        assert (ended.status, ended.stderr) == (0, "")
        assert ended.messages[0]["result"]

    @pytest.mark.parametrize("text", ["model = 1 # é", "modèle = 'm'"])
    def test_a_locale_without_utf8_changes_nothing(self, tmp_path, text: str) -> None:
        (home := tmp_path / "hémé").mkdir()
        (home / "config.toml").write_text(text, encoding="utf-8")
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        ended = run(tmp_path, AGENT_HOME=str(home), **plain)
        assert one_line(ended).startswith(f"{home}/config.toml:1:")

    def test_paths_that_are_not_ascii_are_told_in_any_locale(self, tmp_path) -> None:
        (tmp_path / "dír").mkdir()
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        ended = run(tmp_path, 'cd d* && exec "$@"', AGENT_HOME=str(tmp_path / "hémé"), **plain)
        assert (ended.status, ended.stderr) == (0, "")
        thread = ended.messages[0]["result"]["thread"]
        assert thread["cwd"] == str(tmp_path / "dír")
        assert Path(thread["path"]).is_relative_to(tmp_path / "hémé")
        assert Path(thread["path"]).is_file()


def test_a_user_without_a_home_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(UsageError, match="set AGENT_HOME to a folder"):
        find_home({})


def test_a_process_that_speaks_utf8_is_not_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("started anew"))
    surroundings.speak_utf8()


async def test_a_folder_that_is_deleted_while_the_server_runs_is_asked_for(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    async with session(tmp_path / "home", [says("a")]) as peer:
        await peer.start_thread()
        here.rmdir()
        error = (await peer.request("thread/start"))["error"]
        relative = (await peer.request("thread/start", {"cwd": "below"}))["error"]
        thread = await peer.start_thread(cwd=str(tmp_path))
        assert (await peer.run_turn(thread))["status"] == "completed"
    assert error["code"] == relative["code"] == -32600
    assert error["message"] == relative["message"]
    assert "name an absolute one" in error["message"]
