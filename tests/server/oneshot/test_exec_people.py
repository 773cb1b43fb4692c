"""`agent exec` for people: progress on stderr, the final message on stdout; and its file."""

import os
import pty
import re
import sys

import pytest
from runs import SAYS_HELLO, Agent, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

PLAIN = ("--skip-git-repo-check", "-s", "danger-full-access")
ESCAPE = b"\x1b"
WORK = (
    "[{message: I look.}, {run: 'echo out; exit 3'}, {patch: {add: {a: x}}},"
    " {update_plan: {steps: [{step: look, status: completed}]}}]"
)


def play(agent: Agent, *words: str, replies: tuple[str, ...] = (SAYS_HELLO,), **more):
    model = ("--scenario", scenario(agent.folder, *replies))
    return agent.run(*PLAIN, *model, *words, stdin=b"hi", **more)


def test_the_final_message_alone_is_on_standard_output(agent: Agent) -> None:
    ran = play(agent, replies=(WORK, SAYS_HELLO))
    assert (ran.status, ran.out) == (0, b"Hello\n")
    assert ran.err.splitlines() == [
        f"thread thr_1 in {agent.cwd}",
        "I look.",
        "$ bash -c 'echo out; exit 3'",
        "out",
        "exit code 3",
        f"A {agent.cwd}/a",
        "[x] look",
        "tokens: 20 in, 0 of them cached, 10 out",
    ]


def test_a_failed_turn_says_so_on_standard_error_alone(agent: Agent) -> None:
    ran = play(agent, replies=("[{message: I look.}, {run: 'true'}]", "fail: {status: 401}"))
    assert (ran.status, ran.out) == (1, b"")
    assert "401" in ran.err.splitlines()[-1]


def test_a_declined_command_says_why(agent: Agent) -> None:
    replies = ("[{run: 'touch made'}]", SAYS_HELLO)
    ran = play(agent, "-c", "approval_policy=on-request", replies=replies)
    assert ran.status == 0
    assert "declined: the approval policy asks, and nobody can be asked here" in ran.err
    assert not (agent.cwd / "made").exists()


@pytest.mark.parametrize(("when", "colored"), [("auto", False), ("never", False), ("always", True)])
def test_no_control_codes_are_piped_unless_asked_for(
    agent: Agent, when: str, colored: bool
) -> None:
    ran = play(agent, "--color", when)
    assert (ESCAPE in ran.err.encode()) == colored
    assert ESCAPE not in ran.out


def test_a_terminal_is_shown_no_control_characters_of_others(agent: Agent) -> None:
    text = r'"\e]0;title\a\e[2Jgone\r\u202eback"'
    command = r"[{run: 'printf \"\\033]0;x\\007\\033[2J\"'}]"
    model = ("--scenario", scenario(agent.folder, command, f"[{{message: {text}}}]"))
    ours, theirs = pty.openpty()
    with agent.start(*PLAIN, *model, "--color", "never", "hi", stdout=theirs, stderr=theirs) as ran:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:
                break
        os.close(ours)
        assert ran.wait(30) == 0
    assert ESCAPE not in shown
    assert b"\x07" not in shown
    assert rb"\x1b]0;title\x07\x1b[2Jgone\x0d\x202eback" in shown
    # A terminal of the system adds the only carriage returns.
    assert re.findall(rb"\r(?!\n)", shown) == []


def test_piped_output_is_the_message_unchanged(agent: Agent) -> None:
    ran = play(agent, replies=(r'[{message: "\e[1mbold\e[0m"}]',))
    assert ran.out == b"\x1b[1mbold\x1b[0m\n"
    assert ESCAPE not in ran.err.encode()


def test_the_final_message_is_written_to_a_file_too(agent: Agent) -> None:
    (agent.cwd / "out").write_text("a longer text of another run")
    (agent.cwd / "out").chmod(0o640)
    ran = play(agent, "-o", "out")
    assert ran.out == b"Hello\n"
    assert (agent.cwd / "out").read_text() == "Hello"
    assert (agent.cwd / "out").stat().st_mode & 0o777 == 0o640


def test_the_file_is_written_with_json_too_and_where_the_turn_fails(agent: Agent) -> None:
    (agent.cwd / "out").write_text("of another run")
    ran = play(agent, "--json", "-o", "out", replies=("fail: {status: 401}",))
    assert ran.status == 1
    assert (agent.cwd / "out").read_text() == ""


def test_a_link_that_the_model_puts_at_the_files_place_is_not_followed(agent: Agent) -> None:
    (agent.folder / "precious").write_text("kept")
    command = "[{run: 'ln -sf ../precious out'}]"
    ran = play(agent, "-o", "out", replies=(command, SAYS_HELLO))
    assert ran.status == 0
    assert (agent.folder / "precious").read_text() == "kept"
    assert (agent.cwd / "out").read_text() == "Hello"


def test_a_folder_that_the_model_replaces_is_not_followed(agent: Agent) -> None:
    (agent.cwd / "sub").mkdir()
    (agent.folder / "else").mkdir()
    command = "[{run: 'mv sub away && ln -s ../else sub'}]"
    ran = play(agent, "-o", "sub/out", replies=(command, SAYS_HELLO))
    assert ran.status == 0
    assert list((agent.folder / "else").iterdir()) == []
    assert (agent.cwd / "away/out").read_text() == "Hello"


def test_a_file_that_cannot_be_written_any_more_is_a_failure(agent: Agent) -> None:
    (agent.cwd / "sub").mkdir()
    ran = play(agent, "-o", "sub/out", replies=("[{run: 'rmdir sub'}]", SAYS_HELLO))
    assert ran.status == 1
    assert "the final message was not written" in ran.err


def test_the_file_may_be_a_device(agent: Agent) -> None:
    assert play(agent, "-o", "/dev/null").status == 0


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_complaints_of_a_program_do_not_act_on_a_terminal(
    agent: Agent, words: tuple[str, ...]
) -> None:
    complaint = r"\x1b]0;title\x07\x9b2J\u202eback\r\n"
    (agent.folder / "odd.py").write_text(f"import sys\nsys.stderr.write('{complaint}')\n")
    agent.home.mkdir()
    (agent.home / "config.toml").write_text(
        f"[mcp_servers.odd]\ncommand = '{sys.executable}'\nargs = ['{agent.folder / 'odd.py'}']\n"
    )
    ran = play(agent, *words)
    assert ran.status == 0
    assert r"agent: MCP server odd: \x1b]0;title\x07\x9b2J\x202eback" in ran.err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", ran.err)
