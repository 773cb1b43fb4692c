"""Processes that may still run a turn are ended before a conversation begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.runner.servers import Servers


class Ending(Servers):
    """Notes which servers it ends, in the place of ending them."""

    def __init__(self, *kept: Any) -> None:
        nobody = cast("Any", None)
        super().__init__(nobody, nobody, nobody, nobody, model_url="", tasks=nobody)
        self.current, self._waiting, self._listening = kept
        self.ended: list[Any] = []

    async def _end(self, server: Any) -> Any:
        self.ended.append(server)

    @property
    def kept(self) -> tuple[Any, ...]:
        return self.current, self._waiting, self._listening


def server(*, spent: bool = True, closed: bool = False) -> Any:
    return SimpleNamespace(spent=spent, peer=SimpleNamespace(inbox=SimpleNamespace(closed=closed)))


@pytest.mark.anyio
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_the_spent_one_is_ended_and_the_others_are_kept(place: int) -> None:
    three = [server(spent=False) for _ in range(3)]
    three[place] = server()
    servers = Ending(*three)
    await servers.retire_spent()
    assert servers.ended == [three[place]]
    assert servers.kept == tuple(None if at == place else one for at, one in enumerate(three))


@pytest.mark.anyio
async def test_one_that_has_ended_by_itself_is_left_to_who_tells_of_it() -> None:
    gone = server(closed=True)
    servers = Ending(gone, None, None)
    await servers.retire_spent()
    assert (servers.ended, servers.kept) == ([], (gone, None, None))
