"""Fixtures of the conformance tests: a home and working directory for each test, and a check that
no process is left."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .judging import MARK, leftovers


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set an environment variable that marks all processes of this test; return its value."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> Iterator[Path]:
    """Yield a working directory; fail if a process or a run folder is left afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert leftovers(mark) == []
    assert [str(folder) for folder in tmp_path.rglob("run/*-*")] == []
