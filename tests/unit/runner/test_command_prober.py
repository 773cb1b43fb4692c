"""Detection of unsupported commands: the agent rejects them as it rejects an unknown word."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

import pytest

from harness.client.target.profile import ExecProgram, Profile
from harness.play.agent_mcp.prober import UNKNOWN_WORD, CommandProber, is_refused_alike
from harness.play.agent_mcp.run import CommandResult
from harness.play.config import configure

Agent = Callable[[Sequence[str]], CommandResult]


def ended(status: int | None, err: str = "", out: str = "", *, cut: bool = False) -> CommandResult:
    return CommandResult(status, out.encode(), err.encode(), cut)


def knowing(*known: str) -> Agent:
    """An agent that knows these words as commands, and as subcommands."""

    def run(words: Sequence[str]) -> CommandResult:
        for place in (0, 1):
            if words[place] not in known and (place == 0 or words[0] == "mcp"):
                err = f"usage: agent {{{','.join(known)}}}\nagent: unknown command '{words[place]}'"
                return ended(2, err)
        return ended(0, out="done")

    return run


def lacking(agent: Agent, *needs: str, **more: object) -> tuple[list[str], list[list[str]]]:
    """Return the missing needs of an agent, and the command lines with which it was run."""
    asked: list[list[str]] = []

    async def ask(words: Sequence[str]) -> CommandResult:
        asked.append(list(words))
        return agent(words)

    prober = CommandProber(Profile(name="p", **more), ask)  # pyright: ignore[reportArgumentType]
    return asyncio.run(prober.missing_needs(needs)), asked


ALL = ("exec", "mcp-command", "mcp-login", "storage")


def test_commands_that_are_refused_like_a_word_of_nobodys_are_lacking() -> None:
    assert lacking(knowing("exec"), "exec", "mcp-command")[0] == ["mcp-command"]
    assert lacking(knowing("mcp", "list"), "exec", "mcp-command")[0] == ["exec"]
    assert lacking(knowing("exec", "mcp", "list"), *ALL)[0] == ["mcp-login"]
    assert lacking(knowing("exec", "mcp", "list", "logout"), *ALL)[0] == []


def test_an_agent_that_refuses_all_of_its_commands_lacks_none() -> None:
    assert lacking(knowing("serve"), "exec")[0] == []
    assert lacking(knowing("serve"), "mcp-command")[0] == []


def test_a_command_that_fails_in_words_of_its_own_is_known() -> None:
    def broken(words: Sequence[str]) -> CommandResult:
        known = knowing("exec", "mcp", "list")(words)
        return known if words[0] != "mcp" else ended(2, "agent mcp: Traceback: no such file")

    assert lacking(broken, "exec", "mcp-command")[0] == []


def test_each_command_is_asked_for_once_and_nothing_where_something_is_promised() -> None:
    needs = ("mcp-command", "mcp-command")
    assert lacking(knowing("mcp", "list"), *needs)[1] == [[UNKNOWN_WORD, "list"], ["mcp", "list"]]
    assert lacking(knowing("exec"), *ALL, capabilities=["core", "exec"]) == ([], [])
    assert lacking(knowing("exec"), "core", "storage") == ([], [])


@pytest.mark.parametrize("arguments", [[], ["--events"]], ids=["no-words", "options-alone"])
def test_a_turn_that_has_no_command_is_not_asked_for(arguments: list[str]) -> None:
    program = ExecProgram(command=["agent"], arguments=arguments)
    assert lacking(knowing("mcp"), "exec", exec=program) == ([], [])


REFUSED = ended(2, f"error: unrecognized subcommand '{UNKNOWN_WORD}'")


@pytest.mark.parametrize(
    ("asked", "unknown", "alike"),
    [
        (ended(2, "error: unrecognized subcommand 'mcp'"), REFUSED, True),
        (
            ended(2, "error: unrecognized subcommand 'mcp'\n  tip: did you mean 'cp'?"),
            REFUSED,
            True,
        ),
        (ended(1, "error: unrecognized subcommand 'mcp'"), REFUSED, False),
        (ended(2, "error: mcp needs a file"), REFUSED, False),
        (ended(2, "usage: agent"), ended(2, "usage: agent"), False),
        (ended(2, "error: 'mcps'"), ended(2, f"error: '{UNKNOWN_WORD}'"), False),
        (ended(None, "unknown mcp", cut=True), ended(None, f"unknown {UNKNOWN_WORD}"), False),
        (ended(2, "/opt/mcp: no mcp"), ended(2, f"/opt/mcp: no {UNKNOWN_WORD}"), True),
    ],
    ids=["alike", "with-a-tip", "status", "own-words", "not-named", "longer-word", "cut", "path"],
)
def test_a_refusal_is_compared_by_what_names_the_word(
    asked: CommandResult, unknown: CommandResult, *, alike: bool
) -> None:
    assert is_refused_alike("mcp", asked, unknown) is alike


@pytest.mark.parametrize(
    ("require", "promised"),
    [
        ("storage", {"core", "exec", "storage"}),
        ("mcp-command", {"core", "mcp-command"}),
        ("exec,mcp-command", {"core", "exec", "mcp-command"}),
    ],
)
def test_required_capabilities_of_an_agent_are_promised_with_a_command(
    require: str, promised: set[str]
) -> None:
    config = configure(agent_cmd=sys.executable, require=require)
    assert {*config.profile.capabilities} == promised
