"""The tests of the TypeScript SDK, run by Node's own runner, and its package as npm makes it.

Everything is built in a temporary copy: several workers may test at once, and nothing is written in
the checkout. The tests themselves are TypeScript, in sdk/typescript/test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "typescript"
BOUND = 180

pytestmark = [
    pytest.mark.socket,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or shutil.which("npm") is None,
        reason="no node or npm: the TypeScript SDK is not tested",
    ),
]


def ran(command: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its status."""
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
    """Run a command that must succeed; give its standard output."""
    result = ran(command, cwd, **env)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def copied(folder: Path) -> Path:
    """Copy the package to a folder, with what it is built with beside it."""
    installed = SDK / "node_modules"
    assert (installed / "typescript").is_dir(), "run `make test`, which installs the compiler"
    copy = folder / "typescript"
    shutil.copytree(SDK, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    (copy / "node_modules").symlink_to(installed)
    return copy


def test_its_own_tests_pass_and_none_is_left_out(tmp_path: Path) -> None:
    package = copied(tmp_path)
    done(["npm", "run", "--silent", "pretest"], package)
    files = sorted(str(path) for path in (package / "build" / "test").glob("*.test.js"))
    assert files
    result = ran(["node", "--test", "--test-reporter=spec", *files], package)
    assert result.returncode == 0, result.stdout + result.stderr
    counted = dict(re.findall(r"^\S (\w+) (\d+)$", result.stdout, re.MULTILINE))
    assert int(counted["pass"]) > 0
    assert (counted["skipped"], counted["todo"], counted["cancelled"]) == ("0", "0", "0")
