"""Running node and npm for tests of the TypeScript SDK, and building its package.

Everything is built in temporary copies, since several workers may test at once, and nothing may be
written in the checkout.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "typescript"
BOUND = 180

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None,
    reason="no node or npm: the TypeScript SDK is not tested",
)


def ran(command: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; any exit status is accepted."""
    return subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        env=dict(os.environ) | env,
    )


def done(command: list[str], cwd: Path, **env: str) -> str:
    """Run a command, fail unless it succeeds, and return its standard output."""
    result = ran(command, cwd, **env)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def copied(folder: Path) -> Path:
    """Copy the package into a folder, with a link to its build tools; return the copy."""
    installed = SDK / "node_modules"
    assert (installed / "typescript").is_dir(), "run `make test`, which installs the compiler"
    copy = folder / "typescript"
    shutil.copytree(SDK, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    (copy / "node_modules").symlink_to(installed)
    return copy


def packed(folder: Path) -> tuple[Path, list[str]]:
    """Build and pack the package; return the archive and the paths in it."""
    # The build writes to standard output too, before npm's JSON.
    text = done(["npm", "pack", "--json", "--loglevel=error"], copied(folder))
    [answer] = json.loads(text[text.index("[\n") :])
    paths = [file["path"] for file in answer["files"]]
    return folder / "typescript" / answer["filename"], paths


def installed(archive: Path, folder: Path) -> Path:
    """Create a project with the packed package as its only dependency; return its folder."""
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "project", "private": true}')
    done(["npm", "install", "--offline", "--no-audit", "--no-fund", str(archive)], project)
    return project


def packed_once(folder: Path) -> tuple[Path, list[str]]:
    """Return a project that has the packed package, and the paths in the archive.

    They are made in `folder` by the first worker that needs them.
    """
    folder.mkdir(exist_ok=True)
    paths = folder / "paths.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not paths.exists():
            archive, found = packed(folder)
            installed(archive, folder)
            paths.write_text(json.dumps(found))
    return folder / "project", json.loads(paths.read_text())


def compiled(project: Path, *files: str) -> None:
    """Compile programs with the strictest type checks, also of the package's declarations."""
    compiler = SDK / "node_modules" / "typescript" / "bin" / "tsc"
    options = ["--strict", "--target", "es2022", "--module", "nodenext"]
    exact = [
        "--exactOptionalPropertyTypes",
        "--noUncheckedIndexedAccess",
        "--skipLibCheck",
        "false",
    ]
    done(["node", str(compiler), *options, *exact, *files], project)
