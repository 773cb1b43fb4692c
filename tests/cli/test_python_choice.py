"""`tools/python.sh`: which Python make takes, with stubs on the PATH that print their time."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/python.sh"
UNUSABLE = None


def _choice(folder: Path, *microseconds: int | None, name: str = "python3.11") -> str:
    """Return the folder that is chosen of 0, 1, …, whose Pythons take so long."""
    for number, took in enumerate(microseconds):
        program = folder / str(number) / name
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n" + ("exit 1\n" if took is UNUSABLE else f"echo {took}\n"))
        program.chmod(0o755)
    path = ":".join(str(folder / str(number)) for number in range(len(microseconds)))
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT)], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    return str(Path(done.stdout.strip()).relative_to(folder)) if done.stdout.strip() else ""


@pytest.mark.parametrize(
    ("microseconds", "chosen"),
    [
        ((1000,), "0"),
        ((1000, 900), "0"),
        ((1000, 700), "1"),
        ((1000, 700, 650), "1"),
        ((1000, 700, 500), "2"),
        ((700, 1000), "0"),
        ((UNUSABLE, 1000), "1"),
        ((1000, UNUSABLE), "0"),
    ],
)
def test_python_that_is_clearly_faster_is_taken(
    tmp_path: Path, microseconds: tuple[int | None, ...], chosen: str
) -> None:
    assert _choice(tmp_path / "a folder", *microseconds) == f"{chosen}/python3.11"


def test_python3_is_taken_without_python3_11(tmp_path: Path) -> None:
    assert _choice(tmp_path, 1000, 500, name="python3") == "1/python3"


def test_without_python_none_is_printed(tmp_path: Path) -> None:
    assert _choice(tmp_path) == ""
