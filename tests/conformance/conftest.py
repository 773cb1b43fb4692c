"""Fixtures of the conformance tests: a folder of one's own, and nobody left behind in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .judging import MARK, leftovers


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """Marks everything that this test starts."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> Iterator[Path]:
    """A folder to run in; afterwards no process and no run folder may be left."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert leftovers(mark) == []
    assert [str(folder) for folder in tmp_path.rglob("run/*-*")] == []
