"""One play of the whole suite on the reference server, shared by all tests that judge its traces.

`make demo` stores its play here. A test that finds no play of exactly this code on this machine
plays the suite itself, while other test workers wait. So the suite is played once, and no test
judges traces of other code. A play that is not GREEN is used by one test run only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from harness.client.target.host import lacks_of
from harness.client.target.profile import load_profile
from harness.report.json_form import read_report
from harness.report.results.report import Report, ScenarioResult
from tests.processes import COMMANDS, ENVIRONMENT, ROOT

KEPT = ROOT / ".harness" / "suite"
BEGUN = KEPT / "begun"
FAILED = KEPT / "failed"
DEMO_REPORT = ROOT / ".harness" / "reports" / "reference.json"
CODE = ("harness", "reference_server", "scenarios", "sdk/python/agent_sdk", "fixtures/sdk_drivers")
PLAY_BOUND = 600
"""Maximum seconds of the whole suite, on a machine under load, and of a test that waits for it."""


@dataclass(frozen=True, slots=True)
class SuitePlay:
    """A play stored in `folder`: its report and the trace of each scenario."""

    folder: Path

    @property
    def report(self) -> Report:
        """Return the report of the run."""
        return _report(self.folder)

    def scenario(self, name: str) -> ScenarioResult:
        """Return the result of one scenario."""
        return _results(self.folder)[name]

    def trace(self, name: str) -> Path:
        """Return the path of the trace of one scenario."""
        return self.folder / "traces" / f"{name}.jsonl"


@cache
def suite_play() -> SuitePlay:
    """Return the play of the suite by this code; play it first if none is stored."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = KEPT / code_state()
        if not is_usable(folder):
            # Only one test tries: a play takes too long.
            assert not has_failed(), "the suite could not be played, as an earlier test says"
            FAILED.write_text(run_id())
            _play(folder)
            FAILED.unlink()
    return SuitePlay(folder)


def run_id() -> str:
    """Return the id of this test run, the same in all of its workers."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))


def has_failed() -> bool:
    """Return whether this test run has tried to play the suite and failed."""
    return FAILED.exists() and FAILED.read_text() == run_id()


def is_usable(folder: Path) -> bool:
    """Return whether a play is stored there that is GREEN or of this test run."""
    played_by = folder / "played-by"
    return played_by.exists() and (
        played_by.read_text() == run_id() or not read_report(folder / "report.json").red
    )


def code_state() -> str:
    """Return a digest of all that affects a play: code, packages, machine."""
    digest = hashlib.sha256(repr(lacks_of(load_profile("reference"))).encode())
    digest.update(sys.version.encode())
    for name in sorted(f"{one.name} {one.version}" for one in distributions()):
        digest.update(name.encode())
    for path in _files():
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _files() -> Iterator[Path]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _play(folder: Path) -> None:
    """Play the suite as `make demo` does and store the play in `folder`."""
    here = KEPT / "play"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    report = here / "report.json"
    driver = f"'{sys.executable}' '{ROOT}/fixtures/sdk_drivers/python_driver.py'"
    words = ["--target", "reference", "--json", str(report)]
    words += ["--server-cmd", f"'{COMMANDS}/agent' app-server"]
    words += ["--agent-cmd", f"'{COMMANDS}/agent'", "--sdk-cmd", driver]
    ran = subprocess.run(
        [COMMANDS / "harness", "run", *words],
        # Paths of the server's own files are told relative to this folder.
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PLAY_BOUND,
    )
    assert report.exists(), ran.stdout + ran.stderr
    _keep(report, folder)
    shutil.rmtree(here)


def _keep(report: Path, folder: Path) -> None:
    """Store a report and its traces in `folder`; delete all older plays but the latest."""
    place = KEPT / "new"
    shutil.rmtree(place, ignore_errors=True)
    for one in read_report(report).scenarios:
        if one.trace:
            trace = place / "traces" / f"{one.id}.jsonl"
            trace.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / one.trace, trace)
    shutil.copyfile(report, place / "report.json")
    (place / "played-by").write_text(run_id())
    # Keep the latest other one: `make bare` plays without bubblewrap, which is another state.
    plays = sorted(KEPT.glob("?" * len(folder.name)), key=lambda play: play.stat().st_mtime)
    for old in {folder, *plays[:-1]}:
        shutil.rmtree(old, ignore_errors=True)
    place.rename(folder)


@cache
def _report(folder: Path) -> Report:
    return read_report(folder / "report.json")


@cache
def _results(folder: Path) -> dict[str, ScenarioResult]:
    return {one.id: one for one in _report(folder).scenarios}


def main(step: str) -> None:
    """Record the code's state before `make demo` (`begin`); store its run if unchanged (`keep`)."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if step == "begin":
        BEGUN.write_text(code_state())
    elif BEGUN.read_text() == code_state():
        with (KEPT / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _keep(DEMO_REPORT, KEPT / BEGUN.read_text())


if __name__ == "__main__":
    main(sys.argv[1])
