"""The variables of a command: a short list of the server's, and what config.toml adds."""

from reference_server.sandbox.environment import (
    PASSED_VARIABLES,
    CommandVariables,
    command_environment,
)

NOTHING_MORE = CommandVariables()
SERVER = {
    "PATH": "/bin",
    "HOME": "/h",
    "LC_TIME": "C",
    "GITHUB_PAT": "1",
    "DATABASE_URL": "2",
    "AWS_PROFILE": "3",
    "SSH_AUTH_SOCK": "/s",
    "BASH_ENV": "/evil",
    "LD_PRELOAD": "/evil.so",
    "TERM": "vt100",
    "PAGER": "less",
}


def test_a_command_gets_a_short_list_of_the_servers_variables() -> None:
    assert command_environment(SERVER, NOTHING_MORE, tty=False) == {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_TIME": "C",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
    }


def test_the_list_is_short_and_names_no_secret() -> None:
    words = ("KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL", "URL")
    assert not [name for name in PASSED_VARIABLES if any(word in name for word in words)]
    assert "*" not in PASSED_VARIABLES


def test_a_terminal_has_the_servers_kind_of_terminal() -> None:
    assert command_environment(SERVER, NOTHING_MORE, tty=True)["TERM"] == "vt100"
    assert command_environment({}, NOTHING_MORE, tty=True) == {"TERM": "xterm-256color"}


def test_the_settings_pass_and_add_variables() -> None:
    wanted = CommandVariables(("SSH_AUTH_SOCK", "AWS_*"), {"TERM": "ansi", "NEW": "x"})
    made = command_environment(SERVER, wanted, tty=False)
    assert (made["SSH_AUTH_SOCK"], made["AWS_PROFILE"]) == ("/s", "3")
    assert (made["TERM"], made["NEW"]) == ("ansi", "x")
    assert "GITHUB_PAT" not in made


def test_no_pattern_passes_what_is_withheld() -> None:
    wanted = CommandVariables(("*",), {}, frozenset({"GITHUB_PAT"}))
    made = command_environment(SERVER, wanted, tty=False)
    assert "GITHUB_PAT" not in made
    assert made["DATABASE_URL"] == "2"
