"""Bugs about remote skills."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import swap
from tests.conformance.bugs.registry import bug


@bug(reds={"skills/remote": "scenario.expectation: skills/list was answered by"})
def a_fetched_skill_breaks_the_list() -> None:
    """Once a skill was fetched no skill is listed any more."""

    def entries(original: Any) -> Any:
        async def none(library: Any, cwds: Any, extra: Any, **how: Any) -> Any:
            if library.users_folder.exists():
                raise OSError("the fetched skill is not of this server")
            return await original(library, cwds, extra, **how)

        return none

    swap("reference_server.skills.library:Library.entries", entries)
