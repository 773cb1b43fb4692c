"""Mistakes that end `agent exec` before it has begun: one line on stderr, nothing on stdout.

The status is 2 for a wrong command line, else 1.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_side import PIXEL
from runs import JSON, SAYS_HELLO, Agent, scenario

from tests.sampling import one_in

pytestmark = [pytest.mark.socket, pytest.mark.slow]

EARLY = {
    "no prompt": ((), b"", "there is no prompt"),
    "a blank prompt": ((), b" \n\t", "there is no prompt"),
    "not UTF-8": ((), b"caf\xe9", "not valid UTF-8 (byte 4)"),
    "an unknown option": (("--nope",), b"hi", "unrecognized arguments: --nope"),
    "a short form of an option": (("--mod", "m"), b"hi", "unrecognized arguments"),
    "an option without its value": (("--model",), b"hi", "--model: expected one argument"),
    "an unknown sandbox": (("--sandbox", "bogus"), b"hi", "workspace-write"),
    "no equals sign": (("--config", "noequals"), b"hi", "must be key=value"),
    "an unknown policy": (("-c", "approval_policy=bogus"), b"hi", "must be one of never"),
    "an unknown search": (("-c", 'web_search="bogus"'), b"hi", "one of disabled, cached, live"),
    "an unknown effort": (("-c", 'model_reasoning_effort="huge"'), b"hi", "one of minimal"),
    "an unknown provider": (("-c", "model_provider=nope"), b"hi", None),
    "a folder that is not there": (("--cd", "none"), b"hi", "--cd none: No such file"),
    "a folder that is a file": (("--cd", "file"), b"hi", "--cd file: Not a directory"),
    "an added folder that is a file": (("--add-dir", "file"), b"hi", "--add-dir file: Not a"),
    "an image that is not there": (("--image", "none"), b"hi", "--image none: No such file"),
    "an image that is a folder": (("--image", "."), b"hi", "it is not a file"),
    "an image that is a pipe": (("--image", "pipe"), b"hi", "it is not a file"),
    "an image that is a device": (("--image", "/dev/zero"), b"hi", "it is not a file"),
    "an image that is too large": (("--image", "huge"), b"hi", "larger than"),
    "an image that is none": (("--image", "file"), b"hi", "no PNG, JPEG, GIF or WebP"),
    "a schema that is not there": (("--output-schema", "none"), b"hi", "No such file"),
    "a schema that is a pipe": (("--output-schema", "pipe"), b"hi", "it is not a file"),
    "a schema that is no JSON": (("--output-schema", "file"), b"hi", "file:1:1: is no JSON"),
    "a schema that is no object": (("--output-schema", "list.json"), b"hi", "a JSON object"),
    "a schema that is no schema": (
        ("--output-schema", "odd.json"),
        b"hi",
        '--output-schema odd.json: at /type: "nothing of the kind" is not valid',
    ),
    "a schema that is too large": (("--output-schema", "huge"), b"hi", "larger than"),
    "a message file that is a folder": (("-o", "."), b"hi", "--output-last-message .:"),
    "a message file in no folder": (("-o", "none/out"), b"hi", "--output-last-message none/out"),
    "a message file that is an unread pipe": (("-o", "pipe"), b"hi", "--output-last-message"),
    "a name with a line end": (("--cd", "a\n\x1bb"), b"hi", "--cd a \\x1bb: No such file"),
    "two prompts": (("one", "two"), b"", "two is one more"),
    "resume without an id": (("resume",), b"hi", "which thread"),
    "resume of an unknown thread": (("resume", "thr_77"), b"hi", "there is no thread thr_77"),
    "resume of a path": (("resume", "../../x"), b"hi", "there is no thread ../../x"),
    "--last in the place of an id": (("resume", "--last"), b"hi", "--last is no id"),
    "an option in the place of an id": (("resume", "-csandbox_mode=x"), b"hi", "which thread"),
    "--last without resume": (("--last",), b"hi", "--last belongs to resume"),
    "an unknown scenario": (("--scenario", "none.yaml"), b"hi", "there is no such file"),
}
WRONG_USAGE = {
    "an unknown option",
    "a short form of an option",
    "an option without its value",
    "an unknown sandbox",
    "two prompts",
    "resume without an id",
    "--last in the place of an id",
    "an option in the place of an id",
    "--last without resume",
}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    agent = Agent(tmp_path)
    (agent.cwd / "file").write_text("text\n")
    os.mkfifo(agent.cwd / "pipe")
    with open(agent.cwd / "huge", "wb") as huge:
        huge.write(PIXEL)
        huge.truncate(1 << 30)
    (agent.cwd / "list.json").write_text("[]")
    (agent.cwd / "odd.json").write_text('{"type": "nothing of the kind"}')
    return agent


@pytest.mark.parametrize("case", one_in(4, EARLY, pytest.mark.attacks))
def test_an_early_failure_is_one_line(agent: Agent, case: str) -> None:
    words, stdin, said = EARLY[case]
    if said is None:
        (agent.home).mkdir()
        (agent.home / "config.toml").write_text("[model_providers.mine]\n")
        said = "must be the name of a table"
    ran = agent.run(*JSON, *words, stdin=stdin)
    assert (ran.status, ran.out) == (2 if case in WRONG_USAGE else 1, b"")
    [line] = ran.err.splitlines()
    assert said in line
    assert not list(agent.home.glob("sessions/**/*.jsonl"))


def test_a_folder_without_git_is_refused_unless_asked_for(agent: Agent) -> None:
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    ran = agent.run("--json", *model, "hi")
    assert (ran.status, ran.out) == (1, b"")
    assert "is in no git repository" in ran.err
    assert "--skip-git-repo-check" in ran.err
    (agent.folder / ".git").mkdir()
    assert agent.run("--json", *model, "hi").status == 0


@pytest.mark.parametrize("place", ["here", "below --cd", "both", "neither"])
def test_a_relative_image_is_looked_for_here_and_then_below_cd(agent: Agent, place: str) -> None:
    (inner := agent.cwd / "inner").mkdir()
    if place in ("here", "both"):
        (agent.cwd / "rel.png").write_bytes(PIXEL)
    if place != "here":
        # Where the image is here as well, this one is not read.
        (inner / "rel.png").write_bytes(PIXEL if place == "below --cd" else b"no image")
    if place == "neither":
        (inner / "rel.png").unlink()
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    ran = agent.run(*JSON, *model, "--cd", "inner", "--image", "rel.png", "hi")
    assert ran.status == (1 if place == "neither" else 0), ran.err
    assert ("--image rel.png: No such file" in ran.err) == (place == "neither")


def test_broken_settings_are_told_with_their_place(agent: Agent) -> None:
    agent.home.mkdir()
    (agent.home / "config.toml").write_text("model = \n")
    ran = agent.run(*JSON, "hi")
    assert (ran.status, ran.out) == (1, b"")
    assert f"{agent.home}/config.toml:1:9" in ran.err


@pytest.mark.parametrize("words", [("--nope",), ("--cd", "none"), ("resume", "thr_77")])
def test_who_writes_a_long_prompt_sees_no_broken_pipe(agent: Agent, words: tuple[str, ...]) -> None:
    with agent.start(*JSON, *words) as process:
        assert process.stdin is not None
        # Raises BrokenPipeError where it is not read.
        process.stdin.write(b"x" * 4_000_000)
        process.stdin.close()
        assert process.wait(60) == (2 if words == ("--nope",) else 1)


def test_a_prompt_that_is_too_long_is_refused_and_read(agent: Agent) -> None:
    with agent.start(*JSON) as process:
        assert process.stdin is not None
        process.stdin.write(b"x" * (9 << 20))
        process.stdin.close()
        assert process.stderr is not None
        assert b"longer than 8 MiB" in process.stderr.read()
        assert process.wait(60) == 1


def test_an_idle_input_does_not_hold_up_a_failure(agent: Agent) -> None:
    with agent.start(*JSON, "--nope") as process:
        assert process.wait(30) == 2


def test_without_standard_output_nothing_is_done(agent: Agent) -> None:
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    command = 'exec "$0" -m reference_server exec "$@" >&-'
    ran = subprocess.run(
        ["sh", "-c", command, sys.executable, *JSON, *model, "hi"],
        cwd=agent.cwd,
        env=agent.environment({}),
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert b"standard output is closed" in ran.stderr
    assert not list(agent.home.glob("sessions/**/*.jsonl"))


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_the_other_streams_may_be_closed(agent: Agent, closed: str) -> None:
    model = ("--scenario", scenario(agent.folder, SAYS_HELLO))
    command = f'exec "$0" -m reference_server exec "$@" {closed}'
    ran = subprocess.run(
        ["sh", "-c", command, sys.executable, *JSON, *model, "hi"],
        cwd=agent.cwd,
        env=agent.environment({}),
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0
    assert [json.loads(line)["type"] for line in ran.stdout.splitlines()][-1] == "turn.completed"


def test_help_is_for_who_asks(agent: Agent) -> None:
    ran = agent.run("--help")
    assert ran.status == 0
    assert b"usage: agent exec" in ran.out
    assert ran.err == ""
