"""Open descriptors of a process, by kind, without the files of its home."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from harness.client.target.descriptors import count_descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def test_each_kind_is_counted_and_files_of_the_home_are_not(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "home2"
    home.mkdir()
    before = count_descriptors(os.getpid(), home)
    assert before is not None
    own, other = (home / "rollout").open("w"), elsewhere.open("w")
    ends = os.pipe()
    with own, other, socket.socket(), Path(os.devnull).open("rb"):
        after = count_descriptors(os.getpid(), home)
        assert after is not None
        assert after - before == {"pipe": 2, "socket": 1, "file": 1, "device": 1}
    for end in ends:
        os.close(end)
    assert count_descriptors(os.getpid(), home) == before


def test_process_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert count_descriptors(pid, tmp_path) is None
