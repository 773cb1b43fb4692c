"""Installs the clients and the release, each into a folder below .real, unless it is there."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.clients.table import ROOT, Client

REAL = ROOT / ".real"
WILD = REAL / "wild"
NPM = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--no-package-lock")
LOADER = "export default (name) => import(name);\n"
"""Module beside node_modules, by which a program elsewhere imports a package."""


class CannotInstall(Exception):
    """This machine lacks what a client needs; the text says what."""


def install_release(release: str) -> Path:
    """Return the program of a release for Linux x86-64."""
    folder = REAL / release
    vendor = folder / "node_modules/real/vendor/x86_64-unknown-linux-musl"
    if not (vendor / "bin/codex").exists():
        folder.mkdir(parents=True, exist_ok=True)
        package = f"real@npm:@openai/codex@{release}-linux-x64"
        _run([*NPM, "--prefix", str(folder), package])
    return vendor / "bin/codex"


def install(client: Client, *, is_offline: bool = False) -> Path:
    """Return the client's folder. Raises CannotInstall."""
    folder = WILD / client.folder
    stamp = folder / ".installed"
    wanted = "\n".join(client.packages)
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return folder
    if is_offline:
        raise CannotInstall("its installation was skipped, as said above")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client.registry == "npm":
        if shutil.which("npm") is None:
            raise CannotInstall("it needs npm")
        (folder / "load.mjs").write_text(LOADER, encoding="utf-8")
        options = ("--ignore-scripts", "--omit=optional", "--prefix", str(folder))
        _run([*NPM, *options, *client.packages])
    else:
        # To install a pip into each would take most of the time.
        _run([find_python(client.python), "-m", "venv", "--without-pip", str(folder)])
        pip = [str(ROOT / ".venv/bin/python"), "-m", "pip", "--python", str(folder / "bin/python")]
        options = ("install", "--quiet", "--disable-pip-version-check")
        # Without what they depend on: the official one would bring its release along.
        _run([*pip, *options, "--no-deps", client.packages[0]])
        if needed := client.packages[1:]:
            _run([*pip, *options, *needed])
    stamp.write_text(wanted, encoding="utf-8")
    return folder


def find_python(least: str) -> str:
    """Return a Python of at least that version. Raises CannotInstall."""
    for python in _pythons():
        code = f"import sys; sys.exit(sys.version_info < ({least.replace('.', ',')}))"
        found = subprocess.run([python, "-c", code], capture_output=True, check=False)
        if found.returncode == 0:
            return python
    raise CannotInstall(f"it needs Python {least}")


def _pythons() -> Iterator[str]:
    yield str(ROOT / ".venv/bin/python")
    for minor in range(12, 16):
        if found := shutil.which(f"python3.{minor}"):
            yield found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in sorted(versions.glob("3.*/bin/python3")):
        yield str(python)


def _run(command: list[str]) -> None:
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise SystemExit(f"clients: {' '.join(command)}: {found.stderr.strip()[-400:]}")
