"""`harness run` is shielded from the plugins and settings of whatever else is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from .judging import command
from .running import harness_run

pytestmark = [pytest.mark.socket, pytest.mark.slow]

# As pytest-asyncio does: it warns as soon as it is loaded.
NOISY = """
import warnings
open("loaded", "w").close()
def pytest_configure(config):
    warnings.warn("an old setting", DeprecationWarning)
"""


@pytest.fixture
def installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a plugin for pytest is installed, as pip leaves it."""
    site = place / "site"
    about = site / "noisy-1.dist-info"
    about.mkdir(parents=True)
    (site / "noisy.py").write_text(NOISY)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: noisy\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pytest11]\nnoisy = noisy\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return place


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param([], id="alone"),
        pytest.param(["-n", "2"], id="workers", marks=pytest.mark.runs),
    ],
)
def test_no_plugin_of_the_environment_is_loaded_and_warnings_are_no_errors(
    workers: list[str], installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    words = ["turns/plain-turn", *workers]
    told = harness_run(*words, server=command("minimal"), folder=installed)
    assert (told.status, told.score) == (0, "1 PASS"), told.text
    assert "old setting" not in told.text
    assert not (installed / "loaded").exists()
