"""A fresh environment that holds the wheel and what it requires, and nothing else.

Made without any network: the build backend is a development dependency, and what the wheel requires
is linked from this environment, so that a requirement which is not declared is missing there.
"""

import fcntl
import os
import re
import sys
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.processes import ROOT, Said, run, run_warm


@dataclass(frozen=True, slots=True)
class Fresh:
    """The environment: the folder of its programs, and the wheel that is in it."""

    programs: Path
    wheel: Path

    def environment(self, home: Path) -> dict[str, str]:
        """The variables of somebody who has activated it; `home` is theirs."""
        kept = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        temporary = home / "tmp"
        temporary.mkdir(exist_ok=True)
        path = os.pathsep.join([str(self.programs), "/usr/bin", "/bin"])
        kept |= {"PATH": path, "HOME": str(home), "TMPDIR": str(temporary)}
        # Compiled where it is written: the next command of the same test starts faster.
        return kept | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}

    def call(self, *words: str, cwd: Path, env: dict[str, str] | None = None) -> Said:
        """Run a program of the environment, in a folder whose parent is the user's home."""
        return run(
            [self.programs / words[0], *words[1:]],
            cwd=cwd,
            env=self.environment(cwd.parent) | (env or {}),
            together=True,
        )

    def fork(self, *words: str, cwd: Path) -> Said:
        """Run `harness` or pytest as `call` does, in a fork of a process of this environment.

        Not for tests of starting or importing. pytest rewrites no assertions then.
        """
        return run_warm(
            "harness" if words[0] == "harness" else "pytest",
            *([] if words[0] == "harness" else ["--assert=plain"]),
            *words[1:],
            cwd=cwd,
            env=self.environment(cwd.parent),
            together=True,
            programs=self.programs,
        )


def made_once(folder: Path) -> Fresh:
    """The environment of this test run in `folder`, which the workers of a run share."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _make(folder)
            (folder / "done").touch()
    return Fresh(folder / "environment" / "bin", next((folder / "dist").glob("*.whl")))


def build(folder: Path, source: Path = ROOT) -> Path:
    """A wheel of a source tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    succeed([*command, "--no-build-isolation", "--wheel-dir", str(folder), str(source)], folder)
    (built,) = folder.glob("*.whl")
    return built


def succeed(command: list[str], cwd: Path) -> str:
    """Run a command that must succeed."""
    said = run(command, cwd=cwd, together=True)
    assert said.status == 0, f"{' '.join(command)}\n{said.out}"
    return said.out


def _make(folder: Path) -> None:
    dist, place = folder / "dist", folder / "environment"
    dist.mkdir()
    built = build(dist)
    venv.create(place, with_pip=False, symlinks=True)
    printed = succeed([str(place / "bin/python"), "-c", _PURELIB], place)
    packages = Path(printed.strip())
    target = ["--target", str(packages), "--no-deps", "--no-index", "--quiet"]
    succeed([sys.executable, "-m", "pip", "install", *target, str(built)], place)
    for name in sorted(requirements(built)):
        for entry in _top_level(name):
            if not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    scripts = {"agent": "reference_server.cli", "harness": "harness.__main__", "pytest": "pytest"}
    for name, module in scripts.items():
        script = place / "bin" / name
        script.write_text(
            f"#!{place / 'bin/python'}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
        )
        script.chmod(0o755)


_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def requirements(wheel: Path) -> set[str]:
    """The distributions that a wheel requires here, and those that they require in turn."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    found: set[str] = set()
    waiting = re.findall(r"^Requires-Dist: (.+)$", text, re.M)
    while waiting:
        one = Requirement(waiting.pop())
        if one.name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(one.name)
            waiting += distribution(one.name).requires or []
    return found


def _top_level(name: str) -> Iterator[Path]:
    """The files and folders of a distribution directly below the folder of packages."""
    tops = {file.parts[0] for file in distribution(name).files or []} - {"..", "__pycache__"}
    base = Path(str(distribution(name).locate_file("")))
    yield from (base / top for top in sorted(tops))
