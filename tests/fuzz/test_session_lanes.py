"""Documents on several lanes: assignment to lanes, and failing lanes."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from harness.play.bench import Bench
from harness.play.session.servers import SetupFailed
from harness.report.results.outcome import Finding
from harness.search.fuzz.sessions import lanes as lanes_module
from harness.search.fuzz.sessions.lanes import Lanes
from harness.search.fuzz.sessions.play import Played
from harness.trace.trace import Header, Trace

pytestmark = pytest.mark.anyio
DOCUMENTS: list[dict[str, Any]] = [{"title": str(number)} for number in range(7)]


class OneBench:
    """Stub of a bench for one lane; it records what is played and how often it starts anew."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.played: list[str] = []
        self.retired = 0
        self.servers = SimpleNamespace(retire_all=self._retire)

    async def _retire(self) -> None:
        self.retired += 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _plays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(bench: Any, config: Any, document: Any, *, bound: float | None = None) -> Played:
        await anyio.lowlevel.checkpoint()
        if not bench.works:
            finding = Finding("setup.start", "it does not start")
            raise SetupFailed(finding, Trace(Header(target="t", profile="spec", scenario="s")))
        bench.played.append(document["title"])
        return cast("Played", SimpleNamespace(document=document, bound=bound))

    monkeypatch.setattr(lanes_module, "play", play)


def lanes(*benches: OneBench) -> Lanes:
    config: Any = None
    return Lanes(config, cast("list[Bench]", list(benches)))


def titles(plays: list[Played | None]) -> list[str]:
    return ["" if one is None else one.document["title"] for one in plays]


async def test_plays_come_in_the_order_of_the_documents_and_the_lanes_share_them() -> None:
    benches = [OneBench(), OneBench(), OneBench()]
    plays = await lanes(*benches).play_all(DOCUMENTS, math.inf)
    assert titles(plays) == [one["title"] for one in DOCUMENTS]
    assert benches[0].played[0] == "0"
    assert all(bench.played for bench in benches)
    assert sorted(one for bench in benches for one in bench.played) == sorted(titles(plays))


async def test_a_lane_that_cannot_be_started_gives_its_documents_back() -> None:
    first, second = OneBench(), OneBench(works=False)
    both = lanes(first, second)
    assert titles(await both.play_all(DOCUMENTS, math.inf)) == [one["title"] for one in DOCUMENTS]
    assert both.number == 1
    assert len(first.played) == len(DOCUMENTS)


async def test_where_the_first_lane_cannot_be_started_nothing_is_played() -> None:
    first, second = OneBench(works=False), OneBench()
    with pytest.raises(SetupFailed):
        await lanes(first, second).play_all(DOCUMENTS, math.inf)
    assert second.played == []


async def test_documents_not_begun_by_the_end_are_not_played() -> None:
    bench = OneBench()
    plays = await lanes(bench).play_all(DOCUMENTS, time.monotonic() - 1)
    assert titles(plays) == [""] * len(DOCUMENTS)
    assert bench.played == []


async def test_a_process_on_which_something_went_wrong_is_used_no_more() -> None:
    bench = OneBench()
    await lanes(bench).play_all(DOCUMENTS, math.inf, lambda one: one.document["title"] == "3")
    assert bench.retired == 1
    await lanes(bench).play_all(DOCUMENTS[:2], math.inf, fresh=True)
    assert bench.retired == 3
