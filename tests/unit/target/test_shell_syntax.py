"""Errors about shell syntax in a command name the command to write instead."""

from pathlib import Path

import pytest

from harness.client.target.program import find_program
from harness.client.target.shell_syntax import split_command, unexpanded_arguments
from harness.errors import UsageError


@pytest.mark.parametrize(
    ("command", "operator"),
    [
        ("agent app-server | tee log", "|"),
        ("cd x && agent app-server", "&&"),
        ("cd x ; agent app-server", ";"),
        ("agent app-server || true", "||"),
        ("agent app-server > log", ">"),
        ("agent app-server 2> log", "2>"),
        ("agent app-server >> log", ">>"),
        ("agent app-server 2>&1", "2>&1"),
        ("agent app-server &> log", "&>"),
        ("agent app-server < in", "<"),
        ("agent app-server &", "&"),
        ("agent app-server 2>/dev/null", "2>/dev/null"),
        ("agent app-server >log", ">log"),
        ("agent app-server 2>err.log", "2>err.log"),
        ("agent app-server >>log", ">>log"),
        ("agent app-server &>log", "&>log"),
        ("agent app-server <in", "<in"),
        ("agent app-server>log", "app-server>log"),
        ('agent >"my log"', '>"my log"'),
        ("python server.py;", "server.py;"),
        ("agent app-server&", "app-server&"),
    ],
)
def test_an_operator_of_a_shell_is_refused_with_the_command_to_write(
    command: str, operator: str
) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(command)
    words = f"the command holds {operator!r}, and no shell runs it; write sh -c '{command}', "
    assert str(caught.value) == f"{words}or quote what is a word"


@pytest.mark.parametrize(
    "command",
    [
        "agent --url http://x/?a=1&b=2 --both a;b",
        "agent '|' \"&&\" \\;",
        "agent '2>/dev/null' \">log\" 'a;' x\\> \\<in --not='>log' end\\;",
        "sh -c 'agent app-server | tee log'",
        "python -c 'import a; a.serve()'",
        "agent --listen {listen}",
    ],
)
def test_quoted_signs_and_parts_of_words_are_not_operators(command: str) -> None:
    assert split_command(command)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            ["X=1", "agent", "app server"],
            "so X=1 sets no variable; write env X=1 agent 'app server', or put it into [env]",
        ),
        (["$HOME/agent"], "so $HOME/agent is not replaced; write its value"),
        (["${AGENT}", "x"], "so ${AGENT} is not replaced; write its value"),
        (["cd", "x"], "no shell runs the command; write sh -c 'cd x'"),
        (["source", "env.sh"], "no shell runs the command; write sh -c 'source env.sh'"),
        (["setup;", "agent"], "no shell runs the command; write sh -c 'setup; agent'"),
    ],
)
def test_words_that_only_a_shell_would_expand_are_reported(words: list[str], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_program(words)
    assert f"the server's program {words[0]!r} was not found; " in str(caught.value)
    assert advice in str(caught.value)


def test_a_home_is_written_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match=f"~ is not replaced; write {tmp_path}/bin/agent"):
        find_program(["~/bin/agent"])


def test_a_program_that_no_shell_would_find_either_gets_no_such_advice() -> None:
    with pytest.raises(UsageError) as caught:
        find_program(["no-such-program"])
    assert "shell" not in str(caught.value)


def test_arguments_that_a_shell_would_replace_are_named() -> None:
    words = ["agent", "--home", "$HOME", "~/x", "a~/b", "{home}", "--n", "${N}", "cost$"]
    assert list(unexpanded_arguments(words)) == ["$HOME", "~/x", "${N}"]
