"""`harness connect`: a conversation by hand, from a pipe and at a terminal."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from in_terminal import in_terminal

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from tests.processes import BOUND, COMMANDS, ROOT, Said, run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]

MINIMAL = f"{sys.executable} {ROOT / 'fixtures/servers/minimal.py'}"
TWICE = f"{sys.executable} {ROOT / 'fixtures/servers/twice.py'} {MINIMAL}"

# It answers everything, and does at some methods what servers must not do.
BAD = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "thread/archive":
        continue
    if asked.get("method") == "thread/list":
        print("about to end", file=sys.stderr, flush=True)
        sys.exit(7)
    if asked.get("method") == "thread/read":
        for n in range(10_000):
            for method in ("item/agentMessage/delta", "thread/name/updated"):
                print(json.dumps({"method": method, "params": {"threadId": "t", "n": n}}))
    if "id" in asked and "method" in asked:
        print(json.dumps({"id": asked["id"], "result": {}}), flush=True)
"""


@pytest.fixture
def bad(tmp_path: Path) -> str:
    (tmp_path / "bad.py").write_text(BAD)
    return f"{sys.executable} {tmp_path / 'bad.py'}"


def piped(*lines: str, words: tuple[str, ...] = ("--server-cmd", MINIMAL), cwd: Path) -> Said:
    """Give these lines to the plain form."""
    said = run_warm("harness", "connect", *words, cwd=cwd, given="\n".join([*lines, ""]))
    assert "Traceback" not in said.err
    return said


def test_a_plain_turn_is_held_and_nothing_is_found(tmp_path: Path) -> None:
    said = piped("thread/start", "turn/start text=hello there", ":wait", cwd=tmp_path)
    assert (said.status, said.err) == (0, "")
    assert '"text": "hello there"' in said.out
    assert re.search(r"← #\d+ turn/completed ", said.out)
    assert re.search(r"messages; \d+ rules passed; findings: none\n$", said.out)


def test_findings_stand_under_their_message(tmp_path: Path) -> None:
    words = ("--server-cmd", TWICE)
    said = piped("thread/start", "turn/start text=hello", words=words, cwd=tmp_path)
    assert said.status == 1
    lines = said.out.splitlines()
    at = next(n for n, line in enumerate(lines) if "MUST turn.completed-once" in line)
    assert "← " in lines[at - 1]
    assert " turn/completed " in lines[at - 1]
    assert lines[at + 3].startswith("      clause    turn.completed-once: ")
    assert lines[-1].endswith("findings: MUST 1")


def test_raw_lines_have_their_own_ids(tmp_path: Path) -> None:
    said = piped('{"method":"thread/start","id":1,"params":{}}', "{nonsense", cwd=tmp_path)
    assert "← #4 result of id 1 " in said.out
    # The thread may be announced before or after it.
    assert re.search(r"→ #[56] no message \{nonsense", said.out)
    assert said.status == 0


def test_an_approval_is_answered(tmp_path: Path) -> None:
    said = piped(
        ":model run touch made",
        "thread/start approvalPolicy=untrusted",
        "turn/start text=make it",
        "decline",
        ":wait",
        words=("--target", "reference"),
        cwd=tmp_path,
    )
    assert (said.status, said.err) == (0, "")
    asked = said.out.index("item/commandExecution/requestApproval id ")
    answered = said.out.index('{"decision": "decline"}')
    assert asked < answered < said.out.index("turn/completed")


def test_nothing_follows_the_sum_though_the_server_ends_its_turn(tmp_path: Path) -> None:
    said = piped(
        "thread/start approvalPolicy=untrusted",
        ":model run touch made.txt",
        "turn/start text=make a file",
        ":wait",
        words=("--target", "reference"),
        cwd=tmp_path,
    )
    assert "item/commandExecution/requestApproval" in said.out
    assert "serverRequest/resolved" not in said.out
    assert said.out.splitlines()[-1].endswith("findings: none")


def test_a_scenario_scripts_the_model_and_its_gates_are_opened(tmp_path: Path) -> None:
    (tmp_path / "held.scenario.yaml").write_text(
        "title: held\n"
        "model: [{reply: [{message: {deltas: ['a', {hold: g}, 'b']}}]}]\n"
        "client: [{start_thread: {as: t}}, {start_turn: {thread: t, text: x, as: u}}]\n"
    )
    said = piped(
        "thread/start",
        "turn/start text=x",
        ":wait",
        ":gate g",
        ":wait",
        words=("--server-cmd", MINIMAL, "--scenario", "held.scenario.yaml"),
        cwd=tmp_path,
    )
    assert said.status == 0
    held = said.out.index("an answer of the model is held")
    assert said.out.index("waits at the gate g") < held < said.out.index("turn/completed")


REFERENCE = f"{COMMANDS / 'agent'} app-server"


def test_the_mcp_servers_of_a_scenario_are_played_and_judged(tmp_path: Path) -> None:
    said = piped(
        "thread/start",
        "turn/start text=add",
        ":wait",
        ":save talk.jsonl",
        words=("--target", "reference", "--scenario", "tools/mcp-servers/program"),
        cwd=tmp_path,
    )
    assert said.status == 0, said.err
    assert 'output of call_1_1: "the sum is 5"' in said.out
    assert said.out.splitlines()[-1].endswith("findings: none")
    trace = load(tmp_path / "talk.jsonl", classify_of=classify_of)
    rows = judge(load_book(), trace, rules=all_rules().values())
    judged = {row.rule for row in rows if row.verdict is Verdict.PASS}
    assert judged >= {"mcp-server.arguments", "mcp-server.called", "mcp-server.result-shown"}


def test_the_pipes_of_a_scenario_are_gates_for_commands(tmp_path: Path) -> None:
    said = piped(
        "thread/start",
        "turn/start text=look",
        ":gate go-on",
        ":wait",
        words=("--target", "reference", "--scenario", "steering/during-a-command"),
        cwd=tmp_path,
    )
    assert said.status == 0, said.err
    begins = "  pipe   commands that read from go-on wait; :gate go-on lets them go"
    assert said.out.splitlines()[0] == begins
    assert "  pipe   a command wrote to begun" in said.out
    assert "released" in said.out
    assert "turn/completed" in said.out


def test_parts_of_a_scenario_not_given_to_a_foreign_server_are_named_at_the_start(
    tmp_path: Path,
) -> None:
    where = tmp_path / "s"
    server = subprocess.Popen(
        [*REFERENCE.split(), "--listen", f"unix:{where}"],
        env={**os.environ, "AGENT_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stderr is not None
        assert server.stderr.readline().startswith("listening on ")
        words = ("--connect", f"unix:{where}", "--scenario", "tools/mcp-servers/program")
        said = piped("thread/start", words=words, cwd=tmp_path)
        server.terminate()
    assert said.out.splitlines()[0] == (
        "the MCP servers of tools/mcp-servers/program are left out: a server that we did not "
        "start has its own; the model plays the script"
    )


def test_mistakes_name_their_line_and_change_nothing(tmp_path: Path) -> None:
    said = piped(
        "# a remark",
        "thread/strat",
        "thraed",
        "turn/start {",
        "accept",
        ":svae x",
        ":show 99",
        ":model no/such",
        words=("--server-cmd", MINIMAL, "--timeout-scale", "0.2"),
        cwd=tmp_path,
    )
    assert said.status == 2
    told = said.err.splitlines()
    assert [line.split(": ")[1] for line in told] == [f"line {n}" for n in (3, 4, 5, 6, 7, 8)]
    assert "is no method, answer or command" in told[0]
    assert "the params are no JSON" in told[1]
    assert "the server asks nothing now" in told[2]
    assert "→ #3 thread/strat id 1002" in said.out
    assert "thread/strat is not in the book; did you mean 'thread/start'?" in said.out


def test_a_server_that_ends_is_told_with_its_last_words(tmp_path: Path, bad: str) -> None:
    lines = ("thread/list", "thread/list", ":save t.jsonl", "thread/list")
    said = piped(*lines, words=("--server-cmd", bad), cwd=tmp_path)
    assert said.status == 1
    assert "the server ended with exit status 7\n  | about to end\n" in said.out
    assert said.err == "harness: 2 of 4 lines were not sent: the server was gone\n"
    assert (tmp_path / "t.jsonl").is_file()


def test_a_server_that_does_not_answer_is_left_in_time(tmp_path: Path, bad: str) -> None:
    words = ("--server-cmd", bad, "--timeout-scale", "0.2")
    said = piped("thread/archive threadId=t", words=words, cwd=tmp_path)
    assert said.status == 1
    assert "no answer to thread/archive within 1 s" in said.out
    assert "MUST request.answered: request thread/archive id 1002" in said.out


def test_a_flood_is_counted_and_not_shown(tmp_path: Path, bad: str) -> None:
    said = piped("thread/read threadId=t", words=("--server-cmd", bad), cwd=tmp_path)
    assert said.status == 1
    assert "400 messages shown; more are counted" in said.out
    assert len(said.out.splitlines()) < 1500
    assert "\n20005 messages; " in said.out


def test_likes_in_a_row_are_told_as_one(tmp_path: Path) -> None:
    deltas = ", ".join(f"'{n} '" for n in range(100))
    (tmp_path / "many.yaml").write_text(
        f"model: [{{reply: [{{message: {{deltas: [{deltas}]}}}}]}}]"
    )
    lines = (":model many.yaml", "thread/start", "turn/start text=x", ":wait", ":save t.jsonl")
    said = piped(*lines, cwd=tmp_path)
    assert said.status == 0
    assert len(re.findall(r"← #\d+ item/agentMessage/delta", said.out)) == 3
    assert re.search(r"… 97 more item/agentMessage/delta of \S+, the last is #\d+", said.out)
    checked = subprocess.run(
        [COMMANDS / "harness", "check", "t.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert checked.returncode == 0


def test_a_server_that_listens_is_connected_to(tmp_path: Path) -> None:
    path = tmp_path / "s"
    process = subprocess.Popen(
        [COMMANDS / "agent", "app-server", "--listen", f"unix:{path}"],
        env={**os.environ, "AGENT_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "unix:" in process.stderr.readline()
        said = piped("thread/start", words=("--connect", f"unix:{path}"), cwd=tmp_path)
        assert (said.status, said.err) == (0, "")
        assert "thread/started" in said.out
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=BOUND)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "the profile 'spec' has no command; give --server-cmd"),
        (("--server-cmd", "a", "--connect", "unix:x"), "give one of them"),
        (("--connect", "unix:nowhere"), "nothing can be reached at unix:nowhere"),
        (("--connect", "http://x"), "'http://x' is no address; expected ws://127.0.0.1:PORT"),
        (("--server-cmd", "no-such-program"), "no-such-program"),
        (("--server-cmd", MINIMAL, "--scenario", "no/such"), "unknown scenario"),
        (("--server-cmd", MINIMAL, "--timeout-scale", "0"), "greater than 0"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    said = piped("thread/start", words=words, cwd=tmp_path)
    assert (said.status, said.out) == (2, "")
    assert told in said.err
    assert len(said.err.splitlines()) == 1


def test_a_port_of_the_model_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ("--server-cmd", MINIMAL, "--model-port", str(taken.getsockname()[1]))
        said = piped(words=words, cwd=tmp_path)
    assert said.status == 2
    assert "something listens there already; give another" in said.err


def test_at_a_terminal_tab_completes_and_one_key_answers(tmp_path: Path) -> None:
    with in_terminal("connect", "--target", "reference", cwd=tmp_path) as shown:
        shown.until("Tab completes")
        shown.press("thread/st\t")
        shown.until("thread/start")
        shown.press(" approvalPolicy=unt\t")
        shown.until("approvalPolicy=untrusted")
        shown.press("\r")
        shown.until("thread/started")
        shown.press(":model run touch made\r")
        shown.until("says to the next call")
        shown.press("turn/start text=go\r")
        shown.until("[d] decline")
        shown.press("d")
        shown.until('"decision": "decline"')
        # Keys are lost while lines are written above the prompt.
        shown.until("turn/completed >")
        shown.press("\x04")
        shown.until("findings: none")
        assert shown.status() == 0


def test_at_a_terminal_what_is_missing_is_put_there_to_be_edited(tmp_path: Path) -> None:
    with in_terminal("connect", "--server-cmd", MINIMAL, cwd=tmp_path) as shown:
        shown.until("Tab completes")
        shown.press("thread/read\r")
        shown.until('thread/read {"threadId": ""}')
        shown.press("\x03:quit\r")
        shown.until("rules passed")
        assert shown.status() == 0


def test_at_a_terminal_a_server_that_ended_is_told_and_started_again(
    tmp_path: Path, bad: str
) -> None:
    with in_terminal("connect", "--server-cmd", bad, cwd=tmp_path) as shown:
        shown.until("Tab completes")
        shown.press("thread/list\r")
        shown.until("the server ended with exit status 7")
        shown.press("thread/start\r")
        shown.until(":restart starts it again")
        shown.press(":restart\r")
        shown.until("initialize id 1001")
        shown.press("skills/list\r")
        shown.until("skills/list id 1002")
        shown.process.send_signal(signal.SIGTERM)
        shown.until("rules passed")
        assert shown.status() == 128 + signal.SIGTERM
