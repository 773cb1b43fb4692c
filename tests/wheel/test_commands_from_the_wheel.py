"""Every command, from an empty folder with the wheel alone: no traceback, nothing of a checkout."""

import re
import shlex
from pathlib import Path

import pytest
from fresh import Fresh, Said

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.wheel]

# What only a checkout has, and a message to somebody who has none must not speak of.
OF_A_CHECKOUT = ("Traceback", "fixtures/", "`make ", "tools/bubblewrap", ".venv")


# These are started by the script of the wheel; the others are forks, which saves the imports.
STARTED = ("harness --version", "harness explain turn.completes", "harness run")
# As README.md has it.
MUTATE = 'harness mutate --target reference --server-cmd "agent app-server"'


def _said(fresh: Fresh, folder: Path, line: str) -> Said:
    forked = line.startswith("harness ") and line not in STARTED
    said = (fresh.fork if forked else fresh.call)(*shlex.split(line), cwd=folder)
    assert not [word for word in OF_A_CHECKOUT if word in said.out], said.out
    return said


@pytest.mark.parametrize(
    ("line", "status", "answer"),
    [
        ("harness --version", 0, r"harness \d+\.\d+\.\d+"),
        ("agent --version", 0, r"agent \d+\.\d+\.\d+"),
        ("python -m harness --version", 0, r"harness \d+\.\d+\.\d+"),
        ("harness check no.jsonl", 2, "harness: no.jsonl: No such file or directory"),
        ("harness show no.jsonl", 2, "harness: no.jsonl: No such file or directory"),
        ("harness explain turn.completes", 0, r"turn.completes \(MUST\)"),
        ("harness explain duty.answers", 0, "a duty of clients, judged by harness check"),
        ("harness check --side nobody no.jsonl", 2, "--side 'nobody': expected server, client"),
        ("harness docs client-duties", 0, "# Duties of clients"),
        ("harness list", 0, "turn.completes "),
        ("harness list --markdown -", 0, "`turn.completes`"),
        ("harness doctor", 2, "give --server-cmd 'program arguments'"),
        ("harness doctor --target reference", 0, "ok   a plain turn ends"),
        ("harness run", 2, "give --server-cmd 'program arguments'"),
        ("harness fuzz", 2, "give --server-cmd 'program arguments'"),
        ("harness fuzz --target reference --conversations 1", 0, "fuzz inputs: seed 1, 1 "),
        (
            f"{MUTATE} --sample 2 -n 1",
            0,
            r"2 KILLED, 0 SURVIVED, .* of 2 faults(?s:.)*score: 100.0%",
        ),
        (f"{MUTATE} --fault no-such", 2, "--fault: unknown fault 'no-such'; none of the"),
        (f"{MUTATE} --json .", 2, "--json .: it is a folder; name a file"),
        ("harness mutate", 2, "give --server-cmd 'program arguments'"),
        ("harness model no.yaml", 2, "harness: no.yaml: no such file or folder"),
        ("harness model turns/plain-turn --host 1.2.3.4", 2, "no address of this machine"),
        ("harness connect", 2, "give --server-cmd 'program arguments', or --connect ADDRESS"),
        ("harness connect --target reference", 0, "messages; .* findings: none"),
        ("harness example", 0, "minimal +The smallest correct server"),
        ("harness docs", 0, "servers +Writing a server that can be judged"),
        ("harness docs protocol#turn.completes", 0, "### Turn status"),
        ("harness status", 2, "--json .*reports/NAME.json records one"),
        ("harness ledger", 2, "there is no such run yet; harness run records each"),
        ("harness compare old.json new.json", 2, "old.json: there is no such file"),
        ("harness compare previous last", 2, "there is no such run yet"),
        ("harness scenario list", 0, "turns/plain-turn: "),
        ("harness scenario list .", 2, "no file below this folder"),
        ("harness scenario validate .", 2, "no file below this folder"),
        ("harness scenario show turns/plain-turn", 0, "title: A plain turn"),
        ("harness scenario schema", 0, '"\\$schema"'),
        ("agent", 2, "usage: agent .*COMMAND"),
        ("agent app-server", 0, ""),
        ("agent app-server --scenario no.yaml", 2, "no.yaml: there is no such file"),
        ("agent app-server --scenario turns/plain-turn", 0, ""),
    ],
)
def test_a_command_answers_from_an_empty_folder(
    fresh: Fresh, empty: Path, line: str, status: int, answer: str
) -> None:
    said = _said(fresh, empty, line)
    assert (said.status, re.search(answer, said.out) is not None) == (status, True), said.out
    assert {path.name for path in empty.iterdir()} <= {".harness"}


def test_a_run_is_recorded_and_its_status_told_after_a_run_of_one_rule(
    fresh: Fresh, empty: Path
) -> None:
    line = "harness run --target reference --rule turn.started-first"
    told = _said(fresh, empty, f"{line} --json .harness/reports/reference.json")
    assert told.status == 0, told.out
    said = _said(fresh, empty, "harness status --full --output told/status.md")
    assert said.status == 0
    assert "| turn.started-first | MUST |" in said.out
    assert (empty / "told/status.md").is_file()
    trace = next((empty / ".harness/traces/reference/turns").glob("*.jsonl"))
    for command in ("check", "check --side both", "show"):
        assert _said(fresh, empty, f"harness {command} {trace.relative_to(empty)}").status == 0


def test_two_runs_are_compared_and_the_last_has_a_ledger(fresh: Fresh, empty: Path) -> None:
    for _ in range(2):
        line = "harness run --target reference turns/plain-turn choices/odd-requests"
        assert _said(fresh, empty, line).status == 0
    said = _said(fresh, empty, "harness compare previous last")
    assert (said.status, said.out.splitlines()[-1]) == (0, "differences: none")
    said = _said(fresh, empty, "harness ledger --point rpc.")
    assert said.status == 0
    shown = re.search(r"harness show (\S+) --message (\d+)", said.out)
    assert shown is not None
    assert _said(fresh, empty, shown[0]).status == 0


def test_an_example_behind_a_socket_is_judged_as_over_pipes(fresh: Fresh, empty: Path) -> None:
    for name in ("minimal", "listening"):
        assert _said(fresh, empty, f"harness example {name} -o .").status == 0
    command = "python listening.py {listen} python minimal.py"
    said = fresh.fork("harness", "doctor", "--server-cmd", command, cwd=empty)
    assert said.status == 0, said.out
    assert "one message a WebSocket frame" in said.out
