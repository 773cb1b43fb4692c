"""Starting programs of the tests as forks of a process that has imported what they import.

Importing takes longer than most plays. The process is that of tests/warm_agent.py: a fork of the
process of the tests, which has collected them all, would copy several times as many pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.agent_process import AgentProcess


@contextmanager
def forked(program: str, main: str) -> Generator[None]:
    """Make `subprocess.Popen` fork `python PROGRAM …` and `agent …` in the block, not start them.

    The fork of a program calls the function `main`, given as `module:function`; its result is the
    exit status.
    """

    class Forked(AgentProcess[Any]):
        def _split(self, args: Sequence[Any]) -> tuple[list[str], str, list[str], list[str]] | None:
            words = [os.fspath(word) for word in args]
            if words[:2] != [sys.executable, program]:
                return super()._split(args)
            self.main = main
            return [], sys.executable, words[1:], words

    with patch.object(subprocess, "Popen", Forked):
        yield
