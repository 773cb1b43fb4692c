"""The fresh environment, made once in a test run, and the empty folder of somebody who has it."""

from pathlib import Path

import pytest
from fresh import Fresh, made_once


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Fresh:
    """The environment with the wheel alone."""
    base = tmp_path_factory.getbasetemp()
    return made_once((base if worker_id == "master" else base.parent) / "fresh")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty folder; its parent is its user's home."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder
