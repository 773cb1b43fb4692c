"""`agent mcp list`, `get`, `add` and `remove`: each row of the document, with real files.

Source: mcp-cli-and-sdk "Command-line commands", "MCP server configuration", "Errors" 5.
"""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from agent_mcp import Home

from reference_server.config.load import load_config
from tests.processes import Said

pytestmark = [pytest.mark.socket, pytest.mark.slow]

COLUMNS = ["Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"]
MIXED = """
[mcp_servers.web]
url = "https://me:pw-secret@web.invalid/mcp?api_key=k-secret&page=2"
bearer_token_env_var = "WEB_TOKEN"

[mcp_servers.files]
enabled = false
command = "serve files"
args = ["--root", "/a b", "--token", "t-secret"]
env = { ROOT = "/", FILES_KEY = "f-secret" }
cwd = "/srv"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_list_is_a_table_with_the_columns_of_the_document(home: Home) -> None:
    home.write(MIXED)
    files = ["files", "serve files", "--root '/a b' --token *****"]
    assert home.table() == [
        COLUMNS,
        [*files, "ROOT=*****, FILES_KEY=*****", "/srv", "disabled", "unsupported"],
        [
            *("web", "https://me:*****@web.invalid/mcp?api_key=*****&page=2", "-", "-", "-"),
            *("enabled", "bearer token"),
        ],
    ]


def test_list_as_json_is_an_array_with_names_and_auth(home: Home) -> None:
    home.write(MIXED)
    files, web = home.json("list")
    assert (files["name"], files["enabled"], files["auth_status"]) == (
        *("files", False),
        "unsupported",
    )
    assert (web["name"], web["enabled"], web["auth_status"]) == ("web", True, "bearer_token")


def test_a_list_of_nothing_says_how_to_add_something(home: Home) -> None:
    said = home.mcp("list")
    assert (said.status, said.err) == (0, "")
    assert "agent mcp add NAME -- COMMAND" in said.out
    assert home.json("list") == []
    assert not home.config.parent.exists()


def test_get_shows_a_program_and_how_to_remove_it(home: Home) -> None:
    home.write(MIXED)
    assert home.mcp("get", "files").out.splitlines() == [
        "files",
        "  enabled: false",
        "  transport: stdio",
        "  command: serve files",
        "  args: --root '/a b' --token *****",
        "  cwd: /srv",
        "  env: ROOT=*****, FILES_KEY=*****",
        "  auth: unsupported",
        "  remove: agent mcp remove files",
    ]


def test_get_shows_an_address(home: Home) -> None:
    home.write(MIXED)
    assert home.mcp("get", "web").out.splitlines() == [
        "web",
        "  enabled: true",
        "  transport: streamable_http",
        "  url: https://me:*****@web.invalid/mcp?api_key=*****&page=2",
        "  bearer_token_env_var: WEB_TOKEN",
        "  auth: bearer token",
        "  remove: agent mcp remove web",
    ]


def test_get_as_json_has_the_transport_with_its_type(home: Home) -> None:
    home.write(MIXED)
    assert home.json("get", "files")["transport"] == {
        "type": "stdio",
        "command": "serve files",
        "args": ["--root", "/a b", "--token", "*****"],
        "env": {"ROOT": "*****", "FILES_KEY": "*****"},
        "cwd": "/srv",
    }
    assert home.json("get", "web")["transport"]["type"] == "streamable_http"


def test_secrets_are_shown_to_whoever_asks_for_them(home: Home) -> None:
    home.write(MIXED)
    secrets = ("pw-secret", "k-secret", "t-secret", "f-secret")
    ways = [["list"], ["list", "--json"], ["get", "files"], ["get", "web", "--json"]]
    hidden = "".join(home.mcp(*way).out for way in ways)
    assert [one for one in secrets if one in hidden] == []
    shown = "".join(home.mcp(*way, "--show-secrets").out for way in ways)
    assert [one for one in secrets if one not in shown] == []
    assert home.json("get", "files", "--show-secrets")["transport"]["env"]["ROOT"] == "/"


def test_an_unknown_server_is_told_with_those_that_there_are(home: Home) -> None:
    home.write(MIXED)
    words = "agent mcp get: No MCP server named 'fils' exists; did you mean `files`?\n"
    assert home.mcp("get", "fils") == Said(1, "", words)
    words = "agent mcp get: No MCP server named 'x' exists; there are: files, web\n"
    assert home.mcp("get", "x", "--json") == Said(1, "", words)


def test_add_writes_a_program_with_the_words_as_they_are(home: Home) -> None:
    words = ["serve", "--env", "A=1", "--url", "u", "--", "-x", "", 'a "b"\n']
    said = home.mcp("add", "--env", "K=v=w", "one", "--env", "E=", "--env", "K=x", "--", *words)
    assert said == Said(0, "Added global MCP server 'one'.\n")
    assert home.servers() == {
        "one": {
            "enabled": True,
            "transport": {"type": "stdio", "command": "serve", "args": words[1:]},
            "env": {"K": "x", "E": ""},
        }
    }
    assert "\n[mcp_servers.one]\n" in f"\n{home.config.read_text()}"
    [server] = load_config(home.config, {}).mcp_servers.values()
    assert [server.command, *server.args] == words
    assert home.json("get", "one")["transport"]["args"] == words[1:]


def test_add_writes_an_address_and_the_name_of_a_variable(home: Home) -> None:
    url = "https://x.invalid/mcp"
    said = home.mcp("add", "a-1_B", "--url", url, "--bearer-token-env-var", "T", T="the-token")
    assert said == Said(0, "Added global MCP server 'a-1_B'.\n")
    assert home.servers() == {
        "a-1_B": {
            "enabled": True,
            "transport": {"type": "streamable_http", "url": url},
            "bearer_token_env_var": "T",
        }
    }
    assert "the-token" not in home.config.read_text()
    assert home.mcp("add", "bare", f"--url={url}").status == 0
    assert "bearer_token_env_var" not in home.servers()["bare"]
    assert [one["auth_status"] for one in home.json("list")] == ["bearer_token", "unknown"]


def test_a_token_that_others_can_read_on_its_way_is_told(home: Home) -> None:
    words = "agent mcp add: whoever is on the way can read the token: this is http://\n"
    for name, url, told in (
        ("far", "http://x.invalid/mcp", words),
        ("near", "http://127.0.0.1:8000/mcp", ""),
        ("feigned", "http://127.0.0.1.x.invalid/mcp", words),
        ("safe", "https://x.invalid/mcp", ""),
    ):
        said = home.mcp("add", name, "--url", url, "--bearer-token-env-var", "T")
        assert said == Said(0, f"Added global MCP server '{name}'.\n", told)


def test_files_that_add_makes_are_private(home: Home) -> None:
    home.mcp("add", "x", "--", "c")
    modes = [path.stat().st_mode & 0o777 for path in (home.config.parent, home.config)]
    assert modes == [0o700, 0o600]


def test_a_server_that_is_there_is_replaced_only_on_request(home: Home) -> None:
    home.write("[mcp_servers.x]\ncommand = 'old' # why\nstartup_timeout_sec = 3 # slow\n")
    before = home.config.read_bytes()
    words = f"agent mcp add: {home.config}:1:14: an MCP server named 'x' exists; "
    assert home.mcp("add", "x", "--", "new") == Said(1, "", f"{words}--force replaces it\n")
    assert home.config.read_bytes() == before
    assert home.mcp("add", "--force", "x", "--", "new").status == 0
    assert home.servers()["x"]["transport"]["command"] == "new"
    assert home.config.read_text().endswith("startup_timeout_sec = 3 # slow\n")


def test_remove_says_that_the_server_is_gone_or_was_not_there(home: Home) -> None:
    home.write(MIXED)
    assert home.mcp("remove", "web") == Said(0, "Removed global MCP server 'web'.\n")
    assert home.config.read_text() == MIXED[MIXED.index("\n[mcp_servers.files]") :]
    before = home.config.read_bytes()
    assert home.mcp("remove", "web") == Said(1, "No MCP server named 'web' exists.\n")
    assert home.mcp("remove", "w.b") == Said(1, "No MCP server named 'w.b' exists.\n")
    assert home.config.read_bytes() == before


def test_removing_from_nothing_makes_no_file(home: Home) -> None:
    assert home.mcp("remove", "x") == Said(1, "No MCP server named 'x' exists.\n")
    assert not home.config.parent.exists()


def test_agent_home_takes_the_place_of_the_users(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert home.mcp("add", "x", "--", "c", AGENT_HOME=str(elsewhere)).status == 0
    assert (elsewhere / "config.toml").is_file()
    assert not home.config.parent.exists()


def chunks(terminal: int) -> Iterator[bytes]:
    """Yield the output of a terminal until its last writer closes it."""
    with suppress(OSError):
        while chunk := os.read(terminal, 65536):
            yield chunk


def test_a_terminal_gets_a_table_that_fits_and_no_code_of_the_file(home: Home) -> None:
    home.write(
        '[mcp_servers.x]\ncommand = "\\u001b[31mred [bold]"\nargs = ["' + "long " * 30 + '"]'
    )
    env = {"HOME": str(home.folder), "TERM": "xterm", "COLUMNS": "60", "PATH": os.environ["PATH"]}
    ours, theirs = pty.openpty()
    with subprocess.Popen(home.command("list"), stdin=theirs, stdout=theirs, env=env) as process:
        os.close(theirs)
        shown = b"".join(chunks(ours))
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode()
    assert "\x1b[1m" in text, "headings are bold in a terminal"
    assert "\x1b[31m" not in text
    plain = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 60
    assert plain.count("long") == 30
