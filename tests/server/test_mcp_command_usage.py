"""`agent mcp` with invalid arguments: messages, their stream, and nothing is written."""

import os
from pathlib import Path

import pytest
from agent_mcp import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# A name, what follows it, and what is said.
USAGE = {
    "a dot in the name": (["a.b", "--", "c"], "'a.b' cannot be the name of a server"),
    "another alphabet": (["é", "--", "c"], "cannot be the name of a server: use letters"),
    "no name": (["", "--", "c"], "'' cannot be the name of a server"),
    "nothing to add": (["x"], "agent mcp add x -- COMMAND [ARGS...]"),
    "no word of a command": (["x", "--"], "agent mcp add x -- COMMAND [ARGS...]"),
    "an empty command": (["x", "--", ""], "the command is empty"),
    "a command without --": (["x", "npx", "y"], "put `--` before the command: agent mcp add x --"),
    "an option of the command": (["x", "--evn", "K=v-secret"], "there is no option --evn here"),
    "an address and a command": (["x", "--url", "http://h", "--", "c"], "not both"),
    "an address with variables": (["x", "--url", "http://h", "--env", "K=v"], "--env is for a pro"),
    "a token for a program": (
        ["x", "--bearer-token-env-var", "T", "--", "c"],
        "is for a server at",
    ),
    "a token, not a name": (
        ["x", "--url", "http://h", "--bearer-token-env-var", "v-secret"],
        "must be the name of an environment variable that holds the token, not the token",
    ),
    "no value": (["x", "--env", "v-secret", "--", "c"], "--env must be KEY=VALUE"),
    "no key": (["x", "--env", "=v-secret", "--", "c"], "--env must be KEY=VALUE"),
    "no address": (["x", "--url", "v-secret"], "--url must be an address that begins with http"),
    "another protocol": (["x", "--url", "ftp://h"], "--url must be an address that begins with"),
    "no host": (["x", "--url", "http:///p"], "--url must be an address that begins with http"),
    "a wrong port": (["x", "--url", "http://h:99999"], "--url must be an address"),
    "an address in two lines": (["x", "--url", "http://h/\n"], "--url must be an address"),
    "bytes that are no text": (["x", "--", "c", os.fsdecode(b"\xff")], "is not UTF-8"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_wrong_add_says_what_is_right_and_writes_nothing(home: Home, case: str) -> None:
    words, told = USAGE[case]
    said = home.call("add", *words)
    assert (said.status, said.out) == (2, "")
    assert told in said.err
    assert "v-secret" not in said.err
    assert not home.config.parent.exists()


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ([], 2, "usage: agent mcp COMMAND"),
        (["lst"], 2, "there is no command `lst`; did you mean `list`?"),
        (["list", "x"], 2, "unrecognized arguments: x"),
        (["list", "--js"], 2, "unrecognized arguments: --js"),
        (["get"], 2, "the following arguments are required: NAME"),
        (["remove"], 2, "the following arguments are required: NAME"),
    ],
)
def test_wrong_usage_is_told_on_standard_error(
    home: Home, words: list[str], status: int, told: str
) -> None:
    said = home.call(*words)
    assert (said.status, said.out) == (status, "")
    assert told in said.err


@pytest.mark.parametrize("words", [[], ["list"], ["get"], ["add"], ["remove"]])
def test_help_is_on_standard_output(home: Home, words: list[str]) -> None:
    said = home.call(*words, "--help")
    assert (said.status, said.err) == (0, "")
    assert " ".join(["usage: agent mcp", *words]) in said.out
