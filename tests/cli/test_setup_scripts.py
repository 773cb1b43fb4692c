"""Setup of the sandbox by `make`, and `make bare`: the scripts, with stubs on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
HIDING = str(TOOLS / "without_bubblewrap.sh")
_TRIED = subprocess.run([HIDING, "true"], capture_output=True, text=True)
pytestmark = [
    pytest.mark.socket,
    pytest.mark.skipif(_TRIED.returncode != 0, reason=_TRIED.stderr.strip() or "it was not hidden"),
]
WORKS = "exit 0"
FORBIDDEN = "echo 'bwrap: No permissions' >&2; exit 1"


@dataclass
class Machine:
    """A folder with the script, and programs that are found before those of the system."""

    folder: Path

    def __post_init__(self) -> None:
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.program("uname", "echo Linux")
        self.program("id", "echo 0")
        self.program("apt-get", "exit 100")

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.folder}/log\n{script}\n')
        path.chmod(0o755)

    def run(self, script: str = "bubblewrap.sh", **variables: str) -> str:
        """Return the output of the script, which must exit with 0."""
        first = ["env", "-u", "HARNESS_INSTALL", f"PATH={self.bin}:{os.environ['PATH']}"]
        first += [f"{name}={value}" for name, value in variables.items()]
        line = [HIDING, *first, str(TOOLS / script)]
        done = subprocess.run(line, cwd=self.folder, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def calls(self, name: str) -> int:
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return sum(line.startswith(f"{name} ") for line in lines)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_where_bubblewrap_works_nothing_is_said_and_nothing_installed(machine: Machine) -> None:
    machine.program("bwrap", WORKS)
    assert machine.run() == ""
    assert machine.calls("apt-get") == 0
    assert not (machine.folder / ".venv").exists()


def test_where_it_is_missing_it_is_installed(machine: Machine) -> None:
    made = f"printf '#!/bin/sh\\n' > {machine.bin}/bwrap; chmod 755 {machine.bin}/bwrap"
    machine.program("apt-get", made)
    assert machine.run() == "bubblewrap is missing: installing it with apt-get\n"
    assert machine.run() == ""
    assert machine.calls("apt-get") == 1


def test_where_apt_fails_that_is_said_once_and_it_is_not_tried_again(machine: Machine) -> None:
    said = machine.run()
    assert "no sandbox on this machine: bwrap was not found (apt-get could not install it)" in said
    assert "install the package bubblewrap: apt-get install bubblewrap" in said
    tried = machine.calls("apt-get")
    assert tried > 0
    assert machine.run() == machine.run() == ""
    assert machine.calls("apt-get") == tried


Takes = Callable[[Machine], None]


def an_ordinary_user(machine: Machine) -> None:
    machine.program("id", "echo 1000")


def one_that_is_not_allowed_to_work(machine: Machine) -> None:
    machine.program("bwrap", FORBIDDEN)


@pytest.mark.parametrize(
    ("takes", "why", "advice"),
    [
        (an_ordinary_user, "bwrap was not found\n", "  install the package bubblewrap: apt-get"),
        (
            one_that_is_not_allowed_to_work,
            "bwrap does not work here: bwrap: No permissions\n",
            "  allow user namespaces",
        ),
    ],
)
def test_where_nothing_can_be_installed_apt_is_not_called_and_the_advice_fits(
    machine: Machine, takes: Takes, why: str, advice: str
) -> None:
    takes(machine)
    said = machine.run()
    assert said.startswith(f"no sandbox on this machine: {why}{advice}")
    assert machine.run() == ""
    assert machine.calls("apt-get") == 0


def test_output_is_dropped_when_a_script_works(machine: Machine) -> None:
    assert machine.run() != ""
    machine.program("bwrap", WORKS)
    assert machine.run() == ""
    machine.program("bwrap", FORBIDDEN)
    assert machine.run() != ""


def test_who_wants_nothing_installed_is_left_alone(machine: Machine) -> None:
    assert machine.run(HARNESS_INSTALL="no") == ""
    assert machine.calls("apt-get") == 0
    assert not (machine.folder / ".venv").exists()


def test_make_bare_fails_where_bubblewrap_was_there_after_all(tmp_path: Path) -> None:
    """A pass in which nothing was hidden proves nothing, though all of it is green."""
    machine = Machine(tmp_path)
    (harness := tmp_path / ".venv" / "bin" / "harness").parent.mkdir(parents=True)
    harness.write_text("#!/bin/sh\necho 'verdict: GREEN'\n")
    harness.chmod(0o755)
    (tools := tmp_path / "tools").mkdir()
    shutil.copy(TOOLS / "bare.sh", tools)
    (tools / "without_bubblewrap.sh").write_text('#!/bin/sh\nexec "$@"\n')
    (tools / "without_bubblewrap.sh").chmod(0o755)
    env = {**os.environ, "PATH": f"{machine.bin}:{os.environ['PATH']}"}
    done = subprocess.run(
        [tools / "bare.sh"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "make bare: nothing said 'that need sandbox: " in done.stdout


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_make_bare_says_where_it_cannot_hide_it_and_fails_in_ci(
    tmp_path: Path, ci: str, status: int
) -> None:
    machine = Machine(tmp_path)
    machine.program("bwrap", WORKS)
    (tools := tmp_path / "tools").mkdir()
    shutil.copy(TOOLS / "bare.sh", tools)
    (tools / "without_bubblewrap.sh").write_text("#!/bin/sh\necho 'not allowed' >&2\nexit 125\n")
    (tools / "without_bubblewrap.sh").chmod(0o755)
    env = {**os.environ, "CI": ci, "PATH": f"{machine.bin}:{os.environ['PATH']}"}
    done = subprocess.run(
        [tools / "bare.sh"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == status
    assert "what a machine without bubblewrap does was not tried" in done.stdout
