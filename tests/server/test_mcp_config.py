"""`[mcp_servers.NAME]` of config.toml."""

from pathlib import Path

import pytest

from reference_server.config.load import ConfigError, load_config
from reference_server.config.mcp import McpServer
from reference_server.config.model import Config
from reference_server.model.secrets import Secrets

DOCUMENT = """
[mcp_servers.files]
enabled = true
transport = { type = "stdio", command = "serve-files", args = ["--root", "/"] }
env = { ROOT = "/", FILES_API_KEY = "files-secret-1" }

[mcp_servers.web]
transport = { type = "streamable_http", url = "https://web.invalid/mcp" }
bearer_token_env_var = "WEB_TOKEN"
"""
FLAT = """
[mcp_servers.files]
command = "serve-files"
args = ["--root", "/"]
env.ROOT = "/"
env.FILES_API_KEY = "files-secret-1"

[mcp_servers.web]
url = "https://web.invalid/mcp"
bearer_token_env_var = "WEB_TOKEN"
"""
SERVERS = {
    "files": McpServer(
        "files",
        "serve-files",
        ("--root", "/"),
        {"ROOT": "/", "FILES_API_KEY": "files-secret-1"},
    ),
    "web": McpServer("web", url="https://web.invalid/mcp", token_variable="WEB_TOKEN"),
}


def load(folder: Path, text: str, **environment: str) -> Config:
    path = folder / "config.toml"
    path.write_text(text)
    return load_config(path, environment)


def mistake_in(tmp_path: Path, text: str) -> str:
    """Return the message about the mistake in a text, whether it is an error or a warning."""
    told: list[str] = []
    path = tmp_path / "config.toml"
    path.write_text(text)
    try:
        load_config(path, {}, told.append)
    except ConfigError as error:
        return str(error)
    return told[0]


@pytest.mark.parametrize("text", [DOCUMENT, FLAT], ids=["document", "flat"])
def test_both_forms_say_the_same(tmp_path, text) -> None:
    assert load(tmp_path, text).mcp_servers == SERVERS


def test_the_other_keys_are_read(tmp_path) -> None:
    more = """
[mcp_servers.a]
command = "a"
cwd = "/tmp"
startup_timeout_sec = 1.5
tool_timeout_sec = 2
enabled_tools = ["x", "y"]
disabled_tools = ["y"]
"""
    [server] = load(tmp_path, more).mcp_servers.values()
    assert (server.cwd, server.startup_timeout, server.call_timeout) == ("/tmp", 1.5, 2.0)
    assert [server.offers(tool) for tool in "xyz"] == [True, False, False]


def test_a_server_that_is_not_enabled_is_none(tmp_path) -> None:
    off = '[mcp_servers.a]\ncommand = "a"\nenabled = false\n'
    assert load(tmp_path, off).mcp_servers == {}


def test_variables_of_a_program_mean_nothing_to_an_address(tmp_path) -> None:
    odd = '[mcp_servers.a]\nurl = "http://a.invalid"\nenv = {A = "b"}\n'
    assert load(tmp_path, odd).mcp_servers == {"a": McpServer("a", url="http://a.invalid")}


ONE_WAY = "a table of one kind: stdio has `command`, streamable_http has `url`"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('["mcp_servers"."a b"]\ncommand = "x"', 1, "a name of letters, digits, hyphens"),
        ("[mcp_servers.a]\nenabled = true", 1, "a table with the `command` of a program or the"),
        ('[mcp_servers.a]\ncommand = "x"\nurl = "http://x"', 1, ONE_WAY),
        ('[mcp_servers.a]\nurl = "http://x"\nargs = []', 1, ONE_WAY),
        ('[mcp_servers.a]\ntransport = {type = "stdio", url = "http://x"}', 1, ONE_WAY),
        (
            '[mcp_servers.a]\ncommand = "x"\ntransport = {type = "stdio", command = "x"}',
            1,
            "a table with either `transport` or `command` and `url` beside it",
        ),
        ('[mcp_servers.a.transport]\ntype = "sse"', 2, "one of stdio, streamable_http"),
        ('[mcp_servers.a]\nurl = "ftp://x"', 2, "an address that begins with http:// or https://"),
        ('[mcp_servers.a]\nurl = "http:///x"', 2, "an address that begins with http:// or https"),
        (
            '[mcp_servers.a]\ncommand = ""',
            2,
            "`command` of the MCP server `a` must be a program, without",
        ),
        (
            '[mcp_servers.a]\ncommand = "x"\nargs = "y"',
            3,
            "`args` of the MCP server `a` must be an array of strings",
        ),
        ('[mcp_servers.a]\ncommand = "x"\nenabled = 1', 3, "true or false, not 1"),
        ('[mcp_servers.a]\ncommand = "x"\ntool_timeout_sec = 0', 3, "a number of seconds"),
        ('[mcp_servers.a]\ncommand = "x"\nstartup_timeout_sec = nan', 3, "a number of seconds"),
        (
            '[mcp_servers.a]\ncommand = "x"\nenv.A = 1',
            3,
            "`A` of the MCP server `a` must be a string without NUL",
        ),
        ("mcp_servers = 1", 1, "a table, not 1"),
        ("[mcp_servers]\na = 1", 2, "a table, not 1"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, text, line, words) -> None:
    message = mistake_in(tmp_path, text)
    assert message.startswith(f"{tmp_path}/config.toml:{line}:")
    assert words in message


def test_a_key_that_is_not_known_is_told(tmp_path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[mcp_servers.a]\ncomand = "x"\n'
        'transport = {type = "stdio", command = "serve", arg = []}\n'
        'env = {anything = "goes"}\n'
    )
    told: list[str] = []
    load_config(path, {}, told.append)
    assert [line.removeprefix(str(path)) for line in told] == [
        ":2:1: there is no key `comand` here; did you mean `command`?",
        ":3:49: there is no key `arg` here; did you mean `args`?",
    ]


def test_tokens_passwords_and_keys_of_servers_are_secrets(tmp_path) -> None:
    more = '[mcp_servers.c]\nurl = "https://me:door-secret-3@c.invalid"\n'
    config = load(tmp_path, DOCUMENT + more, WEB_TOKEN="web-secret-2")
    hidden = Secrets.of_config(config).redact("files-secret-1 web-secret-2 door-secret-3 /")
    assert hidden == "[key] [key] [key] /"


def test_printed_settings_do_not_hold_a_programs_variables(tmp_path) -> None:
    assert "files-secret-1" not in repr(load(tmp_path, DOCUMENT))
