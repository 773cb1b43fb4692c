"""Time of `harness fuzz`: inputs and frames end when they bring nothing new."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from harness.play.config import configure
from harness.play.interruption import Interruption
from harness.search.fuzz import reactions
from harness.search.fuzz import run as runs
from harness.search.fuzz.case import Kind
from harness.search.fuzz.causes import Causes
from harness.search.fuzz.documents import search_documents
from harness.search.fuzz.run import ENDLESS_SECONDS, Bounds, fuzz
from harness.search.fuzz.sessions import search as sessions
from harness.search.fuzz.sessions.search import FoundFailure, SessionCampaign
from harness.search.fuzz.store import Store

SERVER = Path(__file__).parents[2] / "fixtures" / "servers" / "minimal.py"
COMMAND = shlex.join([sys.executable, str(SERVER)])
DOCUMENT_KINDS: tuple[Kind, ...] = ("inputs", "frames")


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("kind", DOCUMENT_KINDS)
def test_search_ends_after_documents_without_a_new_reaction(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reactions.MAX_DRY_DOCUMENTS, kind, 3)
    config = configure(server_cmd=COMMAND)
    found: list[FoundFailure] = []
    campaign = search_documents(
        kind,
        config,
        1,
        ENDLESS_SECONDS,
        Interruption(config.base),
        found.append,
        known_causes=Causes(config.rules),
        may_end_early=True,
    )
    assert campaign.cases > 3
    assert campaign.seconds < 300


@pytest.mark.parametrize(
    ("bounds", "early"),
    [
        (Bounds(("inputs", "frames", "sessions"), seconds=60.0), [True, True]),
        (Bounds(("inputs", "frames"), seconds=60.0), [False, False]),
        (Bounds(("inputs",), seconds=60.0, may_end_early=True), [True]),
        (Bounds(("inputs", "frames", "sessions"), cases=1), [False, False]),
        (Bounds(("inputs", "frames", "sessions"), seconds=60.0, cases=1), [False, False]),
    ],
    ids=["all", "no-sessions", "sessions-elsewhere", "number", "number-and-time"],
)
def test_only_a_search_before_sessions_may_end_early(
    bounds: Bounds, early: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    seconds: list[float] = []

    def documents(*words: object, may_end_early: bool, **_: object) -> SessionCampaign:
        asked.append(may_end_early)
        return SessionCampaign(1, cases=1)

    def play_sessions(config: object, seed: int, time: float, *_: object, **__: object) -> object:
        seconds.append(time)
        return SessionCampaign(1, cases=1)

    monkeypatch.setattr(runs, "search_documents", documents)
    monkeypatch.setattr(sessions, "search", play_sessions)
    config = configure(server_cmd=COMMAND)
    fuzz(config, bounds, Store(tmp_path), Interruption(config.base))
    assert asked == early
    # What the others leave is theirs.
    assert all(time > 50 for time in seconds)
