"""One line for a scenario where several workers play them.

With `-v` pytest announces each test before it runs, and where there are workers it says its name
again with the result: the announcements of one stand between the results of others. Here they are
left out. Not here: what a line says.
"""

from collections.abc import Generator

import pytest


class OneLine:
    """Lets the terminal say nothing of what a worker plays before it has a result."""

    def __init__(self, config: pytest.Config) -> None:
        self._option = config.option

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Announce nothing: the terminal asks how much it may say each time."""
        if getattr(self._option, "dist", "no") == "no":
            return (yield)
        verbose, self._option.verbose = self._option.verbose, -1
        try:
            return (yield)
        finally:
            self._option.verbose = verbose
