"""Commands in README and the pages beside it, run with the wheel alone.

The environment is fresh and the folder empty. Most commands run in forks; test_wheel.py,
test_commands_from_the_wheel.py and test_client_tests.py start the scripts. Pages that need a
checkout: tests/docs.
"""

import os
from pathlib import Path

import pytest
from forked_programs import forked_programs
from fresh import ROOT, Fresh
from markdown_pages import blocks
from page_reader import PAGE_BOUND, Reader

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.wheel]

PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if any(block.runnable for block in blocks(page))
]


@pytest.mark.timeout(PAGE_BOUND)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_with_the_wheel_alone(
    page: Path, fresh: Fresh, empty: Path
) -> None:
    environment = fresh.environment(empty.parent)
    with forked_programs(fresh) as folder:
        environment["PATH"] = os.pathsep.join([str(folder), environment["PATH"]])
        reader = Reader(empty, environment)
        reader.read_page(page)
    assert not reader.wrong, "\n".join(reader.wrong)


def test_the_pages_for_newcomers_are_among_them() -> None:
    assert {"README.md", "servers.md"} <= {page.name for page in PAGES}
