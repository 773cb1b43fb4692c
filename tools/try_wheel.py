"""Try a wheel as a user does: `python try_wheel.py FOLDER|WHEEL`, on any Python and system.

Installs it in a fresh environment, and from an empty folder judges a server, serves a client,
records, checks and reports. Needs nothing of the project, and prints a line for each command. Exit
status 1 with the first one that fails.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

BOUND_SECONDS = 300
SCENARIOS = ["turns/plain-turn", "turns/plan-item", "interrupts/"]
SERVER = "python server.py"
# Each command, the exit status that it must have, and a part of what it must print.
COMMANDS: list[tuple[list[str], int, str]] = [
    (["harness", "--version"], 0, "harness "),
    (["harness", "example", "minimal", "-o", "server.py"], 0, "written"),
    (["harness", "example", "twice", "-o", "twice.py"], 0, "written"),
    (["harness", "doctor", "--server-cmd", SERVER], 0, "a plain turn ends"),
    (
        [
            "harness",
            "run",
            *SCENARIOS,
            "--server-cmd",
            SERVER,
            "--json",
            "a.json",
            "--html",
            "a.html",
        ],
        0,
        "verdict: GREEN",
    ),
    (
        ["harness", "run", "turns/plain-turn", "--server-cmd", f"python twice.py {SERVER}"],
        1,
        "turn.completed-once",
    ),
    (["harness", "run", *SCENARIOS, "--server-cmd", "agent app-server"], 0, "verdict: GREEN"),
    (["harness", "report", "a.json"], 0, "GREEN"),
    (["harness", "compare", "a.json", "a.json"], 0, ""),
    (["harness", "show", ".harness/traces/spec/turns/plain-turn.jsonl"], 0, "turn/completed"),
    (["harness", "check", ".harness/traces/spec/turns/plain-turn.jsonl"], 0, ""),
    (["harness", "explain", "turn.completed-once"], 0, "MUST"),
    (["harness", "schema", "report"], 0, "json-schema.org"),
    (
        ["harness", "fuzz", "--max-time", "10", "--server-cmd", SERVER],
        0,
        "",
    ),
    (
        ["agent", "exec", "--skip-git-repo-check", "--scenario", "turns/plain-turn", "hello"],
        0,
        "Hello there.",
    ),
]


def main() -> int:
    """Install the wheel and run every command; return 0 if each did what it must."""
    given = Path(sys.argv[1]).absolute()
    wheel = given if given.is_file() else next(given.glob("*.whl"))
    with tempfile.TemporaryDirectory() as folder:
        environment, empty = Path(folder) / "environment", Path(folder) / "empty"
        venv.create(environment, with_pip=True)
        programs = environment / ("Scripts" if os.name == "nt" else "bin")
        install = [programs / "python", "-m", "pip", "install", "--quiet", wheel]
        subprocess.run(install, check=True)
        empty.mkdir()
        variables = {**os.environ, "HOME": folder, "NO_COLOR": "1"}
        variables["PATH"] = os.pathsep.join([str(programs), os.environ["PATH"]])
        _say(f"Python {sys.version.split()[0]} on {sys.platform}, {wheel.name}")
        return next((1 for command in COMMANDS if not _does(*command, empty, variables)), 0)


def _does(
    command: list[str], status: int, printed: str, folder: Path, variables: dict[str, str]
) -> bool:
    """Run a command, print a line about it, and return whether it did what it must."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BOUND_SECONDS,
        check=False,
    )
    good = ended.returncode == status and printed in ended.stdout
    _say(f"{'ok  ' if good else 'FAIL'} {' '.join(command)}")
    if not good:
        _say(f"exit status {ended.returncode}, expected {status} and {printed!r}:\n{ended.stdout}")
    return good


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
