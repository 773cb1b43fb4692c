"""`make release`: wheel, source distribution, SBOM, checksums and notes of a release, in dist/.

Everything is built twice, from two copies of the last commit with other paths, times and modes, and
must be the same to the byte. Exit status 1 if it is not, or if files are not committed.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

DIST = ROOT / "dist"
_BUILD = "import sys, hatchling.build as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"


def main() -> int:
    """Build the release of the commit that is checked out; return the exit status."""
    if _output("git", "status", "--porcelain", "--untracked-files=no"):
        sys.stderr.write("make release: commit your changes first; it builds the last commit\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        builds = [
            _build(Path(folder) / name, mask) for name, mask in (("a", "022"), ("b/c", "077"))
        ]
        first, second = (_digests(build) for build in builds)
        if first != second:
            sys.stderr.write(f"make release: two builds differ: {first} and {second}\n")
            return 1
        DIST.mkdir(exist_ok=True)
        for old in DIST.iterdir():
            old.unlink()
        for file in builds[0].iterdir():
            (DIST / file.name).write_bytes(file.read_bytes())
        _write_sbom(Path(folder) / "environment", next(DIST.glob("*.whl")))
    (DIST / "NOTES.md").write_text(_notes(), "utf-8")
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(_digests(DIST).items()))
    (DIST / "SHA256SUMS").write_text(sums, "utf-8")
    sys.stdout.write(f"two builds are the same to the byte; in dist/:\n{sums}")
    return 0


def _build(folder: Path, mask: str) -> Path:
    """Return the folder with wheel and source distribution, built from a copy of the commit."""
    source, built = folder / "source", folder / "dist"
    for made in (source, built):
        made.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    extract = f"umask {mask}; tar -xm -C '{source}'"
    subprocess.run(["sh", "-c", extract], input=archive.stdout, check=True)
    _output(sys.executable, "-c", _BUILD, str(built), cwd=source)
    return built


def _write_sbom(environment: Path, wheel: Path) -> None:
    """Write what an installation of the wheel with our constraints holds, as CycloneDX."""
    venv.create(environment, with_pip=True, symlinks=True)
    python = str(environment / "bin" / "python")
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    _output(python, "-m", "pip", "install", "--quiet", *constraints, str(wheel))
    _output(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
    options = ["--output-reproducible", "--mc-type", "application", "--of", "JSON"]
    sbom = DIST / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
    command = ["-m", "cyclonedx_py", "environment", *options, "--pyproject", "pyproject.toml"]
    _output(sys.executable, *command, "--output-file", str(sbom), python)


def _notes() -> str:
    """Return the newest part of the changelog."""
    parts = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    return f"## {parts[1]}"


def _digests(folder: Path) -> dict[str, str]:
    files = (file for file in folder.iterdir() if file.name != "SHA256SUMS")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _output(*command: str, cwd: Path = ROOT) -> str:
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
