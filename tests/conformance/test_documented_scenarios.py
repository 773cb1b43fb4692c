"""Every example of docs/scenarios.md plays: here on the reference server, all in `make real`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.client.target.profile import load_profile
from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.worker_session import WorkerSession
from harness.scenario.loader import load, load_text
from tools.examples import OWED, examples, write

pytestmark = [pytest.mark.slow, pytest.mark.socket]

EXAMPLES = examples()
NEEDS = {name: set(load_text(text).scenario.needs) for name, text in EXAMPLES.items()}
OFFERED = set(load_profile("reference").capabilities)
REAL = [set(load_profile(f"codex-{release}").capabilities) for release in ("0.107", "0.169")]
HERE = [name for name, needs in NEEDS.items() if needs <= OFFERED]


@pytest.fixture(scope="module")
def session() -> Iterator[WorkerSession]:
    session = WorkerSession(configure(target="reference"), worker="documented")
    yield session
    session.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("examples")
    return dict(zip(EXAMPLES, write(folder), strict=True))


@pytest.mark.parametrize("name", HERE)
def test_example_passes_on_the_reference_server(
    name: str, session: WorkerSession, files: dict[str, Path]
) -> None:
    outcome = session.play(load(files[name]))
    assert outcome.verdict is Verdict.PASS, outcome.reason


def test_documented_scenarios_not_yet_playable_are_owed_by_a_part() -> None:
    missing = {need for needs in NEEDS.values() for need in needs - OFFERED}
    assert missing <= set(OWED), "say in tools/examples.py which part owes it"
    assert set(OWED) - missing == set(), "it is offered now, or no example needs it any more"


def test_every_example_plays_on_a_real_server() -> None:
    unplayed = [name for name, needs in NEEDS.items() if not any(needs <= real for real in REAL)]
    assert unplayed == []


def test_most_examples_play_on_the_reference_server() -> None:
    assert len(HERE) >= 10
