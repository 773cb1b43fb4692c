"""One program on one server: its folder, the model that plays, the recording and the judgement.

A session client on our double gets its model by `--scenario`. The release, and `exec`, whose turns
are processes of their own, ask a model over HTTP, which `harness model` plays from the same file.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.clients.table import PROGRAMS, ROOT, SCENARIO, Client

BIN = ROOT / ".venv" / "bin"
PLAYS = ROOT / ".harness" / "clients"
PROFILE = "codex-0.169"
MAX_PROGRAM_SECONDS = 180
UNREACHABLE_URL = "http://127.0.0.1:9/v1"

SETTINGS = """\
model = "gpt-5.5"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[tools.update_plan]
enabled = true

[analytics]
enabled = false

[features]
shell_snapshot = false

[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 3
"""

PLAIN = """\
#!/bin/sh
exec "{program}" "$@"
"""

RECORDED = """\
#!/bin/sh
case " $* " in *" app-server "*) ;; *) exec "{program}" "$@" ;; esac
exec "{harness}" record --target {profile} -o "{sessions}/" -- "{program}" "$@" {scenario}
"""


@dataclass(frozen=True)
class Server:
    """A server under the name `codex`: the release, or our double."""

    name: str
    program: Path
    is_double: bool


@dataclass
class Outcome:
    """Lines that a program printed, and the duties that its client broke."""

    client: Client
    server: Server
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list[str])
    problem: str = ""
    breaks: tuple[str, ...] = ()

    @property
    def play(self) -> Path:
        """Return the folder of the program's run."""
        return PLAYS / self.client.folder / self.server.name

    @property
    def passed_count(self) -> int:
        """Return the number of checks that passed."""
        return sum(line.startswith("ok ") for line in self.lines)

    @property
    def failures(self) -> list[str]:
        """Return the lines of failed checks, and what ended the program."""
        lines = [line for line in self.lines if not line.startswith("ok ")]
        return [*lines, self.problem] if self.problem else lines


def run(client: Client, server: Server, installed: Path) -> Outcome:
    """Run the client's program on a server."""
    outcome = Outcome(client, server)
    play = outcome.play
    shutil.rmtree(play, ignore_errors=True)
    for name in ("bin", "home", "user", "work", "sessions"):
        (play / name).mkdir(parents=True)
    by_scenario = server.is_double and client.surface == "session"
    began = time.monotonic()
    with _model(play, is_needed=not by_scenario) as url:
        (play / "home/config.toml").write_text(SETTINGS.format(url=url), encoding="utf-8")
        _write_program(play, client, server, by_scenario=by_scenario)
        _run_program(play, client, installed, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def note_broken_duties(outcomes: Iterable[Outcome]) -> None:
    """Note the duties that the recordings of each outcome break, without INFO.

    One process judges all recordings: to start it takes longer than to judge them.
    """
    outcome_of = {
        str(file): outcome for outcome in outcomes for file in outcome.play.glob("sessions/*.jsonl")
    }
    if not outcome_of:
        return
    options = ["--side", "client", "--target", PROFILE, "--json", "-"]
    command = [str(BIN / "harness"), "check", *options, *sorted(outcome_of)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    for file in json.loads(found.stdout)["files"]:
        outcome = outcome_of[file["file"]]
        broken = {
            f"{duty['rule']} ({duty['level']})"
            for duty in file["duties"]
            if duty["verdict"] == "FAIL" and duty["level"] != "INFO"
        }
        outcome.breaks = tuple(sorted({*outcome.breaks, *broken}))


@contextmanager
def _model(play: Path, *, is_needed: bool) -> Generator[str]:
    """Serve the scenario's model; yield its address, one that nothing serves if not needed."""
    if not is_needed:
        yield UNREACHABLE_URL
        return
    command = [str(BIN / "harness"), "model", str(SCENARIO), "--target", PROFILE]
    with (
        (play / "model.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            yield first.rpartition(" is at ")[2].strip() or UNREACHABLE_URL
        finally:
            process.send_signal(signal.SIGINT)
            log.write(process.stdout.read())


def _write_program(play: Path, client: Client, server: Server, *, by_scenario: bool) -> None:
    program = server.program
    if server.is_double:
        # Started by the name `codex` it speaks the newest release that the table knows.
        program = play / "double" / "codex"
        program.parent.mkdir()
        program.symlink_to(server.program)
    text = (PLAIN if client.surface == "exec" else RECORDED).format(
        program=program,
        harness=BIN / "harness",
        profile=PROFILE,
        sessions=play / "sessions",
        scenario=f'--scenario "{SCENARIO}"' if by_scenario else "",
    )
    path = play / "bin" / "codex"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _run_program(play: Path, client: Client, installed: Path, outcome: Outcome) -> None:
    program = PROGRAMS / client.program
    interpreter = "node" if program.suffix == ".mjs" else str(installed / "bin/python")
    codex = play / "bin" / "codex"
    environment = {
        "PATH": f"{codex.parent}:{os.environ['PATH']}",
        "HOME": str(play / "user"),
        "CODEX_HOME": str(play / "home"),
        "CODEX_API_KEY": "harness-key",
        # Otherwise each turn makes git look at the whole checkout several times.
        "GIT_CEILING_DIRECTORIES": str(play),
        "NODE_NO_WARNINGS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with (play / "stderr.log").open("wb") as errors:
        try:
            found = subprocess.run(
                [interpreter, program, codex, play / "work", installed],
                cwd=play / "work",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=MAX_PROGRAM_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            outcome.problem = f"not at its end after {MAX_PROGRAM_SECONDS} s"
            printed = error.stdout or b""
        else:
            printed = found.stdout
            if found.returncode not in (0, 1):
                outcome.problem = f"exit status {found.returncode}"
    outcome.lines = [
        line for line in printed.decode().splitlines() if line.startswith(("ok ", "FAILED "))
    ]
    if not outcome.lines:
        outcome.problem = outcome.problem or f"no check was made: see {play / 'stderr.log'}"
