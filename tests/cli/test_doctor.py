"""`harness doctor`: each way in which a server can be unusable has a message and advice."""

import json
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest
from command_line import ROOT, Said, call

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVERS = "fixtures/servers"
ADVICE = "     -> "


def doctor(server_cmd: str) -> Said:
    said = call("harness", "doctor", "--server-cmd", server_cmd)
    assert said.err == ""
    return said


def inline(program: str) -> str:
    return shlex.join([sys.executable, "-c", program])


def failures(said: Said) -> list[str]:
    """The lines that say FAIL; each has its advice below it."""
    assert said.status == 1
    lines = said.out.splitlines()
    found = [number for number, line in enumerate(lines) if line.startswith("FAIL ")]
    assert found
    assert said.out.count(ADVICE) >= len(found)
    return [lines[number].removeprefix("FAIL ") for number in found]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--target", "reference"], "exec_command, apply_patch"),
        (["--server-cmd", f"python {SERVERS}/minimal.py"], "none"),
        (["--server-cmd", f"python {SERVERS}/unusual.py"], "none"),
        (["--server-cmd", f"python {SERVERS}/broken/chatty_stderr.py"], "none"),
    ],
)
def test_a_usable_server_is_told_to_be_judged_by_a_command(words: list[str], offered: str) -> None:
    said = call("harness", "doctor", *words)
    assert said.status == 0
    # What this machine lacks is told too, in two lines before the last.
    lacks = re.compile(
        r"--   what needs \S+ is not judged on this machine: .*\n     -> install .*\n"
    )
    lines = lacks.sub("", said.out).splitlines()
    assert lines[:2] == ["ok   the server starts", "ok   it speaks JSON lines"]
    assert re.fullmatch(r"ok   it answers initialize \(an? .*, after \d+ ms\)", lines[2])
    assert lines[3] == "ok   it calls the model by the Responses API (1 call(s))"
    assert lines[4].startswith(f"--   tools offered to the model: {offered}")
    assert re.fullmatch(r"ok   a plain turn ends \(\d+ ms in all\)", lines[5])
    assert lines[6] == "--   next: judge it"
    assert lines[7] == ADVICE + shlex.join(["harness", "run", *words])


def test_a_server_on_a_socket_is_told_apart_and_keeps_its_placeholder() -> None:
    said = doctor(f"python {SERVERS}/listening.py {{listen}}")
    assert said.status == 0
    assert "ok   it speaks JSON, one message a WebSocket frame" in said.out.splitlines()
    command = f"harness run --server-cmd 'python {SERVERS}/listening.py {{listen}}'"
    assert said.out.splitlines()[-1] == ADVICE + command


def test_a_server_that_listens_although_nobody_told_it_where_is_told_to_take_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = doctor(f"python {SERVERS}/listening.py ws://127.0.0.1:{port}")
    (failure,) = failures(said)
    assert f"listens on 127.0.0.1:{port}; write {{listen}} into its command" in failure
    assert "one JSON object a line" not in said.out


def test_arguments_that_a_shell_would_have_replaced_are_named() -> None:
    said = doctor(f"python {SERVERS}/minimal.py '$HOME/x'")
    assert said.status == 0
    line = "--   the server is given $HOME/x as it stands: no shell replaces anything"
    assert said.out.splitlines()[0] == line


def test_a_pipe_is_refused_with_the_command_to_write() -> None:
    said = call("harness", "doctor", "--server-cmd", "agent app-server | tee log")
    assert said.status == 2
    assert said.err == (
        "harness: the command holds '|', and no shell runs it; "
        "write sh -c 'agent app-server | tee log', or quote what is a word"
    )


def test_a_profile_that_says_its_own_bound_is_waited_for_as_long(tmp_path: Path) -> None:
    """A server that needs longer than the doctor waits by itself, to start and for each step."""
    wait = "import sys, time; sys.path.insert(0, sys.argv[1])\nfrom minimal import Server\n"
    late = (
        f"{wait}class Late(Server):\n"
        "    def thread_start(self, params, reply):\n"
        "        time.sleep(1.6)\n"
        "        super().thread_start(params, reply)\n"
        "time.sleep(3.2); Late().serve()\n"
    )
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    command = [sys.executable, "-c", late, str(ROOT / SERVERS)]
    base.write_text(f'name = "base"\ncommand = {json.dumps(command)}\n[bounds]\nstart = 9\n')
    mine.write_text('name = "mine"\nextends = "base.toml"\n[bounds]\nstep = 9\n')
    said = call("harness", "doctor", "--target", str(mine))
    assert (said.status, "FAIL" in said.out) == (0, False), said.out


def test_an_echo_is_called_one() -> None:
    (failure,) = failures(doctor("cat"))
    assert "only sends back what it is sent" in failure


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("false", "ended with exit status 1 before it answered initialize"),
        (inline("print('hello')"), "exit status 0 .* Before that it wrote 'hello', .* not JSON"),
        (f"python {SERVERS}/broken/does_not_start.py", "exit status 3 .*libmissing.so.7"),
        ("cat {listen}", "ended with exit status 1 before it listened at ws://"),
    ],
)
def test_a_program_that_ends_at_once_is_shown_with_what_it_said(server: str, expected: str) -> None:
    said = doctor(server)
    (failure,) = failures(said)
    assert failure.startswith("the server starts: ")
    assert re.search(expected, failure)
    assert "has to stay and read requests until its input ends" in said.out
    assert "many servers want a subcommand" in said.out


def test_a_program_that_does_not_begin_to_run_is_not_told_of_subcommands(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("import sys\nsys.stdin.read()\n")
    script.chmod(0o755)
    said = doctor(str(script))
    (failure,) = failures(said)
    assert f"name its interpreter: python {script}, or let it begin with #!" in failure
    assert "subcommand" not in said.out
    assert "an interpreter and then its script" in said.out


def test_a_silent_program_is_told_what_is_expected_of_it() -> None:
    said = doctor("sleep 100")
    (failure,) = failures(said)
    assert "did not answer initialize within 3 s" in failure
    for word in ("one JSON object a line", "{listen}", "--timeout-scale"):
        assert word in said.out


@pytest.mark.parametrize(
    ("identity", "told"), [("1001", "1001"), ('"1"', '"1" (a text)'), ("null", "null")]
)
def test_an_answer_under_another_id_is_shown_with_the_id_that_it_must_have(
    identity: str, told: str
) -> None:
    answer = f'{{"id": {identity}, "result": {{}}}}'
    program = f"import sys\nfor _ in sys.stdin: print({answer!r}, flush=True)"
    said = doctor(inline(program))
    (failure,) = failures(said)
    assert failure == (
        f"it answered under another id: {told}; the answer to initialize must have its id, "
        f"1 (a number); the line: {answer}"
    )
    assert "take the id of each request over into its answer as it came" in said.out
    assert "--timeout-scale 3" in said.out
    said = call("harness", "run", "--server-cmd", inline(program), "turns/plain-turn")
    words = f"answered under another id: {told}; the answer to initialize must have its id"
    assert words in " ".join(said.out.split())


def test_an_answer_that_comes_when_the_input_is_closed_is_slow_or_not_flushed() -> None:
    answer = '{"id": 1, "result": {}}'
    said = doctor(inline(f"import sys; sys.stdin.read(); print({answer!r})"))
    (failure,) = failures(said)
    assert "did not answer initialize within 3 s; its answer came after that, when" in failure
    for word in ("flush after each", "if it only starts slowly, give --timeout-scale 3"):
        assert word in said.out


def test_one_that_only_tells_something_is_told_of_slow_starts_too() -> None:
    told = '{"method": "configWarning", "params": {"summary": "x", "details": null}}'
    said = doctor(inline(f"import sys; print({told!r}, flush=True); sys.stdin.read()"))
    (failure,) = failures(said)
    assert "did not answer initialize within 3 s" in failure
    assert "give --timeout-scale 3" in said.out


def test_talk_on_standard_output_is_told_to_go_elsewhere() -> None:
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    for server in (inline(program), f"python {SERVERS}/broken/noise_first.py"):
        said = doctor(server)
        (failure,) = failures(said)
        assert re.match(
            "it writes lines that are not messages: '(ready|Loading model weights)", failure
        )
        assert "logs belong on stderr" in said.out


def test_a_server_that_never_calls_the_model_is_told_where_it_is() -> None:
    said = doctor(f"python {SERVERS}/broken/no_model_call.py")
    (failure,) = failures(said)
    assert re.search(r"the model at http://127\.0\.0\.1:\d+/v1 was not called", failure)
    assert "PROVIDER_BASE_URL" in said.out
    assert "--target codex, codex-0.107, codex-0.169, reference" in said.out


def test_fake_without_a_model_is_judged_in_what_starts_no_turn(tmp_path: Path) -> None:
    command = f"python {SERVERS}/broken/no_model_call.py"
    said = doctor(command)
    advice = next(line for line in said.out.splitlines() if "--tag no-turn" in line)
    assert f"harness connect --server-cmd '{command}'" in said.out
    assert "harness check FILE" in said.out
    words = shlex.split(advice.partition("scenarios: ")[2])
    kept = tmp_path / "kept.json"
    call(*words, "-k", "threads", "--json", str(kept))
    report = json.loads(kept.read_text("utf-8"))
    assert any(one["verdict"] == "PASS" for one in report["scenarios"])
    assert not any(issue["id"].startswith("setup.") for issue in report["issues"])


def test_command_that_fails_at_its_start_is_told_which_variables_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WRAPPER_TOKEN", "x")
    said = doctor(inline("import os, sys; sys.exit(3 if 'WRAPPER_TOKEN' not in os.environ else 0)"))
    (failure,) = failures(said)
    assert re.search(r"set for the run: [^;]*\bHOME\b", failure)
    assert re.search(r"left out: [^;]*\bWRAPPER_TOKEN\b", failure)
    assert "[env] of a profile" in failure


def test_a_server_that_dies_in_the_turn_is_shown_with_its_last_words() -> None:
    said = doctor(f"python {SERVERS}/broken/dies_mid_turn.py")
    (failure,) = failures(said)
    assert failure.startswith("the server ended, exit status 1, in the middle of a plain turn")
    assert "RuntimeError: index out of range" in said.out


def test_a_line_that_is_not_ended_is_no_talk() -> None:
    line, turn = failures(doctor(f"python {SERVERS}/broken/half_line.py"))
    assert line.startswith('it began a line and did not end it: \'{"id": 3')
    assert "start_turn: waited 1.5 s for an answer" in turn


@pytest.mark.parametrize(
    ("server", "step", "last"),
    [
        ("never_completes", "wait: waited 1.5 s for the end of turn u", "thread/status/changed"),
        ("answers_initialize_only", "start_thread: waited 1.5 s for an answer", "userAgent"),
    ],
)
def test_a_turn_that_does_not_end_is_shown_with_the_last_message(
    server: str, step: str, last: str
) -> None:
    (failure,) = failures(doctor(f"python {SERVERS}/broken/{server}.py"))
    assert step in failure
    assert last in failure.partition("the last that it sent: ")[2]


def test_a_turn_that_fails_is_shown_with_its_reason() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / SERVERS)!r})\n"
        "from minimal import Server\n"
        "class Offended(Server):\n"
        "    def step(self, thread, event):\n"
        "        raise RuntimeError('no such model')\n"
        "Offended().serve()\n"
    )
    (failure,) = failures(doctor(inline(program)))
    assert failure == "a plain turn ends as failed: RuntimeError('no such model')"


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ("exec", ["mcp: only its exec is judged"]),
        ("exec,mcp", ["mcp login and mcp logout: they are not judged"]),
        ("mcp,login", ["exec: only its mcp is judged"]),
        ("exec,mcp,login", []),
    ],
)
def test_an_agent_is_told_which_command_it_does_not_know(known: str, told: list[str]) -> None:
    program = f"python fixtures/programs/in_part.py {known}"
    said = call("harness", "doctor", "--agent-cmd", program)
    assert said.status == 0
    unknown = "--   it does not know "
    lines = [one for one in said.out.splitlines() if one.startswith(unknown)]
    assert [one.removeprefix(unknown) for one in lines] == told
    assert ("ok   a plain turn ends" in said.out) is ("exec" in known)


DRIVER = "python fixtures/sdk_drivers/python_driver.py"
ODD = "python fixtures/programs/odd_sdk.py"


def test_an_sdk_is_told_to_be_judged_by_a_command() -> None:
    said = call("harness", "doctor", "--sdk-cmd", DRIVER)
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == "ok   the driver starts, and answers its calls"
    assert lines[1].startswith('ok   it starts the agent, with the words "exec ')
    assert lines[2:4] == [
        'ok   run gives a result (finalResponse "Hello.")',
        "ok   runStreamed yields events (4)",
    ]
    assert lines[-1] == f"{ADVICE}harness run --sdk-cmd '{DRIVER}'"


def test_an_sdk_is_tried_on_the_agent_too() -> None:
    said = call("harness", "doctor", "--agent-cmd", "agent", "--sdk-cmd", DRIVER)
    assert said.status == 0
    assert "ok   its agent calls the model (1 call(s))\n" in said.out
    assert 'ok   run on the agent gives a result (finalResponse "Hello.")\n' in said.out
    assert said.out.endswith(f"harness run --agent-cmd agent --sdk-cmd '{DRIVER}'")
    wrong = call("harness", "doctor", "--agent-cmd", "true", "--sdk-cmd", DRIVER)
    assert "the model at http://127.0.0.1:" in failures(wrong)[1]


@pytest.mark.parametrize(
    ("driver", "told"),
    [
        (
            "true",
            "the driver does not understand its calls: the driver reported no end of turn 1: ",
        ),
        (f"{ODD} ignores-the-path", "run never started the agent: result: "),
        (f"{ODD} keeps-no-id", "after a turn the thread's id is null; the agent told "),
        ("python no_such_driver.py", "the driver does not understand its calls: "),
    ],
    ids=["ends", "starts-another", "keeps-no-id", "no-such-script"],
)
def test_a_driver_that_cannot_be_judged_is_told_why(driver: str, told: str) -> None:
    said = call("harness", "doctor", "--sdk-cmd", driver)
    assert [line for line in failures(said) if line.startswith(told)], said.out
    assert said.out.rstrip().endswith("next: fix the first FAIL above, and ask again")
