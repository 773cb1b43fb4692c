"""One line per scenario where several workers play them.

With `-v` pytest announces each test before it runs. With workers it prints the name again with the
result, so that announcements are mixed with other tests' results. Here they are suppressed.
"""

from collections.abc import Generator

import pytest


class OneLine:
    """Pytest plugin that suppresses the announcements of tests that workers run."""

    def __init__(self, config: pytest.Config) -> None:
        self._option = config.option

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Lower the verbosity while the test is announced; the terminal reads it each time."""
        if getattr(self._option, "dist", "no") == "no":
            return (yield)
        verbose, self._option.verbose = self._option.verbose, -1
        try:
            return (yield)
        finally:
            self._option.verbose = verbose
