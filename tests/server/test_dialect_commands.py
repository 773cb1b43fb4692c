"""`agent` as a release of Codex: by the option, the variable, and the name `codex`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent_process import run_agent

AGENT = Path(sys.executable).parent / "agent"
SECONDS = 30


def run(
    words: list[str], home: Path, messages: list[Any] | None = None, /, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; `messages` are its input, a line each."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], **variables}
    lines = "".join(f"{json.dumps(message)}\n" for message in messages or [])
    return run_agent(
        words, env=environment, input=lines, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.fixture
def codex(tmp_path: Path) -> str:
    """Return the path of a link named `codex` to the program `agent`."""
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(AGENT)
    return str(link)


def initialized(words: list[str], home: Path, **variables: str) -> dict[str, Any]:
    """Return the result of `initialize` of a server."""
    params = {"clientInfo": {"name": "me", "version": "2"}}
    ended = run(words, home, [{"id": 1, "method": "initialize", "params": params}], **variables)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[0])["result"]


def test_a_link_named_codex_serves_the_newest_release(codex: str, tmp_path: Path) -> None:
    assert run([codex, "--version"], tmp_path).stdout == "codex-cli 0.169.0\n"
    settings = tmp_path / "settings"
    words = [codex, "--config", "model=mine", "app-server", "--listen", "stdio://"]
    result = initialized(words, tmp_path, CODEX_HOME=str(settings))
    assert result["userAgent"].startswith("me/0.169.0 ")
    assert result["codexHome"] == str(settings)


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["app-server", "--dialect", "codex-0.107"], {}),
        (["--dialect=codex-0.107", "app-server"], {}),
        (["app-server"], {"AGENT_DIALECT": "codex-0.107.0"}),
    ],
    ids=["after", "before", "variable"],
)
def test_the_release_is_chosen_by_option_or_variable(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    result = initialized([str(AGENT), *words], tmp_path, **variables)
    assert result["userAgent"].startswith("me/0.107.0 ")
    assert "codexHome" not in result


def test_without_a_dialect_the_server_speaks_as_the_text(tmp_path: Path) -> None:
    assert initialized([str(AGENT), "app-server"], tmp_path)["userAgent"].startswith("agent/")


@pytest.mark.parametrize("word", ["codex-0.1", "other", "codex-"])
def test_an_unknown_dialect_ends_the_program_with_one_line(word: str, tmp_path: Path) -> None:
    ended = run([str(AGENT), "app-server", "--dialect", word], tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"unknown dialect '{word}'; known: codex-0.107, codex-0.169" in ended.stderr


def test_the_folder_of_settings_is_the_releases(codex: str, tmp_path: Path) -> None:
    run([codex, "mcp", "add", "x", "--", "echo"], tmp_path)
    assert (tmp_path / ".codex" / "config.toml").is_file()
    assert not (tmp_path / ".agent").exists()


def test_a_thread_of_exec_is_resumed_by_its_uuid(codex: str, tmp_path: Path) -> None:
    words = [codex, "exec", "--json", "--skip-git-repo-check", "--cd", str(tmp_path)]
    home = {"CODEX_HOME": str(tmp_path / "home")}
    first = run([*words, "--scenario", "turns/plain-turn", "hi"], tmp_path, **home)
    started, *_, completed = map(json.loads, first.stdout.splitlines())
    assert completed["usage"]["reasoning_output_tokens"] == 0
    thread = started["thread_id"]
    assert len(thread) == 36
    again = run(
        [*words, "--scenario", "turns/plain-turn", "resume", thread, "more"], tmp_path, **home
    )
    assert json.loads(again.stdout.splitlines()[0]) == started, again.stderr


def test_a_thread_is_there_again_after_a_restart_with_listen_stdio(
    codex: str, tmp_path: Path
) -> None:
    words = [codex, "app-server", "--listen", "stdio://", "--scenario", "turns/plain-turn"]
    home = {"CODEX_HOME": str(tmp_path / "home")}
    text = [{"type": "text", "text": "hi"}]
    first = run(words, tmp_path, [{"id": 1, "method": "thread/start", "params": {}}], **home)
    thread = json.loads(first.stdout.splitlines()[0])["result"]["thread"]["id"]
    params = {"threadId": thread}
    started = {"id": 2, "method": "turn/start", "params": {**params, "input": text}}
    resumed = {"id": 1, "method": "thread/resume", "params": params}
    again = run(words, tmp_path, [resumed, started], **home)
    answers = [json.loads(line) for line in again.stdout.splitlines()]
    results = {one["id"]: one for one in answers if "id" in one}
    assert results[1]["result"]["thread"]["id"] == thread
    assert "result" in results[2]


def test_options_that_clients_pass_to_a_release_are_taken(codex: str, tmp_path: Path) -> None:
    words = ["app-server", "--stdio", "--strict-config", "--analytics-default-enabled"]
    assert initialized([codex, *words], tmp_path)["userAgent"].startswith("me/0.169.0 ")
    refused = run([str(AGENT), *words], tmp_path)
    assert refused.returncode == 2
    assert "there is no option --stdio" in refused.stderr


KEY = "sk-test1234567890abcdef"
OLD, NEW = "codex-0.107", "codex-0.169"
TOLD = {
    OLD: ("Successfully logged in\n", "Logged in using an API key - {}\n"),
    NEW: (
        "API key saved. Authentication is checked when you send a request.\n",
        "API key configured - {}\nAuthentication is checked when you send a request.\n",
    ),
}


def log_in(home: Path, key: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return run_agent(
        [str(AGENT), "login", "--with-api-key"],
        env={"HOME": str(home), "PATH": os.environ["PATH"], **variables},
        input=key,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("release", [OLD, NEW])
@pytest.mark.parametrize(
    ("key", "masked"),
    [(KEY, "sk-test1***bcdef"), ("sk-1234567890", "***"), ("sk-12345678901", "sk-12345***78901")],
)
def test_a_key_is_saved_told_and_removed(
    release: str, key: str, masked: str, tmp_path: Path
) -> None:
    """The releases 0.107.0 and 0.169.0 wrote these words on standard error."""
    settings = tmp_path / "new" / "settings"
    variables = {"AGENT_DIALECT": release, "CODEX_HOME": str(settings)}
    saved, status = TOLD[release]

    def said(*words: str) -> tuple[int, str]:
        ended = run([str(AGENT), *words], tmp_path, **variables)
        assert ended.stdout == ""
        return ended.returncode, ended.stderr

    assert said("login", "status") == (1, "Not logged in\n")
    assert said("logout") == (0, "Not logged in\n")
    ended = log_in(tmp_path, f"{key}\n", **variables)
    assert (ended.returncode, ended.stderr) == (0, f"Reading API key from stdin...\n{saved}")
    file = settings / "auth.json"
    assert json.loads(file.read_text()) == {"auth_mode": "apikey", "OPENAI_API_KEY": key}
    assert file.stat().st_mode & 0o777 == 0o600
    assert said("login", "status") == (0, status.format(masked))
    assert said("logout") == (0, "Successfully logged out\n")
    assert not file.exists()


def test_a_double_is_logged_in_until_its_client_logs_out(tmp_path: Path) -> None:
    variables = {"AGENT_DIALECT": OLD, "AGENT_PROGRAM_SOCKET": "nobody listens here"}
    statuses = [
        run([str(AGENT), *words.split()], tmp_path, **variables).returncode
        for words in ("login status", "logout", "login status")
    ]
    assert statuses == [0, 0, 1]
    assert log_in(tmp_path, KEY, **variables).returncode == 0
    assert run([str(AGENT), "login", "status"], tmp_path, **variables).returncode == 0


def test_no_key_is_not_saved(tmp_path: Path) -> None:
    ended = log_in(tmp_path, " \n", AGENT_DIALECT=NEW)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        "No API key provided via stdin.",
    )
    assert run([str(AGENT), "login", "status"], tmp_path, AGENT_DIALECT=NEW).returncode == 1


@pytest.mark.parametrize("text", ["", "[]", '{"OPENAI_API_KEY": null}', "[" * 9999])
def test_file_without_a_key_is_not_logged_in(text: str, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text(text)
    ended = run([str(AGENT), "login", "status"], tmp_path, AGENT_DIALECT=NEW)
    assert (ended.returncode, ended.stderr) == (1, "Not logged in\n")


def test_a_pipe_in_the_place_of_the_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    os.mkfifo(tmp_path / ".codex" / "auth.json")
    ended = run([str(AGENT), "login", "status"], tmp_path, AGENT_DIALECT=NEW)
    assert ended.returncode == 1
    assert ended.stderr.endswith("/auth.json: not a regular file\n")


def test_a_link_to_the_file_of_another_home_is_followed(tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": KEY}))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").symlink_to(tmp_path / "auth.json")
    assert run([str(AGENT), "login", "status"], tmp_path, AGENT_DIALECT=NEW).returncode == 0


@pytest.mark.parametrize(
    ("words", "status"), [(["login", "me"], 2), (["logout", "now"], 2), (["login"], 1)]
)
def test_other_words_of_login_end_with_one_line(
    words: list[str], status: int, tmp_path: Path
) -> None:
    ended = run([str(AGENT), *words], tmp_path, AGENT_DIALECT=NEW)
    assert ended.returncode == status
    assert ended.stderr.startswith("codex: ")
    assert ended.stderr.count("\n") == 1


def test_without_a_dialect_there_is_no_login(tmp_path: Path) -> None:
    ended = run([str(AGENT), "login", "status"], tmp_path)
    assert (ended.returncode, ended.stderr) == (
        2,
        "agent: there is no command `login`; see agent --help\n",
    )
