"""Fixtures of the fixture-server tests: a fake model and a way to start a server against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from .driver import Session, session
from .fake_model import FakeModel, fake_model

Start = Callable[[str], AbstractContextManager[Session]]


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with fake_model() as running:
        yield running


@pytest.fixture
def start(model: FakeModel, tmp_path: Path) -> Start:
    return lambda script: session(script, tmp_path, model.url)
