"""Trouble of the harness's own in a pytest session: one line instead of a traceback."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.play.trouble import describe_trouble
from harness.protocol.escapes import is_utf8, visible


class OwnTrouble:
    """Pytest plugin that prints an internal error on a line; a file in `base` has the traceback."""

    def __init__(self, config: pytest.Config, base: Path) -> None:
        self._config = config
        self._base = base

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_internalerror(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> Generator[None, object, object]:
        """Print one line; a worker sends its traceback to the controller as it is."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if hasattr(self._config, "workerinput") or reporter is None:
            return (yield)
        write_line, reporter.write_line = reporter.write_line, _write_nothing
        try:
            return (yield)
        finally:
            reporter.write_line = write_line
            reporter.ensure_newline()
            reporter.write_line(f"ERROR: {describe_trouble(excinfo.value, self._base)}", red=True)


def _write_nothing(*_: Any, **__: Any) -> None: ...


def check_worker_texts(config: pytest.Config) -> None:
    """Raise `UsageError` for a folder or argument that cannot be sent to workers: not UTF-8."""
    option: Any = config.option
    if not getattr(option, "numprocesses", None):
        return
    texts = {"the current folder": os.getcwd()} | {
        f"the argument {visible(word)}": word for word in map(str, config.invocation_params.args)
    }
    for what, text in texts.items():
        if not is_utf8(text):
            raise UsageError(
                f"-n {option.numprocesses}: {what} has a name that is not UTF-8, which cannot be "
                "sent to workers; leave -n out (--lanes N plays N scenarios at once)"
            )
