import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_agents import Fake

from agent_sdk import process, tree


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[[str], Fake]]:
    """Yield a function that writes a fake agent; fail if its processes are left at the end."""
    made: list[Fake] = []

    def make(body: str) -> Fake:
        made.append(Fake.written(tmp_path / f"fake{len(made)}", body))
        return made[-1]

    yield make
    left = [pid for one in made for pid in one.living()]
    for pid in left:
        os.kill(pid, 9)
    assert not left, "processes were left behind"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time that an agent has to exit, since in these tests it often never does."""
    monkeypatch.setattr(tree, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(process, "LINGER_SECONDS", 0.3)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder for temporary files; fail if any are left at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
